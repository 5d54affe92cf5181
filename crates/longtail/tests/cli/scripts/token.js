import http from 'k6/http';

export const options = { vus: 4, duration: '3s' };

export default function (data) {
  const params = { headers: { Authorization: `Bearer ${data.token}`, Accept: 'a/b' } };
  http.get('http://127.0.0.1:1/a', params);
  http.post('http://127.0.0.1:1/b', JSON.stringify(data), { cookies: { sid: '7' } });
}
