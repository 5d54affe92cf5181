export const options = { vus: 7, duration: '20s' };
