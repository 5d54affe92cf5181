import http from 'k6/http';
const B = 'http://127.0.0.1:1';
export const options = { scenarios: { a: { executor: 'constant-arrival-rate', rate: 100, duration: '2s', preAllocatedVUs: 5 } } };
export default function () {
  http.get(`${B}/list`);
  for (let i = 0; i < N; i++) { http.get(`${B}/x${i}`); }
}
