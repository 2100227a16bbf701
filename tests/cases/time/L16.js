// source: LibreChat-AI/agents issue 251
// rule: who does not want to wait for a peer that never answers can go on without it
// limits: {"wall_ms_max":10000,"subrequest_ms_max":200}
// expected: "went on"
export default [
  (_x, env) => Promise.race([env.never(), scheduler.wait(20).then(() => "went on")]),
  (_x, env) => new Promise((done) => { env.never().then(done); AbortSignal.timeout(20).onabort = () => done("went on"); }),
  async (_x, env) => {
    const many = Array.from({ length: 10 }, () => env.never());
    return Promise.race([...many, scheduler.wait(20).then(() => "went on")]);
  },
  // Nor has who sets no timer to wait for the end of the whole.
  (_x, env) => env.never().catch((error) => (error.message.includes("subrequest_ms_max") ? "went on" : error.message)),
];
