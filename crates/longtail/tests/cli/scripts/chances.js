import http from 'k6/http';
export const options = { vus: 20, iterations: 1000 };
export default function () {
  if (Math.random()<.2) http.post('http://127.0.0.1:1/w', 'a=1')
  if (__ITER % 10 == 0) http.get('http://127.0.0.1:1/rare')
  http.get('http://127.0.0.1:1/always')
}
