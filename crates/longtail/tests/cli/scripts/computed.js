export const options = { scenarios: { a: { executor: 'constant-arrival-rate', rate: R, duration: '2s' } } };
export default () => { http.post(BASE, JSON.stringify(x)); }
