// source: capnweb issue 245
// rule: what is used after it was disposed of says so, and what was not is as it was
// expected: "RPC stub used after being disposed."
export default [
  async () => { const { RpcStub } = await import("cloudflare:workers"); const stub = new RpcStub(() => 1); stub[Symbol.dispose](); return stub().catch((error) => error.message); },
  async () => { const { RpcStub } = await import("cloudflare:workers"); const stub = new RpcStub(() => 1); { using held = stub; void held; } return stub().catch((error) => error.message); },
  async () => { const { RpcStub } = await import("cloudflare:workers"); const stub = new RpcStub(() => 1); stub[Symbol.dispose](); stub[Symbol.dispose](); return stub().catch((error) => error.message); },
  async () => { const { RpcStub } = await import("cloudflare:workers"); const stub = new RpcStub({ a: { b: () => 1 } }); stub[Symbol.dispose](); return stub.a.b().catch((error) => error.message); },
  async () => {
    const { RpcStub } = await import("cloudflare:workers");
    const stub = new RpcStub(() => 1), other = stub.dup();
    stub[Symbol.dispose]();
    if (await other() !== 1) return "the other is gone";
    return stub().catch((error) => error.message);
  },
];
