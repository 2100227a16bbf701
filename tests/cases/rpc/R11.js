// source: celld issue 177; open-compute issue 91
// rule: what can't be passed is refused with its place in the value
// expected: {"name":"DataCloneError","code":25,"says":true}
import { RpcStub } from "cloudflare:workers";
export default {
  async run(_) {
    const tool = new RpcStub(() => {});
    try { await tool({ a: [0, 1, { b: Symbol("x") }] }); return "passed"; }
    catch (error) { return { name: error.name, code: error.code, says: error.message.includes("[0].a[2].b") }; }
  },
};
