import { Trend } from 'k6/metrics';
const waiting = new Trend('waiting');
export default function () { check(http.get('http://127.0.0.1:1/'), { ok: (r) => r.status === 200 }); }
export function handleSummary() { return {}; }
