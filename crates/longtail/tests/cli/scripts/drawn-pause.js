import http from 'k6/http';
import { sleep } from 'k6';
export const options = { vus: 20, duration: '10s' };
export default function () { http.get('http://127.0.0.1:1/a'); sleep(Math.random() * 2 + 1); }
