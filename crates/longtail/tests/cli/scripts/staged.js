export const options = { stages: [{ duration: '1m', target: 9 }] };
