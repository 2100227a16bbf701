// Questions about loading workers and calling them, asked from inside of a worker that has a loader. workerd's answers to them
// are in workerd.json.
import { WorkerEntrypoint, DurableObject, RpcTarget, RpcStub } from "cloudflare:workers";
const CD = "2026-06-01";
const mk = (src, extra = {}) => ({ compatibilityDate: CD, mainModule: "main.js", modules: { "main.js": src }, globalOutbound: null, ...extra });
const cls = (body, pre = "") => `import {WorkerEntrypoint, RpcTarget, DurableObject} from "cloudflare:workers";\n${pre}\nexport default class extends WorkerEntrypoint {\n${body}\n}`;
const DOUBLE = `export default { run(x, env, ctx) { return x * 2; } }`;
export class Echo extends WorkerEntrypoint { ping(x) { return x; } whoami() { return this.ctx.props ?? null; } async fetch(r) { return new Response("echo " + r.method + " " + r.url); } async slow() { await scheduler.wait(200); return "slow-done"; } }
export class Counter extends DurableObject { n = 0; inc(k = 1) { return this.n += k; } }
export class Tail extends WorkerEntrypoint { async tail(ev) { for (const e of JSON.parse(JSON.stringify(ev))) (globalThis.tailLog ??= []).push([e]); } }
export const outbound = { async fetch(r) { return new Response("OUT " + r.method + " " + r.url + " " + (r.headers.get("x") ?? "")); } };
export class FacetHost extends DurableObject {
  async go() {
    const w = this.env.LOADER.load(mk(`import {DurableObject} from "cloudflare:workers"; export class A extends DurableObject { i=0; constructor(c,e){super(c,e); this.c=c;} inc(){return ++this.i} async put(k,v){ await this.ctx.storage.put(k,v); return await this.ctx.storage.get(k);} sql(){ return this.ctx.storage.sql.exec("select 1+1 as two").toArray() } id(){ return String(this.ctx.id) } keys(){ return Object.keys(this.ctx.props??{}) } ctxKeys(){ const s=new Set(); for (let o=this.ctx;o&&o!==Object.prototype;o=Object.getPrototypeOf(o)) Object.getOwnPropertyNames(o).forEach(k=>s.add(k)); return [...s] } }`));
    const cl = w.getDurableObjectClass("A", { props: { p: 1 } });
    const f = this.ctx.facets.get("f1", () => ({ class: cl }));
    const out = { ctor: cl.constructor.name, inc: await f.inc(), inc2: await f.inc(), keys: await f.keys(), id: await f.id(), ctxKeys: await f.ctxKeys() };
    try { out.put = await f.put("a", { x: 1 }); } catch (e) { out.put = String(e); }
    try { out.sql = await f.sql(); } catch (e) { out.sql = String(e); }
    const bad = this.ctx.facets.get("f2", () => ({ class: w.getDurableObjectClass("Nope") }));
    try { out.bad = await bad.inc(); } catch (e) { out.bad = String(e); }
    try { const wc = this.ctx.facets.get("f3", () => ({ class: cl })); await wc.inc(); this.ctx.facets.abort("f3", new Error("aborted by parent")); out.afterAbort = await wc.inc().catch(e => String(e)); out.reget = await this.ctx.facets.get("f3", () => ({ class: cl })).inc(); } catch (e) { out.abort = String(e); }
    return out;
  }
}
const E = (e) => e === null || typeof e !== "object" ? { thrown: e === undefined ? "undefined" : e } : { name: e.name, message: e.message, ctor: e.constructor?.name, props: Object.fromEntries(Object.entries(e).map(([k, v]) => [k, String(v)])), stack0: String(e.stack ?? "").split("\n").slice(0, 3).join(" | "), cause: e.cause === undefined ? undefined : String(e.cause) };
const call = async (src, extra, fn) => { const t = typeof src === "string" ? mk(src, extra) : src; return fn ? await fn(W(t)) : await W(t).getEntrypoint().run(21); };
let LOADER; const W = (c) => LOADER.load(c);
const desc = (v) => { if (v === undefined) return "undefined"; if (typeof v === "function") return "function:" + (v.constructor?.name); if (v && typeof v === "object") { const c = v.constructor?.name; let j; try { j = JSON.stringify(v, (k, x) => typeof x === "bigint" ? x + "n" : x instanceof Map ? { Map: [...x] } : x instanceof Set ? { Set: [...x] } : x); } catch (e) { j = "unjsonable:" + e.message; } return `${c} ${j}`; } return typeof v + " " + String(v); };
const P = {};
// --- load-time errors
P.missing_main = () => call({ ...mk(DOUBLE), mainModule: "nope.js" });
P.empty_modules = () => call({ ...mk(DOUBLE), modules: {} });
P.no_modules = () => { const c = mk(DOUBLE); delete c.modules; return call(c); };
P.no_mainModule = () => { const c = mk(DOUBLE); delete c.mainModule; return call(c); };
P.no_compatDate = () => { const c = mk(DOUBLE); delete c.compatibilityDate; return call(c); };
P.bad_compatDate = () => call(mk(DOUBLE, { compatibilityDate: "yesterday" }));
P.future_compatDate = () => call(mk(DOUBLE, { compatibilityDate: "2030-01-01" }));
P.unknown_flag = () => call(mk(DOUBLE, { compatibilityFlags: ["no_such_flag"] }));
P.experimental_flag_without_allow = () => call(mk(DOUBLE, { compatibilityFlags: ["experimental"] }));
P.load_no_args = () => W();
P.load_string = () => W("code");
P.extra_unknown_field = () => call(mk(DOUBLE, { bogus: 1 }));
P.syntax_error = () => call(`export default { run( {`);
P.toplevel_throw = () => call(`throw new RangeError("boom at top");`);
P.toplevel_await = () => call(`await 1; export default { run(x) { return x } }`);
P.toplevel_await_timer = () => call(`await new Promise(r => setTimeout(r, 10)); export default { run(x) { return x } }`);
P.import_missing = () => call(`import x from "./nope.js"; export default { run(x) { return x } }`);
P.import_missing_export = () => call({ ...mk(`import {zzz} from "./a.js"; export default { run(x) { return x } }`), modules: { "main.js": `import {zzz} from "./a.js"; export default { run(x) { return x } }`, "a.js": "export const a = 1;" } });
P.import_node_without_compat = () => call(`import {Buffer} from "node:buffer"; export default { run(x) { return Buffer.from("a").toString("hex") } }`);
P.import_node_with_compat = () => call(`import {Buffer} from "node:buffer"; export default { run(x) { return Buffer.from("a").toString("hex") } }`, { compatibilityFlags: ["nodejs_compat"] });
P.import_node_crypto_fs = () => call(`import fs from "node:fs"; import crypto from "node:crypto"; import path from "node:path"; export default { run(x) { return [crypto.createHash("sha256").update("a").digest("hex").slice(0,8), path.join("a","b"), fs.readdirSync("/").join(",")] } }`, { compatibilityFlags: ["nodejs_compat"] });
P.import_bare_npm = () => call(`import _ from "lodash"; export default { run(x) { return x } }`);
P.service_worker_syntax = () => call(`addEventListener("fetch", e => e.respondWith(new Response("x")))`, {}, async (w) => (await w.getEntrypoint().fetch("http://x/")).text());
// --- module types / resolution
P.mod_ext_unknown_string = () => call({ ...mk(DOUBLE), modules: { "main.js": DOUBLE, "a.txt": "hello" } });
P.mod_mjs_string = () => call({ ...mk(DOUBLE), mainModule: "main.mjs", modules: { "main.mjs": DOUBLE } });
P.mod_ts_string = () => call({ ...mk(DOUBLE), mainModule: "main.ts", modules: { "main.ts": DOUBLE } });
P.mod_noext_obj = () => call({ ...mk(DOUBLE), mainModule: "main", modules: { "main": { js: DOUBLE } } });
P.mod_two_types = () => call({ ...mk(DOUBLE), modules: { "main.js": { js: DOUBLE, cjs: "1" } } });
P.mod_no_type = () => call({ ...mk(DOUBLE), modules: { "main.js": {} } });
P.mod_unknown_type = () => call({ ...mk(DOUBLE), modules: { "main.js": { esm: DOUBLE } } });
P.mod_number = () => call({ ...mk(DOUBLE), modules: { "main.js": 5 } });
P.mod_py_mixed = () => call({ ...mk(DOUBLE), modules: { "main.js": DOUBLE, "a.py": "x=1" } });
P.mod_all = () => { const src = `import t from "./a.txt"; import j from "./d/j.json"; import c from "c.cjs"; import d from "./b.bin"; import {v} from "./lib/x.js"; import {u} from "/lib/x.js";\n export default { run() { return [t, j, c.f(2), d.constructor.name, d.byteLength, v, u] } }`; return call({ ...mk(src), modules: { "main.js": src, "a.txt": { text: "TXT" }, "d/j.json": { json: { a: [1, null, "x"] } }, "c.cjs": { cjs: "module.exports={f:(n)=>n*10}" }, "b.bin": { data: new Uint8Array([1, 2, 3]) }, "lib/x.js": "export const v='V'; export const u='U';" } }); };
P.mod_json_undefined = () => { const src = `import j from "./j.json"; export default { run() { return j } }`; return call({ ...mk(src), modules: { "main.js": src, "j.json": { json: undefined } } }); };
P.mod_json_string_import_invalid = () => { const src = `import j from "./j.json"; export default { run() { return [typeof j, j] } }`; return call({ ...mk(src), modules: { "main.js": src, "j.json": { json: '{"a":1}' } } }); };
P.mod_wasm_bad = () => { const src = `import m from "./m.wasm"; export default { run() { return String(m) } }`; return call({ ...mk(src), modules: { "main.js": src, "m.wasm": { wasm: new Uint8Array([0, 1, 2]) } } }); };
P.mod_cjs_require = () => { const src = `import c from "c.cjs"; export default { run() { return c.f() } }`; return call({ ...mk(src), modules: { "main.js": src, "c.cjs": { cjs: "const a=require(\x27./e.js\x27), b=require(\x27./c2.cjs\x27); exports.f=()=>[typeof a, a, b, typeof module, typeof __filename, typeof exports]" }, "e.js": "export default {dv:1}; export const named=2;", "c2.cjs": { cjs: "exports.z=5" } } }); };
P.mod_dynamic_import = () => { const src = `export default { async run() { const m = await import("./x.js"); return m.v } }`; return call({ ...mk(src), modules: { "main.js": src, "x.js": "export const v = 7" } }); };
P.mod_dynamic_import_missing = () => call(`export default { async run() { return await import("./zzz.js") } }`);
P.mod_dynamic_import_data_url = () => call(`export default { async run() { return await import("data:text/javascript,export default 1") } }`);
P.mod_import_meta = () => call(`export default { async run() { return JSON.stringify(Object.keys(import.meta)) + String(import.meta.url) } }`);
P.mod_main_not_esm = () => call({ ...mk(""), mainModule: "m.txt", modules: { "m.txt": { text: "hi" } } });
P.mod_main_cjs = () => call({ ...mk(""), mainModule: "m.cjs", modules: { "m.cjs": { cjs: "module.exports = { run(x){return x*3} }" } } });
// --- entrypoints
P.ep_unknown = () => call(DOUBLE, {}, (w) => w.getEntrypoint("Nope").run(1));
P.ep_unknown_construct_ok = () => call(DOUBLE, {}, (w) => desc(w.getEntrypoint("Nope")));
P.ep_no_default = () => call(`export const a = { run(x) { return 1 } }`, {}, (w) => w.getEntrypoint().run(1));
P.ep_no_exports = () => call(`const a = 1;`, {}, (w) => w.getEntrypoint().run(1));
P.ep_default_name_forms = () => call(DOUBLE, {}, async (w) => { const o = {}; for (const n of [undefined, null, "default"]) o[String(n)] = await w.getEntrypoint(n).run(2).catch(e => e.message); o["''"] = await w.getEntrypoint("").run(2).catch(e => e.message); return o; });
P.ep_export_function = () => call(`export default function run(x) { return x }`, {}, (w) => w.getEntrypoint().run(1));
P.ep_export_plain_class = () => call(`export default class { run(x) { return x * 4 } }`);
P.ep_export_number = () => call(`export default 5`);
P.ep_do_class_as_entrypoint = () => call(`import {DurableObject} from "cloudflare:workers"; export class D extends DurableObject { run() { return 1 } }`, {}, (w) => w.getEntrypoint("D").run(1));
P.ep_limits_bad = () => call(DOUBLE, {}, (w) => w.getEntrypoint(undefined, { limits: { cpuMs: "abc" } }).run(2));
P.ep_limits_negative = () => call(DOUBLE, {}, (w) => w.getEntrypoint(undefined, { limits: { cpuMs: -5 } }).run(2));
P.ep_limits_zero = () => call(DOUBLE, {}, (w) => w.getEntrypoint(undefined, { limits: { cpuMs: 0, subRequests: 0 } }).run(2));
P.ep_props_nonobject = () => call(DOUBLE, {}, (w) => w.getEntrypoint(undefined, { props: 5 }).run(2));
P.ep_props_seen = () => call(cls(`run() { return this.ctx.props }`), {}, (w) => w.getEntrypoint(undefined, { props: { a: 1, d: new Date(0), m: new Map([[1, 2]]), u: new Uint8Array([9]) } }).run().then(desc));
P.ep_props_default = () => call(cls(`run() { return [typeof this.ctx.props, JSON.stringify(this.ctx.props)] }`));
P.ep_props_function = () => call(cls(`async run() { return await this.ctx.props.f(2) }`), {}, (w) => w.getEntrypoint(undefined, { props: { f: (x) => x } }).run());
P.ep_props_rpctarget = () => call(cls(`async run() { return 1 }`), {}, (w) => { class T extends RpcTarget { } return w.getEntrypoint(undefined, { props: { t: new T() } }).run(); });
P.ep_props_service = (env, ctx) => call(cls(`async run() { return await this.ctx.props.s.ping(3) }`), {}, (w) => w.getEntrypoint(undefined, { props: { s: ctx.exports.Echo({}) } }).run());
P.ep_props_dynamic_ep = () => call(cls(`async run() { return 1 }`), {}, (w) => w.getEntrypoint(undefined, { props: { s: w.getEntrypoint() } }).run());
P.stub_shape = () => call(DOUBLE, {}, (w) => { const names = (o) => { const s = []; for (let p = o; p && p !== Object.prototype; p = Object.getPrototypeOf(p)) s.push(p.constructor?.name + ":" + Reflect.ownKeys(p).map(String).join(",")); return s; }; return { loader: names(LOADER), worker: names(w), ep: names(w.getEntrypoint()), disposeWorker: typeof w[Symbol.dispose], disposeEp: typeof w.getEntrypoint()[Symbol.dispose] }; });
P.pass_ep_as_env = () => call(cls(`async run() { return await this.env.o.run(4) }`), { env: { o: W(mk(DOUBLE)).getEntrypoint() } });
P.pass_ep_as_rpc_arg = () => call(cls(`async go(o) { return await o.run(4) }`), {}, (w) => w.getEntrypoint().go(W(mk(DOUBLE)).getEntrypoint()));
P.pass_wrapped_ep_as_rpc_arg = () => call(cls(`async go(f) { return await f(4) }`), {}, (w) => { const o = W(mk(DOUBLE)).getEntrypoint(); return w.getEntrypoint().go((x) => o.run(x)); });
P.dyn_as_globalOutbound = () => call(`export default { async run() { return await (await fetch("http://q/")).text() } }`, { globalOutbound: W(mk(`export default { fetch(r) { return new Response("dyn " + r.url) } }`)).getEntrypoint() });
// --- get semantics
P.get_same_id = async (env) => { let n = 0; const cb = () => { n++; return mk(`let i = 0; export default { run(x) { return ++i } }`); }; const id = "same" + Math.random(); const a = await env.LOADER.get(id, cb).getEntrypoint().run(1), b = await env.LOADER.get(id, cb).getEntrypoint().run(1), c = await env.LOADER.get(id, () => mk("export default {run(x){return 'other code'}}")).getEntrypoint().run(1); return { n, a, b, c }; };
P.get_null_undefined = async (env) => { let n = 0; const cb = () => { n++; return mk(`let i = 0; export default { run(x) { return ++i } }`); }; return [await env.LOADER.get(null, cb).getEntrypoint().run(1), await env.LOADER.get(undefined, cb).getEntrypoint().run(1), n]; };
P.get_number_id = async (env) => { let n = 0; const cb = () => { n++; return mk(DOUBLE); }; await env.LOADER.get(77, cb).getEntrypoint().run(1); await env.LOADER.get("77", cb).getEntrypoint().run(1); return n; };
P.get_empty_id = async (env) => { let n = 0; const cb = () => { n++; return mk(DOUBLE); }; await env.LOADER.get("", cb).getEntrypoint().run(1); await env.LOADER.get("", cb).getEntrypoint().run(1); return n; };
P.get_no_cb = (env) => env.LOADER.get("x" + Math.random());
P.get_cb_throws_then_retry = async (env) => { const id = "thr" + Math.random(); let n = 0; const r = []; for (let i = 0; i < 3; i++) r.push(await env.LOADER.get(id, () => { n++; if (n === 1) throw new Error("first fails"); return mk(DOUBLE); }).getEntrypoint().run(2).catch(e => e.message)); return { n, r }; };
P.get_startup_fail_then_retry = async (env) => { const id = "sf" + Math.random(); let n = 0; const r = []; for (let i = 0; i < 3; i++) r.push(await env.LOADER.get(id, () => { n++; return n === 1 ? mk("throw new Error('startup')") : mk(DOUBLE); }).getEntrypoint().run(2).catch(e => e.message)); return { n, r }; };
P.get_cb_never_called_if_unused = async (env) => { let n = 0; env.LOADER.get("unused" + Math.random(), () => { n++; return mk(DOUBLE); }); await scheduler.wait(30); return n; };
P.get_cb_returns_undefined = (env) => env.LOADER.get("u" + Math.random(), () => undefined).getEntrypoint().run(1);
P.get_cb_sync_order = async (env) => { const log = []; const w = env.LOADER.get("so" + Math.random(), () => { log.push("cb"); return mk(DOUBLE); }); log.push("after get"); const ep = w.getEntrypoint(); log.push("after ep"); await ep.run(1); return log; };
P.load_isolation = async (env) => { const src = `let i = 0; globalThis.q = (globalThis.q ?? 0); export default { run(x) { globalThis.q++; Array.prototype.zz = 1; return [++i, globalThis.q] } }`; const a = W(mk(src)), b = W(mk(src)); return [await a.getEntrypoint().run(1), await a.getEntrypoint().run(1), await b.getEntrypoint().run(1), [].zz ?? "parent clean"]; };
P.load_error_is_sync_or_async = async () => { const r = {}; try { const w = W({ ...mk(DOUBLE), modules: {} }); r.load = "no throw"; } catch (e) { r.emptyModules = "sync " + e.message; } try { const w = W(mk("export default {")); r.syntax = "load ok"; const ep = w.getEntrypoint(); r.syntax += ", ep ok"; await ep.run(1); } catch (e) { r.syntaxCall = e.message; } return r; };
// --- env values
const envCase = (v) => () => call(cls(`async run() { const v = this.env.v; return [typeof v, v?.constructor?.name, String(v)] }`), { env: { v } });
P.env_prims = () => call(cls(`run() { return this.env }`), { env: { s: "a", n: 1, b: true, nul: null, und: undefined, big: 10n, d: new Date(0), m: new Map([["a", 1]]), st: new Set([1]), u8: new Uint8Array([1]), ab: new ArrayBuffer(2), re: /x/g, err: new TypeError("t"), nest: { a: [1, { b: 2 }] }, nan: NaN, inf: Infinity, neg0: -0 } }).then(desc);
P.env_function = envCase((() => { }));
P.env_symbol = envCase(Symbol("q"));
P.env_classinst = envCase(new (class Foo { a = 1 }));
P.env_nullproto = envCase(Object.create(null));
P.env_promise = envCase(Promise.resolve(1));
P.env_url = () => envCase(new URL("http://x/"))();
P.env_headers = () => envCase(new Headers({ a: "b" }))();
P.env_request = () => envCase(new Request("http://x/"))();
P.env_response = () => envCase(new Response("x"))();
P.env_blob = () => envCase(new Blob(["x"]))();
P.env_stream = () => envCase(new ReadableStream({ type: "bytes" }))();
P.env_rpctarget = () => { class T extends RpcTarget { } return envCase(new T())(); };
P.env_rpcstub = () => { class T extends RpcTarget { } return envCase(new RpcStub(new T()))(); };
P.env_rpcstub_fn = () => envCase(new RpcStub((x) => x))();
P.env_exports_uncalled = (env, ctx) => envCase(ctx.exports.Echo)();
P.env_exports_called = (env, ctx) => call(cls(`async run() { return [await this.env.v.ping(5), await this.env.v.whoami(), await (await this.env.v.fetch("http://a/b")).text()] }`), { env: { v: ctx.exports.Echo({ props: { who: "me" } }) } });
P.env_service_binding = (env) => call(cls(`async run() { return [typeof this.env.v, this.env.v.constructor.name] }`), { env: { v: env.CLOCK } });
P.env_do_stub = (env, ctx) => call(cls(`async run() { return [await this.env.v.inc(2), await this.env.v.inc(3)] }`), { env: { v: ctx.exports.Counter.getByName("e" + Math.random()) } });
P.env_do_namespace = (env, ctx) => envCase(env.NS)();
P.env_loader = (env) => envCase(env.LOADER)();
P.env_worker_stub = () => envCase(W(mk(DOUBLE)))();
P.env_mutation_isolated = async () => { const e = { a: { b: 1 } }; const w = W(mk(cls(`run() { this.env.a.b++; return this.env.a.b }`), { env: e })); return [await w.getEntrypoint().run(), await w.getEntrypoint().run(), e.a.b]; };
P.env_after_load_change = async () => { const e = { a: 1 }; const w = W(mk(cls(`run() { return this.env.a }`), { env: e })); e.a = 2; return await w.getEntrypoint().run(); };
P.env_nonobject = () => call(DOUBLE, { env: 5 });
P.env_null = () => call(DOUBLE, { env: null });
P.env_import = () => call(`import {env} from "cloudflare:workers"; export default { run() { return env.a } }`, { env: { a: 9 } });
P.env_too_big = () => call(DOUBLE, { env: { a: "x".repeat(1 << 20) } });
P.code_too_big = () => call({ ...mk(DOUBLE), modules: { "main.js": DOUBLE, "b.txt": { text: "x".repeat(64 * 1024 * 1024) } } });
// --- outbound
P.out_null_fetch = () => call(`export default { async run() { return (await fetch("http://x/")).status } }`);
P.out_null_connect = () => call(`import {connect} from "cloudflare:sockets"; export default { async run() { const s = connect("example.com:80"); await s.opened; return 1 } }`);
P.out_undefined_inherit = () => { const c = mk(`export default { async run() { return (await fetch("http://internet.test/")).status } }`); delete c.globalOutbound; return call(c); };
P.out_fetcher = (env, ctx) => call(`export default { async run() { return await (await fetch("http://x/y", { method: "POST", headers: { x: "hdr" } })).text() } }`, { globalOutbound: ctx.exports.outbound });
P.out_fetcher_called = (env, ctx) => call(`export default { async run() { return await (await fetch("http://x/y")).text() } }`, { globalOutbound: ctx.exports.Echo({ props: { a: 1 } }) });
P.out_string = () => call(DOUBLE, { globalOutbound: "no" });
P.out_plainobj = () => call(DOUBLE, { globalOutbound: { fetch() { return new Response("x") } } });
P.out_websocket = () => call(`export default { async run() { const w = new WebSocket("ws://x/"); return await new Promise((r) => { w.addEventListener("error", (e) => r("err " + e.message)); w.addEventListener("open", () => r("open")); }) } }`);
P.out_cache = () => call(`export default { async run() { return String(await caches.default.match("http://x/")) } }`);
P.subreq_limit = (env, ctx) => call(`export default { async run() { let n = 0; for (let i = 0; i < 5; i++) { await (await fetch("http://x/")).text(); n++; } return n } }`, { globalOutbound: ctx.exports.outbound, limits: { cpuMs: 50, subRequests: 2 } });
P.subreq_limit_ep = (env, ctx) => call(`export default { async run() { let n = 0; for (let i = 0; i < 5; i++) { await (await fetch("http://x/")).text(); n++; } return n } }`, { globalOutbound: ctx.exports.outbound }, (w) => w.getEntrypoint(undefined, { limits: { subRequests: 2 } }).run(1));
P.cpu_limit_500ms_spin = () => call(`export default { run() { let x = 0; for (let i = 0; i < 3e8; i++) x += i; return "completed " + x } }`, { limits: { cpuMs: 5 } });
// --- rpc values
const ret = (expr, pre) => () => call(cls(`async run() { return ${expr} }`, pre)).then(desc);
Object.assign(P, {
  ret_undefined: ret("undefined"), ret_bigint: ret("10n"), ret_symbol: ret("Symbol('x')"), ret_date: ret("new Date(0)"), ret_regexp: ret("/a/gi"), ret_map: ret("new Map([[{a:1},2]])"), ret_set: ret("new Set([1])"), ret_cyclic: ret("(()=>{const a={};a.self=a;return {same:a.self===a,a}})()"), ret_error: ret("new TypeError('tt')"), ret_error_fields: ret("Object.assign(new Error('m',{cause:'c'}),{code:5})"), ret_typed: ret("new Float64Array([1.5])"), ret_ab: ret("new ArrayBuffer(3)"), ret_dataview: ret("new DataView(new ArrayBuffer(2))"), ret_class: ret("new Foo()", "class Foo { a = 1 }"), ret_nullproto: ret("Object.create(null)"), ret_promise_nested: ret("{ p: Promise.resolve(1) }"), ret_fn: ret("(x)=>x"), ret_asyncgen: ret("(async function*(){ yield 1 })()"), ret_iter: ret("[1,2][Symbol.iterator]()"), ret_weakmap: ret("new WeakMap()"), ret_proxy: ret("new Proxy({a:1},{})"), ret_url: ret("new URL('http://x/')"), ret_headers: ret("new Headers({a:'b'})"), ret_formdata: ret("new FormData()"), ret_searchparams: ret("new URLSearchParams('a=1')"), ret_blob: ret("new Blob(['a'])"), ret_abortsignal: ret("AbortSignal.timeout(1000)"), ret_sparse: ret("(()=>{const a=[1,,3];return [1 in a, a]})()"), ret_negzero: ret("Object.is(-0, -0) ? -0 : 0"), ret_boxed: ret("new Number(5)"), ret_websocketpair: ret("new WebSocketPair()"), ret_cryptokey: ret("await crypto.subtle.generateKey({name:'AES-GCM',length:128},true,['encrypt'])"), ret_domexc: ret("new DOMException('m','AbortError')"), ret_wasmmodule: ret("new WebAssembly.Module(new Uint8Array([0,97,115,109,1,0,0,0]))"), ret_sharedab: ret("new SharedArrayBuffer(8)"), ret_rpctarget: ret("new T()", "class T extends RpcTarget { x() { return 1 } }"), ret_getter_obj: ret("({ get g() { return 3 } })"), ret_event: ret("new Event('x')"), ret_arguments: ret("(function(){return arguments})(1,2)"), ret_generatorfn: ret("function*(){ yield 1 }"), ret_writable: ret("new WritableStream()"), ret_readable_js_values: () => call(cls(`async run() { return new ReadableStream({ start(c) { c.enqueue({a:1}); c.close(); } }) }`)).then(async (s) => { const r = []; for await (const c of s) r.push(desc(c)); return r; }),
});
P.ret_33mib = () => call(cls(`async run() { return "x".repeat(33*1024*1024) }`)).then(s => s.length);
P.ret_31mib = () => call(cls(`async run() { return "x".repeat(31*1024*1024) }`)).then(s => s.length);
P.arg_33mib = () => call(cls(`async go(s) { return s.length }`), {}, (w) => w.getEntrypoint().go("x".repeat(33 * 1024 * 1024)));
P.stream_100mib = () => call(cls(`async run() { let n=0; return new ReadableStream({ type:"bytes", pull(c) { if (n++>=100) c.close(); else c.enqueue(new Uint8Array(1<<20)); } }) }`)).then(async (s) => { let n = 0; for await (const c of s) n += c.byteLength; return n; });
P.ret_response = () => call(cls(`async run() { return new Response("body", { status: 201, headers: { a: "b" } }) }`)).then(async (r) => [r.constructor.name, r.status, r.headers.get("a"), await r.text()]);
P.ret_request = () => call(cls(`async run() { return new Request("http://x/", { method: "POST", body: "bb" }) }`)).then(async (r) => [r.constructor.name, r.method, await r.text()]);
P.fn_callback = () => call(cls(`async go(f) { return [typeof f, f.constructor.name, await f(1), await f.prop] }`), {}, (w) => { const f = (x) => x + 1; f.prop = "pp"; return w.getEntrypoint().go(f); });
P.fn_returned = () => call(cls(`go(n) { let i = n; return () => ++i }`), {}, async (w) => { const f = await w.getEntrypoint().go(5); return [typeof f, f.constructor.name, await f(), await f()]; });
P.rpctarget_rules = () => call(cls(`go() { return new T() }`, `class Base extends RpcTarget { base() { return "base" } } class T extends Base { own = 1; #p = 2; constructor() { super(); this.ownFn = () => 3; } m() { return 4 } get g() { return 5 } static s() { return 6 } _u() { return 7 } [Symbol.for("q")]() { return 8 } async boom() { throw new RangeError("rr") } get fn() { return (x) => x + 1 } set z(v) {} }`), {}, async (w) => { const t = await w.getEntrypoint().go(); const o = {}; for (const k of ["m", "base", "_u", "ownFn", "toString", "constructor", "dup", "boom", "nope", "fn", "hasOwnProperty", "__proto__", "prototype", "then", "catch", "s", "fetch", "connect"]) { try { const r = t[k]; o["call " + k] = typeof r !== "function" ? "not callable: " + typeof r : desc(await t[k](1)); } catch (e) { o["call " + k] = e.name + ": " + e.message; } } for (const k of ["g", "own", "z", "nope", "m"]) { try { o["get " + k] = desc(await t[k]); } catch (e) { o["get " + k] = e.name + ": " + e.message; } } return o; });
P.entrypoint_reserved = () => call(cls(`m(){return 1} _u() { return 2 } get g() { return 3 } constructor(c,e){super(c,e); this.own=1;} alarm(){return 'a'} webSocketMessage(){return 1} tail(){return 't'} scheduled(){return 's'} queue(){return 'q'} test(){return 'x'} then(){return 'th'}`), {}, async (w) => { const t = w.getEntrypoint(); const o = {}; for (const k of ["m", "_u", "g", "own", "env", "ctx", "toString", "constructor", "dup", "alarm", "webSocketMessage", "webSocketClose", "connect", "tail", "scheduled", "queue", "test", "then", "nope", "__proto__", "get", "put", "delete"]) { try { const r = t[k]; o[k] = typeof r !== "function" ? "not callable: " + typeof r : desc(await Promise.race([t[k](1), scheduler.wait(300).then(() => "TIMEOUT")])); } catch (e) { o[k] = e.name + ": " + e.message; } } try { o.get_g = await t.g; } catch (e) { o.get_g = e.message; } return o; });
P.plain_object_args = () => call(`export default { a0() { return arguments.length }, a1(x) { return [x, arguments.length, typeof arguments[1], typeof arguments[2]] }, a3(x, env, ctx) { return [x, typeof env, typeof ctx.waitUntil] }, a4(a, b, env, ctx) { return 1 }, prop: 5, nested: { f(x) { return x } }, get g() { return 6 } }`, {}, async (w) => { const t = w.getEntrypoint(); const o = {}; for (const [k, f] of Object.entries({ "a0(1)": () => t.a0(1), "a0()": () => t.a0(), "a1(1)": () => t.a1(1), "a1(1,2)": () => t.a1(1, 2), "a3(1)": () => t.a3(1), "a3()": () => t.a3(), "a4(1,2)": () => t.a4(1, 2), "prop": () => t.prop, "nested.f(1)": () => t.nested.f(1), g: () => t.g, toString: () => t.toString(), "nope(1)": () => t.nope(1), "prop(1)": () => t.prop(1) })) { try { o[k] = desc(await f()); } catch (e) { o[k] = e.name + ": " + e.message; } } return o; });
P.pipelining = () => call(cls(`mk(n) { return new C(n) } obj(n) { return { c: new C(n), v: n, deep: { a: { b: n } } } }`, `class C extends RpcTarget { #n; constructor(n) { super(); this.#n = n } inc(k) { return this.#n += k } child() { return new C(this.#n * 10) } }`), {}, async (w) => { const e = w.getEntrypoint(); const o = {}; o.a = await e.mk(1).inc(2); o.b = await e.obj(3).c.inc(1); o.c = await e.obj(4).deep.a.b; o.d = await e.mk(2).child().child().inc(1); using p = e.mk(5); o.e = await Promise.all([p.inc(1), p.inc(1), p.inc(1)]); o.f = await e.obj(1).v.nope.catch(x => x.message); o.g = await e.mk(1).nope().catch(x => x.message); let q = e; try { for (let i = 0; i < 70; i++) q = q.x; o.depth = "no throw"; } catch (x) { o.depth = x.name + ": " + x.message; } return o; });
P.disposal = () => call(cls(`mk() { return new C() } disposed() { return globalThis.disposed ?? 0 } obj() { return { c: new C(), [Symbol.dispose]() { globalThis.objDisposed = (globalThis.objDisposed ?? 0) + 1 } } } objDisposed() { return globalThis.objDisposed ?? 0 } async keep(f) { globalThis.kept = f.dup(); return await f(1) } async useKept() { return await globalThis.kept(2) }`, `class C extends RpcTarget { hi() { return "hi" } [Symbol.dispose]() { globalThis.disposed = (globalThis.disposed ?? 0) + 1 } }`), {}, async (w) => { const e = w.getEntrypoint(); const o = {}; { using c = await e.mk(); o.hi = await c.hi(); } await scheduler.wait(20); o.disposedAfterUsing = await e.disposed(); const c2 = await e.mk(); const d = c2.dup(); c2[Symbol.dispose](); o.afterDispose = await c2.hi().catch(x => x.message); o.dupOk = await d.hi(); o.disposed2 = await e.disposed(); d[Symbol.dispose](); await scheduler.wait(20); o.disposed3 = await e.disposed(); { using x = await e.obj(); o.objHi = await x.c.hi(); } await scheduler.wait(20); o.objDisposed = await e.objDisposed(); const p = e.mk(); p[Symbol.dispose](); o.disposedPromise = await p.hi().catch(x => x.message); o.keep = await e.keep((x) => x + 100); o.useKept = await e.useKept().catch(x => x.message); return o; });
P.arg_stub_transfer = () => call(cls(`async go(c) { return await c.hi() }`), {}, async (w) => { class C extends RpcTarget { hi() { return "hi" } [Symbol.dispose]() { globalThis.dd = (globalThis.dd ?? 0) + 1; } } globalThis.dd = 0; const e = w.getEntrypoint(); const s = new RpcStub(new C()); const a = await e.go(s); const b = await e.go(s).catch(x => x.message); await scheduler.wait(10); const t = new C(); await e.go(t); await scheduler.wait(20); return { a, b, dd: globalThis.dd }; });
// --- errors
for (const [k, ex] of Object.entries({ err_plain: "throw new Error('m')", err_type: "throw new TypeError('m')", err_custom: "class MyErr extends Error { constructor(m){super(m); this.name='MyErr'; this.code=7; this.obj={a:1}} }; throw new MyErr('cm')", err_cause: "throw new Error('m', {cause: new Error('inner')})", err_aggregate: "throw new AggregateError([new Error('a')], 'agg')", err_string: "throw 'str'", err_object: "throw {a:1}", err_null: "throw null", err_undefined: "throw undefined", err_dom: "throw new DOMException('m','AbortError')", err_fn: "throw Object.assign(new Error('withfn'),{f(){}})", err_reference: "return zzz", err_stackoverflow: "const f=()=>f()+1; return f()", err_reject: "return Promise.reject(new Error('rej'))" })) P[k] = () => call(cls(`async run() { ${ex} }`));
P.err_stack_visible = () => call(cls(`run() { throw new Error('m') }`)).catch(e => ({ stack: e.stack, remote: e.remote }));
P.never_resolves = () => call(cls(`run() { return new Promise(() => {}) }`));
P.never_resolves_with_timer = () => Promise.race([call(cls(`run() { setTimeout(() => {}, 100); return new Promise(() => {}) }`)), scheduler.wait(1500).then(() => "TIMEOUT 1500ms")]);
P.waitUntil_after = async () => { const w = W(mk(cls(`run() { globalThis.s = "pending"; this.ctx.waitUntil(scheduler.wait(50).then(() => { globalThis.s = "done" })); return 1 } state() { return globalThis.s }`))); const e = w.getEntrypoint(); await e.run(); const a = await e.state(); await scheduler.wait(100); return [a, await e.state()]; };
P.timer_without_waitUntil = async () => { const w = W(mk(cls(`run() { globalThis.s = "pending"; setTimeout(() => { globalThis.s = "done" }, 50); return 1 } state() { return globalThis.s }`))); const e = w.getEntrypoint(); await e.run(); await scheduler.wait(150); return await e.state(); };
P.abort_promise_dispose_midcall = async () => { const w = W(mk(cls(`async run() { globalThis.s = 0; for (let i = 0; i < 10; i++) { await scheduler.wait(20); globalThis.s++; } return 1 } state() { return globalThis.s }`))); const e = w.getEntrypoint(); const p = e.run(); p.catch(() => { }); await scheduler.wait(50); p[Symbol.dispose](); await scheduler.wait(300); return ["steps run after dispose at ~2:", await e.state()]; };
P.abort_signal_arg = () => call(cls(`async go(sig) { return await new Promise(r => { sig.addEventListener("abort", () => r("aborted " + sig.reason)) }) }`), {}, async (w) => { const ac = new AbortController(); const p = w.getEntrypoint().go(ac.signal); scheduler.wait(30).then(() => ac.abort(new Error("why"))); return await p; });
P.ctx_abort = () => call(cls(`async run() { this.ctx.abort(new Error("aborted!")); return 1 }`));
P.ctx_shape = () => call(cls(`run() { const s = []; for (let o = this.ctx; o && o !== Object.prototype; o = Object.getPrototypeOf(o)) s.push(...Reflect.ownKeys(o).map(String)); return s }`));
P.ctx_exports = () => call(cls(`async run() { return [Object.keys(this.ctx.exports), await this.ctx.exports.Other.hi(), await this.ctx.exports.Other({ props: { a: 1 } }).p()] }`, `export class Other extends WorkerEntrypoint { hi() { return "hi" } p() { return this.ctx.props } }`));
P.exports_import = () => call(`import * as cw from "cloudflare:workers"; export default { run() { return Object.keys(cw) } }`);
P.using_syntax = () => call(`export default { run() { let d = 0; { using x = { [Symbol.dispose]() { d++ } }; } return d } }`);
// --- sandbox
P.eval_blocked = () => call(`export default { run() { const o = {}; for (const [k, f] of Object.entries({ eval: () => eval("1+1"), Function: () => new Function("return 1")(), wasm: () => new WebAssembly.Module(new Uint8Array([0,97,115,109,1,0,0,0])), AsyncFn: () => new (async()=>{}).constructor("return 1") })) { try { o[k] = String(f()) } catch (e) { o[k] = e.name + ": " + e.message } } return o } }`);
P.global_scope_ops = async () => { const o = {}; for (const [k, s] of Object.entries({ fetch: "fetch('http://x/')", setTimeout: "setTimeout(()=>{},1)", random: "globalThis.r = Math.random()", uuid: "globalThis.r = crypto.randomUUID()", getRandomValues: "crypto.getRandomValues(new Uint8Array(1))", date: "globalThis.r = Date.now()", response: "new Response('x')", perf: "globalThis.r = performance.now()", log: "console.log('hi from global')" })) { try { o[k] = await call(`${s};\nexport default { run() { return String(globalThis.r) } }`); } catch (e) { o[k] = e.name + ": " + e.message; } } return o; };
P.time_frozen = () => call(`export default { async run() { const a = Date.now(); let x = 0; for (let i = 0; i < 5e7; i++) x += i; const b = Date.now(); await scheduler.wait(20); const c = Date.now(); const p = performance.now(); return [b - a, c - b, p] } }`);
P.globals_list = () => call(`export default { run() { return Object.getOwnPropertyNames(globalThis).sort() } }`);
P.globals_list_node = () => call(`export default { run() { return Object.getOwnPropertyNames(globalThis).sort() } }`, { compatibilityFlags: ["nodejs_compat"] });
P.process_env_node = () => call(`export default { run() { return [typeof process, JSON.stringify(process.env), process.version, process.platform] } }`, { compatibilityFlags: ["nodejs_compat"], env: { A: "x", B: 3 } });
P.deep_recursion = () => call(`export default { run() { let d = 0; const f = () => { d++; f() }; try { f() } catch (e) { return [d, e.name, e.message] } } }`);
P.deep_recursion_uncaught = () => call(`export default { run() { const f = () => 1 + f(); return f() } }`);
P.json_deep = () => call(`export default { run() { let a = []; for (let i = 0; i < 200000; i++) a = [a]; return JSON.stringify(a).length } }`);
P.ret_deep_object = () => call(cls(`run() { let a = {}; for (let i = 0; i < 200000; i++) a = {a}; return a }`)).then(() => "ok");
P.regex_redos = () => Promise.race([call(`export default { run() { return /^(a+)+$/.test("a".repeat(24) + "!") } }`)]);
P.stream_chunks = () => call(cls(`async fetch() { const e = new TextEncoder(); let i = 0; return new Response(new ReadableStream({ async pull(c) { await scheduler.wait(20); if (i++ >= 3) c.close(); else c.enqueue(e.encode("c" + i)); } })) }`), {}, async (w) => { const r = await w.getEntrypoint().fetch("http://x/"); const d = new TextDecoder(), out = []; for await (const c of r.body) out.push(d.decode(c)); return out; });
P.fetch_no_handler = () => call(DOUBLE, {}, async (w) => (await w.getEntrypoint().fetch("http://x/")).status);
P.fetch_relative = () => call(`export default { fetch(r) { return new Response(r.url) } }`, {}, async (w) => (await w.getEntrypoint().fetch("/abc")).text());
P.fetch_throws = () => call(`export default { fetch(r) { throw new Error("ft") } }`, {}, async (w) => (await w.getEntrypoint().fetch("http://x/")).text());
P.fetch_nonresponse = () => call(`export default { fetch(r) { return 5 } }`, {}, async (w) => (await w.getEntrypoint().fetch("http://x/")).text());
P.tails = async (env, ctx) => { globalThis.tailLog = []; const w = W(mk(cls(`run() { console.log("L", {a:1}, 5); console.error("E"); return 1 } boom() { console.warn("W"); throw new TypeError("tb") } fetch() { return new Response("f") }`), { tails: [ctx.exports.Tail({})] })); const e = w.getEntrypoint(); await e.run(); await e.boom().catch(() => { }); await (await e.fetch("http://x/")).text(); await scheduler.wait(200); return globalThis.tailLog; };
P.streamingTails_noexp = (env, ctx) => call(DOUBLE, { streamingTails: [ctx.exports.Tail({})] });
P.allowExperimental_ok = () => call(DOUBLE, { allowExperimental: true, compatibilityFlags: ["experimental"] });
P.facets = (env, ctx) => ctx.exports.FacetHost.getByName("h").go();
P.nested_loader_absent = () => call(cls(`run() { return Object.keys(this.env) }`));
P.abortIsolate = (env) => call(cls(`run() { abortIsolate("x") }`, `import { abortIsolate } from "cloudflare:workers";`), { allowExperimental: true, compatibilityFlags: ["experimental"] });
P.stub_across_requests_1 = async () => { const w = W(mk(`let i=0; export default { run() { return ++i } }`)); globalThis.savedW = w; globalThis.savedEp = w.getEntrypoint(); return await globalThis.savedEp.run(1); };
P.stub_across_requests_2 = async () => { const o = {}; try { o.ep = await globalThis.savedEp.run(1); } catch (e) { o.ep = e.message; } try { o.w = await globalThis.savedW.getEntrypoint().run(1); } catch (e) { o.w = e.message; } return o; };
P.many_concurrent = async () => { const rs = await Promise.all(Array.from({ length: 50 }, (_, i) => W(mk(`export default { async run(x) { await scheduler.wait(30); return x } }`)).getEntrypoint().run(i))); return rs.length; };

