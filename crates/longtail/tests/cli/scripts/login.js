import http from 'k6/http';
export const options = { vus: 2, iterations: 10 };
export default function () {
  http.get('http://127.0.0.1:1/');
  http.post('http://127.0.0.1:1/login', { user: 'a', pw: 'b c', remember: 1 });
}
