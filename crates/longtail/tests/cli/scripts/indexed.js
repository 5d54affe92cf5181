import http from 'k6/http';
const URLS = ['http://127.0.0.1:1/a', 'http://127.0.0.1:1/b'];
export const options = { vus: 5, duration: '5s' };
export default function () { http.get(URLS[Math.floor(Math.random() * URLS.length)]); }
