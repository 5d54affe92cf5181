import http from 'k6/http';
import { sleep } from 'k6';
export const options = { vus: 500, duration: '10s', rps: 50 };
export default function () { http.get('http://127.0.0.1:1/'); sleep(1); }
