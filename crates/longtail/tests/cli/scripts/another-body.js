import http from 'k6/http';
export const options = { vus: 5, duration: '5s', rps: 20 };
export default function () {
  for (let i = 0; i < 3; i++) http.post('http://127.0.0.1:1/p', JSON.stringify({ id: Math.random() }));
}
