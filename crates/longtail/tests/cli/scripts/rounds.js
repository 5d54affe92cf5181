import http from 'k6/http';
import { sleep } from 'k6';
const B = 'http://127.0.0.1:1';
export const options = { vus: 4, iterations: 10 };
export default function () {
  http.get(`${B}/list`);
  for (let i = 0; i < 3; i++) { const u = B + '/x' + i; http.get(u); sleep(0.1); }
  for (const p of ['/p', '/q']) http.get(`${B}${p}`);
}
