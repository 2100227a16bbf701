export default { run() { return new Promise(() => {}); } };
