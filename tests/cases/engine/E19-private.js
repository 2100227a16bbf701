// source: quickjs-ng, bug1498
// rule: a syntax error names the module, the line and the column of the worker's own source
// open: the engine gives this error no place
// expected throw: {"name":"SyntaxError","module":"broken.js","line":2,"during_load":true}
import { one } from "./broken.js";
export default { run(_) { return one; } };
// module: broken.js
export const one = 1;
export default one.#two;
