import http from 'k6/http';
export const options = { vus: 2, iterations: 4 };
export default function () {
  http.del('http://127.0.0.1:1/d');
  http.get(`http://127.0.0.1:1/u/${__VU}?i=${__ITER}`);
  http.get(http.url`http://127.0.0.1:1/z`);
  http.patch('http://127.0.0.1:1/p', 'a=1');
  http.get(`http://127.0.0.1:1/q?i=${__ITER}`);
}
