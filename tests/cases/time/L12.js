// source: rquickjs issue 102
// rule: a loop of calls out ends by wall time, and waiting is no CPU time
// limits: {"wall_ms_max":300,"cpu_ms_max":100}
// expected verdict: wall {"started":true}
export default { async run(_x, env) { while (true) await env.delay(20); } };
