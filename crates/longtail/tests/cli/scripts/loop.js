export const options = { vus: 5, iterations: 50 };
export default function () {
  for (let i = 0; i < 3; i++) { http.get('http://127.0.0.1:1/'); }
}
