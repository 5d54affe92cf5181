import http from 'k6/http';
import { sleep } from 'k6';

const BASE = 'http://127.0.0.1:1';
const paths = ['/a', '/b'];

export const options = { vus: 4, duration: '3s' };

export default function () {
  for (let i = 0; i < paths.length; i++) {
    http.get(`${BASE}${paths[i]}`);
    sleep(1);
  }
  paths.forEach((path) => {
    http.get(BASE + path);
    sleep(1);
  });
}
