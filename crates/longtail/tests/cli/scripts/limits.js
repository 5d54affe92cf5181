const p95 = ['p(95)<200'];
export const options = {
  vus: 3,
  duration: '10s',
  tlsVersion: 'tls1.2',
  thresholds: {
    'http_req_duration{name:a}': p95,
    'http_req_duration{name:b}': p95,
    'http_req_duration{name:c}': p95,
    'http_req_duration{name:d}': p95,
    checks: ['rate>0.9'],
  },
};
export default function () {
  const r = http.get('http://127.0.0.1:1/');
  check(r, { ok: (r) => r.body });
}
export function handleSummary() {}
