import http from 'k6/http';
import { Options } from 'k6/options';
export const options: Options = { scenarios: { a: { executor: 'externally-controlled', vus: 3, duration: '10s' } } };
export default async (): Promise<void> => {
  const res = http.get('http://127.0.0.1:1/a', { headers: { Accept: 'a/b' } as Record<string, string> });
  res.submitForm({ fields: {} });
};
