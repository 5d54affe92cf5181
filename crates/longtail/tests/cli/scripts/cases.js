import http from 'k6/http';
const B = 'http://127.0.0.1:1';
const URLS = ['/u', '/v'];
export const options = { vus: 20, iterations: 1200 };
export default function () {
  switch (Math.floor(Math.random()*3)) {
    case 0: http.get(`${B}/a`); break;
    case 1: http.get(`${B}/b`); break;
    default: http.get(`${B}/c`);
  }
  const u = URLS[Math.floor(Math.random() * URLS.length)];
  http.get(`${B}${u}`);
}
