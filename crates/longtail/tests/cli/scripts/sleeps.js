export const options = { scenarios: { a: { executor: 'constant-arrival-rate', rate: __ENV.RATE || 50, duration: '2s', preAllocatedVUs: 20 } } };
export default function () { http.get('http://127.0.0.1:1/'); sleep(1); }
