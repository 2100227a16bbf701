export default { run() { return new ArrayBuffer(8 * 2 ** 30).byteLength; } };
