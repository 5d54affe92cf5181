import http from 'k6/http';
const { BASE = 'http://127.0.0.1:1', WHERE: path = '/p' } = __ENV;
export const options = { vus: 5, duration: '5s', rps: 20 };
export default function () {
  http.post(`${BASE}${path}`, JSON.stringify({ id: Math.floor(Math.random() * 100), name: `u${__VU}` }));
}
