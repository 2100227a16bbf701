export default { run() { for (;;); } };
