import http from 'k6/http';
import { check, sleep } from 'k6';
export const options = {
  scenarios: {
    open: { executor: 'constant-arrival-rate', rate: 100, timeUnit: '1s', duration: '2s', preAllocatedVUs: 20, maxVUs: 50 },
  },
  thresholds: { http_req_duration: ['p(95)<200'], http_req_failed: ['rate<0.01'] },
};
export default function () {
  const response = http.get('http://127.0.0.1:1/posts');
  check(response, { ok: (r) => r.status === 200 });
  sleep(0.1);
}
