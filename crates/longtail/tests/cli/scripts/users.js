import http from 'k6/http';
import { SharedArray } from 'k6/data';
const users = new SharedArray('users', function () {
  return JSON.parse(open('./users.json')).users;
});
export const options = { vus: 1, duration: '10s' };
export default function () {
  const user = users[Math.floor(Math.random() * users.length)];
  http.post('http://127.0.0.1:1/a', JSON.stringify({ name: user.name }));
}
