export const options = { vus: 5, iterations: 50 };
export default function () {
  for (const one of ALL) { http.get('http://127.0.0.1:1/'); sleep(1); }
}
