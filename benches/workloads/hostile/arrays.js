export default { run() { const kept = []; for (;;) kept.push(new Array(131072).fill(kept.length + 0.5)); } };
