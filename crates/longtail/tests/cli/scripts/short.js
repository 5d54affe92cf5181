import http from 'k6/http';
import { sleep } from 'k6';
export const options = { vus: 10, duration: '30s', thresholds: { http_req_duration: ['p(95)<200', 'p(99)<500'] } };
export default function () { http.get('http://127.0.0.1:1/'); sleep(1); }
