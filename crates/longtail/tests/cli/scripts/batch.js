export const options = { vus: 3, duration: '10s' };
export default function () {
  http.batch(['http://127.0.0.1:1/a', 'http://127.0.0.1:1/b', 'http://127.0.0.1:1/c']);
  sleep(1);
}
