import http from 'k6/http';
export const options = { vus: 5, duration: '10s' };
export default function () {
  http.get('http://127.0.0.1:1/home');
  if (Math.random() < 0.2) {
    http.post('http://127.0.0.1:1/w', JSON.stringify({ a: 1 }));
  } else {
    http.get('http://127.0.0.1:1/r');
  }
}
