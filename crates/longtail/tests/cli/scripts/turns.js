import http from 'k6/http';
import exec from 'k6/execution';
export const options = { vus: 5, iterations: 100 };
export default function () {
  const n = exec.scenario.iterationInTest % 10;
  switch (true) {
    case n < 8: http.get('http://127.0.0.1:1/a'); break;
    case n < 9: http.get('http://127.0.0.1:1/b'); break;
    default: http.get('http://127.0.0.1:1/c');
  }
}
