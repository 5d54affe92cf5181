import http from 'k6/http';
export const options = { scenarios: {
  read: { executor: 'constant-vus', vus: 10, duration: '10s', exec: 'read' },
  write: { executor: 'constant-arrival-rate', rate: 5, duration: '40s', preAllocatedVUs: 5, exec: 'write', startTime: '5s' } } };
let base: string = __ENV.BASE || 'http://127.0.0.1:1'
export function read() { http.get(`${base}/r`); }
export function write() { http.post(base + '/w', '{"name":"x"}'); }

