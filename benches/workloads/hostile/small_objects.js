export default { run() { let last = null; for (;;) last = { last, empty: {}, list: [1, 2, 3] }; } };
