// source: javy issue 627
// rule: what is thrown in an async function is the outcome of the call, with its place
// expected throw: {"name":"ReferenceError","message":"adfasdfsa is not defined","module":"case.js","line":6}
// Two lines so that
// the place is not the first.
export default { run(_) { return (async () => { adfasdfsa; })(); } };
