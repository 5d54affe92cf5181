export const options = { vus: 5, duration: '10s' };
const BASE = __ENV.BASE || 'http://localhost:1';
export default function () { http.get(`${BASE}/a/${__ENV.ID}`); }
