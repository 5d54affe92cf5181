import http from 'k6/http';

const HOST = __ENV.HOST || 'http://127.0.0.1:1';

export const options = {
  scenarios: {
    reads: {
      executor: 'constant-vus',
      vus: 2,
      duration: '5s',
      env: { PATH_OF: '/reads', HOST: 'http://127.0.0.1:2' },
    },
    writes: {
      executor: 'shared-iterations',
      vus: 3,
      iterations: 60,
      maxDuration: '20s',
      gracefulStop: '5s',
      env: { PATH_OF: '/writes' },
    },
  },
};

export default function () {
  http.get(`${HOST}${__ENV.PATH_OF || '/'}`);
}
