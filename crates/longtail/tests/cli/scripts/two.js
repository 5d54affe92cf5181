export const options = { scenarios: { a: { executor: 'per-vu-iterations', vus: 4, iterations: 25 } }, maxRedirects: 0 };
export default function () {
  http.get('http://127.0.0.1:1/a', { timeout: '5s' });
  http.post('http://127.0.0.1:1/b', JSON.stringify({ c: 1 }), { timeout: '5s' });
}
