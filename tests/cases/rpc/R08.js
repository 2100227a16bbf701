// source: capnweb issue 245
// rule: what is used after it was disposed of says so
// expected: ["RPC stub used after being disposed.","RPC promise used after being disposed."]
import { RpcStub, RpcTarget } from "cloudflare:workers";
class Boat extends RpcTarget { row() { return 1; } self() { return this; } }
export default {
  async run(_) {
    const stub = new RpcStub(new Boat());
    const promise = stub.self();
    promise[Symbol.dispose]();
    const second = await promise.row().catch((error) => error.message);
    stub[Symbol.dispose]();
    return [await stub.row().catch((error) => error.message), second];
  },
};
