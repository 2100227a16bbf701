// The prelude in a context of its own, put together as in the guest, with a host that notes what it is asked.

import { readFileSync } from "node:fs";
import { types } from "node:util";
import v8 from "node:v8";
import vm from "node:vm";

// ArrayBuffer.prototype.transfer, in contexts made from now on, where this Node has it only behind a flag.
if (!("transfer" in ArrayBuffer.prototype)) v8.setFlagsFromString("--harmony-rab-gsab-transfer");

const read = (path) => readFileSync(new URL(path, import.meta.url), "utf8");

// The files in the order in which the build joins them.
export const files = [...read("../../build.rs").matchAll(/^ {4}"([\w-]+\.js)",$/gm)].map(([, name]) => name);
export const texts = new Map(files.map((name) => [name, read(`../${name}`)]));
export const source = [...texts.values()].join("\n");

// What the tests ask the prelude for.
export const exported = "{ hooks, inspect, inspectKind, inspectView, makeConsole }";

// What libraries do in the Rust core, done by those of Node. Lists are what the prelude is given: of the host's realm.
const href = (url) => {
  const at = { scheme: url.protocol.length - 1 };
  const text = url.href;
  const authority = text.startsWith(`${url.protocol}//`) ? at.scheme + 3 : at.scheme + 1;
  const credentials = url.username === "" && url.password === "" ? 0 : 1;
  const password = authority + url.username.length + (url.password === "" ? 0 : 1);
  const host = authority + credentials + url.username.length + (url.password === "" ? 0 : url.password.length + 1);
  const hostEnd = host + url.hostname.length;
  const port = url.port === "" ? hostEnd : hostEnd + 1;
  const path = port + url.port.length;
  const pathEnd = path + url.pathname.length;
  const queryEnd = text.length - url.hash.length;
  return [text, at.scheme, authority, authority + url.username.length, password, password + url.password.length, host, hostEnd, port, path, path, pathEnd, queryEnd];
};
const listOf = (array) => Object.setPrototypeOf(array, null);
const webHost = {
  encodeText: (text) => new TextEncoder().encode(text),
  encodeInto: (text, buffer, offset, length) => Object.values(new TextEncoder().encodeInto(text, new Uint8Array(buffer, offset, length))),
  encodingName(label) {
    try {
      return new TextDecoder(label).encoding;
    } catch {
      return undefined;
    }
  },
  newDecoder: (name, ignoreBOM) => [name, ignoreBOM],
  decode(decoder, buffer, offset, length, fatal, last) {
    decoder[2] ??= new TextDecoder(decoder[0], { ignoreBOM: decoder[1], fatal });
    try {
      return decoder[2].decode(buffer === undefined ? undefined : new Uint8Array(buffer, offset, length), { stream: !last });
    } catch {
      return undefined;
    }
  },
  urlParse(text, base) {
    const url = URL.parse(text, base);
    return url === null ? undefined : href(url);
  },
  urlSet(text, part, value) {
    const url = new URL(text);
    url[part === "query" ? "search" : part] = value;
    return href(url);
  },
  urlOrigin: (text) => new URL(text).origin,
  multipartParse(buffer, offset, length, boundary) {
    const text = Buffer.from(new Uint8Array(buffer, offset, length)).toString("latin1");
    const utf8 = (latin1) => latin1 && Buffer.from(latin1, "latin1").toString().replace(/%0A/g, "\n").replace(/%0D/g, "\r").replace(/%22/g, '"');
    const found = [];
    for (let start = text.indexOf(`--${boundary}`); ; ) {
      start += boundary.length + 2;
      if (text.startsWith("--", start)) return listOf(found);
      const head = text.indexOf("\r\n\r\n", start);
      const end = text.indexOf(`\r\n--${boundary}`, head);
      if (start < boundary.length + 2 || head === -1 || end === -1) return undefined;
      const lines = text.slice(start, head);
      const [, name] = /[ ;]name="([^"]*)"/.exec(lines) ?? [];
      if (name === undefined) return undefined;
      found.push(utf8(name), utf8(/filename="([^"]*)"/.exec(lines)?.[1]), /content-type: *([^\r]*)/i.exec(lines)?.[1] ?? "text/plain", head + 4, end);
      start = end + 2;
    }
  },
  formParse: (text) => listOf([...new URLSearchParams(text.startsWith("?") ? `&${text}` : text)].flat()),
  formSerialize: (flat) => new URLSearchParams(Array.from({ length: flat.length / 2 }, (_, i) => [flat[2 * i], flat[2 * i + 1]])).toString(),
};

// Stands in for the Rust core. `asked` notes every call as [name, ...arguments].
function newHost(asked, emit) {
  let operation = 100;
  const note = (name, answer) => (...args) => {
    asked.push([name, ...args]);
    return answer?.(...args);
  };
  return {
    log: emit,
    startTimer: note("startTimer", () => operation++),
    cancel: note("cancel"),
    startHold: note("startHold", () => operation++),
    startCall: note("startCall", () => operation++),
    random: note("random", () => 0.5),
    fillRandom: (buffer, offset, length) => void new Uint8Array(buffer, offset, length).fill(0xab),
    finish: note("finish"),
    finishThrown: note("finishThrown"),
    clone: note("clone", (value) => value),
    reportFinished() {},
    isPromise: types.isPromise,
    cleanStack: (text) => text.split("\n").filter((line) => !line.includes("coracle:prelude:")).join("\n"),
    ...webHost,
    compileCommonJs: note("compileCommonJs"),
    require: note("require", (importer, specifier) => `${specifier} for ${importer}`),
  };
}

// What the engine brings and a bare context of V8 does not.
const platform = `
  globalThis.performance = undefined;
  // No Error, which V8 would ask for name and message when it is made.
  globalThis.DOMException = class DOMException {
    #name;
    #message;
    constructor(message = "", name = "Error") {
      this.#name = name;
      this.#message = message;
    }
    get name() { return this.#name; }
    get message() { return this.#message; }
  };
`;

// `messages` is what the console wrote, or what `emit` is given.
export function newContext(emit) {
  const context = vm.createContext();
  const evaluate = (code, filename) => vm.runInContext(code, context, { filename });
  evaluate(platform);
  // (A function of its own, because ours would lead to our realm.)
  evaluate("(schedule) => { globalThis.queueMicrotask = (callback) => schedule(callback); }")(queueMicrotask);
  evaluate("globalThis.clock = { now: 1000 }; Date.now = () => clock.now;");
  const messages = [];
  const asked = [];
  const host = newHost(asked, emit ?? ((level, text) => void messages.push([level, text])));
  const code = `(function (host) { "use strict"; ${source}\nreturn ${exported}; })`;
  const prelude = evaluate(code, "coracle:prelude")(host);
  return { context, evaluate, prelude, messages, host, asked };
}
