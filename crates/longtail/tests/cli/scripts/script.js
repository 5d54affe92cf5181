export { default, options } from './visit.js';
