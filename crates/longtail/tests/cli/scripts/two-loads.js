import http from 'k6/http';
const headers = { Authorization: 'Bearer hunter2' };
export const options = {
  scenarios: {
    read: { executor: 'constant-vus', exec: 'read', vus: 2, duration: '10s' },
    write: { executor: 'constant-vus', exec: 'write', vus: 1, duration: '10s' },
  },
};
export function read() { http.get('http://127.0.0.1:1/a', { headers }); }
export function write() { http.post('http://127.0.0.1:1/a', JSON.stringify({ token: 'hunter2', n: 4 }), { headers }); }
