import http from 'k6/http';
const second = { method: 'DELETE', url: 'http://127.0.0.1:1/b' };
const options = { vus: 2, duration: '10s' };
export { options };
export default function () {
  http.batch([second, { method: 'GET', url: `http://127.0.0.1:1/a?q=${encodeURIComponent('x y')}` }]);
}
