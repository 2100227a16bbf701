// source: side channels
// rule: the clock has whole milliseconds only
// expected: true
export default { async run(_x, env) { await env.delay(3); return [Date.now(), performance.now(), performance.timeOrigin, new Event("x").timeStamp].every(Number.isInteger); } };
