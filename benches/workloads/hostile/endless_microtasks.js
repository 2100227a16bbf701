export default { async run() { for (;;) await 0; } };