P.abort_signal_flag = () => call(cls(`async go(sig) { return await new Promise(r => { sig.addEventListener("abort", () => r("aborted " + sig.reason)) }) }`), { compatibilityFlags: ["enable_abortsignal_rpc"] }, async (w) => { const ac = new AbortController(); const p = w.getEntrypoint().go(ac.signal); scheduler.wait(30).then(() => ac.abort(new Error("why"))); return await p; });
P.stream_bytes_from_js = () => call(cls(`async run() { return new ReadableStream({ start(c) { c.enqueue(new TextEncoder().encode("ab")); c.close(); } }) }`)).then(async (s) => { const r = []; for await (const c of s) r.push(desc(c)); return r; });
P.stream_strings = () => call(cls(`async run() { return new ReadableStream({ start(c) { c.enqueue("ab"); c.close(); } }) }`)).then(async (s) => { const r = []; for await (const c of s) r.push(desc(c)); return r; });
P.stream_arg = () => call(cls(`async go(s) { return await new Response(s).text() }`), {}, (w) => w.getEntrypoint().go(new Response("hello stream").body));
P.stream_cancel = async () => { const w = W(mk(cls(`async run() { let n = 0; return new ReadableStream({ type: "bytes", async pull(c) { await scheduler.wait(5); n++; c.enqueue(new Uint8Array(10)); }, cancel(r) { globalThis.cancelled = String(r) } }) } state() { return globalThis.cancelled ?? "not cancelled" }`))); const e = w.getEntrypoint(); const s = await e.run(); const r = s.getReader(); await r.read(); await r.cancel("bye"); await scheduler.wait(50); return await e.state(); };
P.request_signal_cancel = async () => { const w = W(mk(cls(`async fetch(req) { req.signal.addEventListener("abort", () => { globalThis.ab = 1 }); globalThis.s = 0; for (let i = 0; i < 10; i++) { await scheduler.wait(20); globalThis.s++; } return new Response("x") } state() { return [globalThis.s, globalThis.ab] }`))); const e = w.getEntrypoint(); const ac = new AbortController(); const p = e.fetch("http://x/", { signal: ac.signal }).catch(x => x.name + ": " + x.message); await scheduler.wait(50); ac.abort(); const r = await p; await scheduler.wait(300); return [r, await e.state()]; };
P.ws_upgrade = () => call(`export default { fetch(r) { const [a, b] = Object.values(new WebSocketPair()); b.accept(); b.addEventListener("message", (m) => b.send("echo " + m.data)); return new Response(null, { status: 101, webSocket: a }) } }`, {}, async (w) => { const r = await w.getEntrypoint().fetch("http://x/", { headers: { Upgrade: "websocket" } }); const s = r.webSocket; s.accept(); const p = new Promise(res => s.addEventListener("message", m => res(m.data))); s.send("hi"); return await p; });
P.connect_handler = () => call(`export default { async connect(s) { const w = s.writable.getWriter(); await w.write(new TextEncoder().encode("yo")); await w.close(); } }`, {}, async (w) => { const s = w.getEntrypoint().connect("a:1"); return await new Response(s.readable).text(); });
P.scheduled_queue_on_fetcher = () => call(`export default { async scheduled(e) { return } }`, {}, async (w) => typeof w.getEntrypoint().scheduled);
P.callback_after_return = async () => { const w = W(mk(cls(`go(f) { this.ctx.waitUntil((async () => { await scheduler.wait(30); try { globalThis.r = await f(1) } catch (e) { globalThis.r = e.message } })()); return 1 } state() { return globalThis.r ?? "none" }`))); const e = w.getEntrypoint(); await e.go((x) => x + 1); await scheduler.wait(100); return await e.state(); };
P.callback_after_return_dup = async () => { const w = W(mk(cls(`go(f) { const g = f.dup(); this.ctx.waitUntil((async () => { await scheduler.wait(30); try { globalThis.r = await g(1) } catch (e) { globalThis.r = e.message } })()); return 1 } state() { return globalThis.r ?? "none" }`))); const e = w.getEntrypoint(); await e.go((x) => x + 1); await scheduler.wait(100); return await e.state(); };
P.reentrant = () => call(cls(`async go(f, n) { return n === 0 ? "bottom" : await f(n - 1) }`), {}, async (w) => { const e = w.getEntrypoint(); const f = (n) => e.go(f, n); return await e.go(f, 20); });
P.order = () => call(cls(`push(x) { (globalThis.a ??= []).push(x); return globalThis.a.length } all() { return globalThis.a }`), {}, async (w) => { const e = w.getEntrypoint(); const ps = []; for (let i = 0; i < 8; i++) ps.push(e.push(i)); await Promise.all(ps); return await e.all(); });
P.rpctarget_class_state = () => call(cls(`run2() { return [this.constructor.name, this.x ??= 1, ++this.x] }`), {}, async (w) => { const e = w.getEntrypoint(); return [await e.run2(), await e.run2()]; });
P.error_in_callback = () => call(cls(`async go(f) { try { await f() } catch (e) { return [e.name, e.message, e.remote, e.code, e instanceof TypeError, e.stack] } }`), {}, (w) => w.getEntrypoint().go(() => { throw Object.assign(new TypeError("cb"), { code: 3 }); }));
P.log_stdout = () => call(`export default { run() { console.log("child log", {a:1}); console.error("child err"); return 1 } }`);
P.intl_tz = () => call(`export default { run() { return [Intl.DateTimeFormat().resolvedOptions().timeZone, navigator.userAgent, navigator.hardwareConcurrency, Error.stackTraceLimit, typeof SharedArrayBuffer, typeof Atomics.wait, typeof WebAssembly.instantiate, typeof gc] } }`);
P.atomics_wait = () => call(`export default { run() { return Atomics.wait(new Int32Array(new SharedArrayBuffer(8)), 0, 0, 50) } }`);
P.proto_pollution_props = () => call(cls(`run2() { return this.ctx.props }`), {}, async (w) => { const p = JSON.parse('{"__proto__": {"x": 1}, "a": 2}'); return JSON.stringify(await w.getEntrypoint(undefined, { props: p }).run2()); });
P.globals_diff = () => call(`export default { run() { return 1 } }`);
P.props_getter = () => call(cls(`get a() { globalThis.c = (globalThis.c ?? 0) + 1; return { n: globalThis.c, f: (x) => x * 2, t: new T() } } set a(v) { globalThis.set = v }`, `class T extends RpcTarget { hi() { return "hi" } }`), {}, async (w) => { const e = w.getEntrypoint(); const o = {}; o.n1 = await e.a.n; o.n2 = await e.a.n; o.f = await e.a.f(4); o.t = await e.a.t.hi(); try { e.a = 5; o.set = "assigned locally"; } catch (x) { o.set = x.name + ": " + x.message; } return o; });
P.async_iter_arg = () => call(cls(`async go(x) { return typeof x }`), {}, (w) => w.getEntrypoint().go((async function* () { yield 1; })()));
P.arg_identity = () => call(cls(`go(a, b) { return [a === b, a.self === a] }`), {}, (w) => { const a = { x: 1 }; a.self = a; return w.getEntrypoint().go(a, a); });
P.arg_many = () => call(cls(`go(...a) { return a.length }`), {}, (w) => w.getEntrypoint().go(...Array.from({ length: 1000 }, (_, i) => i)));
P.undefined_args = () => call(cls(`go(...a) { return [a.length, a.map(x => typeof x)] }`), {}, (w) => w.getEntrypoint().go(undefined, null, undefined));
P.double_await = () => call(cls(`go() { return { v: 1 } }`), {}, async (w) => { const p = w.getEntrypoint().go(); return [await p, await p, typeof p.then, p instanceof Promise, p.constructor.name, Object.prototype.toString.call(p)]; });
P.call_not_awaited = async () => { const w = W(mk(cls(`go() { globalThis.n = (globalThis.n ?? 0) + 1 } st() { return globalThis.n ?? 0 }`))); const e = w.getEntrypoint(); e.go(); e.go(); await scheduler.wait(30); return await e.st(); };
export default {
  async ask(name, env, ctx) {
    LOADER = env.LOADER;
    try {
      const value = await P[name](env, ctx);
      return JSON.stringify({ ok: true, value: value === undefined ? "undefined" : value });
    } catch (error) {
      return JSON.stringify({ ok: false, error: E(error) });
    }
  },
  names: (_) => Object.keys(P),
};
