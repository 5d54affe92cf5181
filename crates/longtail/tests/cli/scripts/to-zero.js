import http from 'k6/http';
export const options = { scenarios: { a: { executor: 'ramping-arrival-rate', startRate: 10, timeUnit: '1s', preAllocatedVUs: 50, stages: [ { target: 50, duration: '10s' }, { target: 50, duration: '20s' }, { target: 0, duration: '5s' } ] } } };
export default function () { http.get('http://127.0.0.1:1/'); }
