export const options = { scenarios: { a: { executor: 'ramping-arrival-rate', startRate: 10, stages: [{ duration: '2s', target: 100 }, { duration: '5s', target: 100 }] } } };
export default function () { http.get('http://127.0.0.1:1/'); }
