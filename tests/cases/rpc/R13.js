// source: workerd, startup exceptions
// rule: what a module throws is the exception of the first call, with its place, and nothing was called
// expected throw: {"name":"RangeError","message":"at the start","module":"case.js","line":5,"during_load":true}
const start = () => { 
  throw new RangeError("at the start"); };
start();
export default { run(_) { return "never"; } };
