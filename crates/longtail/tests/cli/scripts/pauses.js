import http from 'k6/http';
import { sleep } from 'k6';
export const options = { vus: 2, duration: '10s', rps: 100 };
export default function () { http.get('http://127.0.0.1:1/'); sleep(X); }
