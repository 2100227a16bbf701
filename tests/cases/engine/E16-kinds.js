// source: javy issue 627
// rule: a rejection that is returned or awaited is never a success
// expected throw: {"name":"ReferenceError","message":"adfasdfsa is not defined","module":"case.js"}
export default [
  async () => { adfasdfsa; },
  async () => { await null; adfasdfsa; },
  () => Promise.resolve().then(() => adfasdfsa),
  () => new Promise(() => adfasdfsa),
  () => ({ then() { adfasdfsa; } }),
  async () => { await (async () => { await 0; adfasdfsa; })(); },
  async () => { for await (const _ of (async function* () { adfasdfsa; })()); },
  () => Promise.all([1, (async () => adfasdfsa)()]),
  () => { try { adfasdfsa; } finally { void 0; } },
  async () => { await Promise.any([(async () => adfasdfsa)()]).catch((error) => { throw error.errors[0]; }); },
  async () => { await new ReadableStream({ start() { adfasdfsa; } }); },
];
