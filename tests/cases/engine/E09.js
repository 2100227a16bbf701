// source: quickjs-ng issues 1352 and 1318
// rule: symbols and cycles in weak collections are let go of, and nothing breaks at the end
// expected: "done"
export default [
  () => { const map = new WeakMap(); map.set(Symbol("a"), map); return "done"; },
  () => { const symbol = Symbol("a"), map = new WeakMap([[symbol, {}]]); map.get(symbol).back = [map, symbol]; return "done"; },
  () => { const registry = new FinalizationRegistry(() => {}); for (let i = 0; i < 1e4; i++) { const o = { registry }; o.o = o; registry.register(o, { registry }, o); } return "done"; },
  () => { const registry = new FinalizationRegistry(() => registry.register({}, 1)); registry.register(Symbol("a"), registry); for (let i = 0; i < 1e5; i++) ({ i }); return "done"; },
  () => { const set = new WeakSet(); for (let i = 0; i < 1e4; i++) { const o = { set }; set.add(o); set.add(Symbol()); } return "done"; },
  () => { const ref = new WeakRef(Symbol("a")); const o = { ref }; o.self = new WeakRef(o); return "done"; },
  () => { const map = new WeakMap(); for (let o = {}, i = 0; i < 1e4; i++) { const next = {}; map.set(o, next); o = next; } return "done"; },
  () => { globalThis.kept = new FinalizationRegistry(() => { throw new Error("late"); }); kept.register({ a: 1 }, kept); return "done"; },
  async () => { const map = new WeakMap(); const p = new Promise(() => map.set(p_, p_)); var p_ = { p }; map.set(p, p_); await null; return "done"; },
];
