import http from 'k6/http';
import { randomItem } from 'https://jslib.k6.io/k6-utils/1.2.0/index.js';
const PATHS = ['/a', '/b', '/c'];
export const options = { vus: 5, iterations: 50 };
export default function () {
  http.get('http://127.0.0.1:1/home');
  const path = randomItem(PATHS);
  http.get(`http://127.0.0.1:1${path}`);
}
