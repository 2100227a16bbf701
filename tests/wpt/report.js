// Runs after the harness: gathers what became of the subtests, and ends what never does.

globalThis.wptResults = new Promise((resolve) => {
  const timer = setTimeout(() => timeout(), WPT.timeoutMilliseconds);
  add_completion_callback((tests, harness) => {
    clearTimeout(timer);
    const subtests = tests.map(({ name, status, message }) => [name, status, message ?? null]);
    resolve(JSON.stringify({ harness: [harness.status, harness.message ?? null], subtests }));
  });
});
