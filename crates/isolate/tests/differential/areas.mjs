// Cases of what a sandbox and Node both have: each area makes one of a source of randomness, as { what, act }. `what` describes
// it, `act` does it. What the two are known to differ in is left out here, with the reason.

const encoder = new TextEncoder();
const WORDS = ["a", "B", "foo", "", " ", "é", "日", "😀", "0", "-1", "%20", "%", "%zz", "+", "&", "=", "?", "#", "/", "\\", ":", "@", ".", "..", "~", "'", '"', "<", "`", "{", "|", "^", "\t", "\n", "\u00a0"];
// (No backslashes in front: the crate that parses URLs takes them for slashes behind a base whose scheme is not special. No
// control characters: the standard has forbidden them in hosts since. No drive letters: the crate that parses URLs drops the
// host before one. No ß: Node parses hosts with it, and says that they can't be parsed.)
const HOSTS = ["a", "Example.com", "xn--nxasmq6b", "bücher.de", "1.2.3.4", "0x7f.1", "256.0.0.1", "1.2.3", "[::1]", "[1:2::3.4.5.6]", "[::g]", "a b", "a..b", "a.", "", "%41", "a%00", "-a-", "a_b", "日本", "ＡＢ.com", "1e3", "09", "0.0x0"];
const SCHEMES = ["http:", "https:", "HTTP:", "ftp:", "ws:", "foo:", "a+b.c-1:", "mailto:", "data:", "javascript:", "about:", "1a:", ":", ""];

const word = (random, most) => random.text(most, WORDS);

function urlText(random) {
  const scheme = random.of(SCHEMES);
  const host = random.of(HOSTS);
  // (The crate takes a user without a host where the scheme is not special, and a backslash for the end of a port.)
  const user = host !== "" && random.maybe(4) ? `${word(random, 2)}${random.maybe() ? `:${word(random, 2)}` : ""}@`.replaceAll("\\", "") : "";
  const port = random.maybe(3) ? `:${random.of(["80", "443", "8080", "0", "65535", "65536", "", "x", "00021"])}` : "";
  const authority = random.maybe(5) ? "" : `${random.of(["//", "//", "//", "/", "///"])}${user}${host}${port}`;
  // (Node takes the last slash of a path away that ends in dots, where the scheme is not special.)
  const isSpecial = /^(https?|ftp|ws):$/i.test(scheme);
  const segment = () => random.of(["", ".", "..", "%2e", "%2E.", word(random, 3), "a;b=c"]);
  const path = random.times(3, () => `/${isSpecial ? segment() : segment().replace(/\.|%2e/gi, "b")}`).join("");
  const query = random.maybe() ? `?${word(random, 3)}` : "";
  const hash = random.maybe(3) ? `#${word(random, 3)}` : "";
  return `${random.maybe(9) ? " " : ""}${scheme}${authority}${path}${query}${hash}`;
}

const partsOf = (url) => [url.href, url.origin, url.protocol, url.username, url.password, url.host, url.hostname, url.port, url.pathname, url.search, url.hash, [...url.searchParams]];

/// A value that can be cloned; parts of it may come twice.
function cloneable(random, depth = 3, known = []) {
  if (known.length > 0 && random.maybe(6)) return random.of(known);
  const inner = () => cloneable(random, depth - 1, known);
  const keep = (value) => (known.push(value), value);
  switch (random.below(depth > 0 ? 18 : 9)) {
    case 0: return random.of([0, -0, 1.5, NaN, Infinity, 2 ** 53, -1]);
    case 1: return word(random, 4);
    case 2: return random.of([undefined, null, true, false]);
    case 3: return BigInt(random.below(1000)) ** 9n * random.of([1n, -1n]);
    case 4: return keep(new Date(random.of([0, -1, NaN, 1e15])));
    case 5: return keep(new RegExp(random.of(["a", "[x/]", "(?<n>.)"]), random.of(["", "gi", "suy"])));
    case 6: return keep(Object(random.of([1, "s", true, 7n])));
    case 7: return keep(random.bytes(5).buffer);
    case 8: return keep(new (random.of([Error, TypeError, RangeError, SyntaxError]))(word(random, 2), random.maybe() ? { cause: 1 } : undefined));
    case 9: case 10: case 11: { const list = keep([]); for (const one of random.times(4, inner)) list.push(one); if (random.maybe(5)) list[list.length + 1] = 1; return list; }
    case 12: case 13: { const object = keep({}); random.times(4, () => (object[random.of(["a", "b", "0", "", "é", "__proto__x"])] = inner())); return object; }
    case 14: { const map = keep(new Map()); random.times(3, () => map.set(inner(), inner())); return map; }
    case 15: { const set = keep(new Set()); random.times(3, () => set.add(inner())); return set; }
    case 16: return keep(new (random.of([Uint8Array, Int8Array, Uint8ClampedArray, DataView]))(random.bytes(6).buffer));
    default: return random.of([() => 1, Symbol("s"), keep({ f() {} }), keep(new WeakMap()), inner()]);
  }
}

// (No cookie: Node joins them by semicolons.)
const TOKENS = ["a", "X-B", "accept", "set-cookie", "Set-Cookie", "content-type", "b c", "é", "", "x\n", ":", "a\u0000"];
const VALUES = ["1", " 2 ", "a, b", "", "\t", "x\ny", "é", "日", "a=b; Path=/", "\u0000", "text/plain", "x\r"];

function headersOf(random) {
  const list = random.times(4, () => [random.of(TOKENS), random.of(VALUES)]);
  return random.maybe() ? list : Object.fromEntries(list);
}

const bytesOf = async (stream) => new Uint8Array(await new Response(stream).arrayBuffer());

export const areas = {
  "URL"(random) {
    const text = urlText(random);
    // (Node takes what has an opaque path for a base.)
    const other = random.maybe() ? urlText(random) : ":";
    const base = /^ ?[^:/]+:\/\//.test(other) ? other : undefined;
    return { what: [text, base], act: () => [URL.canParse(text, base), partsOf(new URL(text, base))] };
  },

  "setters of URL"(random) {
    // (No schemes that are not special: the crate writes paths that begin with two slashes otherwise.)
    const href = random.of(["http://u:p@h:81/p?q#f", "https://example.com", "ftp://h/a/b/", "ws://h:443/?x", "file://h/p", "file:////p"]);
    const part = random.of(["protocol", "username", "password", "host", "hostname", "port", "pathname", "search", "hash"]);
    // (Node takes the port away where what it is set to does not begin with a digit.)
    const value = part === "port" ? random.of(["90x", "", "443", "65536", "0", "8080/"]) : random.maybe() ? word(random, 3) : random.of([...HOSTS, "h2:99", "http", "wss:", "foo:", "90x", "/a/../b", "?", "#", "a?b#c", "x@y"]);
    return { what: [href, part, value], act: () => { const url = new URL(href); url[part] = value; return partsOf(url); } };
  },

  "URLSearchParams"(random) {
    // (Node reads what is not ASCII wrongly where a per cent sign stands for itself.)
    const text = word(random, 12).replace(/%(?!20)/g, "");
    const steps = random.times(5, () => [random.of(["append", "set", "delete", "has", "get", "getAll", "sort"]), random.of(["a", "B", "", "é", "😀"]), word(random, 2)]);
    return {
      what: [text, steps],
      act() {
        const params = new URLSearchParams(text);
        const answers = steps.map(([name, ...rest]) => params[name](...(name === "sort" ? [] : rest)));
        return [answers, [...params], String(params), params.size];
      },
    };
  },

  "TextDecoder"(random) {
    const label = random.of(["utf-8", "UTF8", "utf-16le", "utf-16be", "unicode-1-1-utf-8", " utf-16 ", "latin9x", "iso-8859-2", "koi8-r"]);
    const options = { fatal: random.maybe(), ignoreBOM: random.maybe() };
    const pieces = random.times(4, () => (random.maybe() ? random.bytes(6) : encoder.encode(random.of(["é", "日本", "😀", "\ufeff", "a", "\ud800"])).slice(random.below(2))));
    return {
      what: [label, options, pieces],
      act() {
        const decoder = new TextDecoder(label, options);
        // (Node decodes ISO-8859-2 and KOI8-R by ICU, which keeps no state that could differ.)
        const parts = pieces.map((piece) => decoder.decode(piece, { stream: true }));
        return [decoder.encoding, parts.join("") + decoder.decode()];
      },
    };
  },

  "TextEncoder"(random) {
    const text = random.text(6, ["a", "é", "日", "😀", "\ud800", "\udc00", "\u0000", "\uffff"]);
    const room = random.below(12);
    return {
      what: [text, room],
      act() {
        const into = new Uint8Array(room);
        const { read, written } = encoder.encodeInto(text, into);
        return [encoder.encode(text), read, written, into, text.isWellFormed(), text.toWellFormed()];
      },
    };
  },

  "base64"(random) {
    const text = random.maybe() ? random.text(9, ["A", "z", "0", "+", "/", "=", " ", "\n", "-", "é"]) : String.fromCharCode(...random.bytes(8));
    return { what: text, act: () => { let decoded; try { decoded = atob(text); } catch (error) { decoded = error; } return [decoded, btoa(text)]; } };
  },

  "structuredClone"(random) {
    const value = cloneable(random);
    return { what: value, act: () => structuredClone(value) };
  },

  "Headers"(random) {
    const init = headersOf(random);
    const steps = random.times(4, () => [random.of(["append", "set", "delete", "has", "get"]), random.of(TOKENS), random.of(VALUES)]);
    return {
      what: [init, steps],
      act() {
        const headers = new Headers(init);
        const answers = steps.map(([name, key, value]) => { try { return headers[name](key, value); } catch (error) { return error; } });
        return [answers, [...headers], headers.getSetCookie()];
      },
    };
  },

  "Response"(random) {
    const body = random.of([null, undefined, "text", "é", new Uint8Array([1, 2]), new URLSearchParams("a=b c"), new Blob(["x"], { type: "A/b" })]);
    const status = random.of([200, 204, 304, 404, 599, 600, 199, 101, 0, "201", NaN]);
    const statusText = random.of(["", "OK", "é", "a\nb", "日"]);
    const init = { status, statusText, headers: random.maybe(3) ? headersOf(random) : undefined };
    const cloned = random.maybe();
    return {
      what: [body, init, cloned],
      async act() {
        const response = new Response(body, init);
        const clone = cloned ? response.clone() : response;
        return [response.status, response.statusText, response.ok, response.type, response.url, response.redirected, [...response.headers], await clone.text(), response.bodyUsed];
      },
    };
  },

  "Request"(random) {
    const method = random.of(["GET", "get", "Post", "PATCH", "patch", "head", "CONNECT", "trace", "a b", "", "DELETE"]);
    const url = random.maybe() ? "https://example.com/a#b" : urlText(random);
    const body = random.of([undefined, null, "text", new URLSearchParams("a=1")]);
    const redirect = random.of([undefined, "follow", "error", "manual", "x"]);
    return {
      what: [url, method, body, redirect],
      async act() {
        const request = new Request(url, { method, body, redirect, headers: [["x", "1"]] });
        const copy = new Request(request, { headers: { y: "2" } });
        return [request.method, request.url, request.redirect, [...request.headers], [...copy.headers], copy.method, await copy.text(), request.bodyUsed];
      },
    };
  },

  // (No multipart bodies: what Node 20 has for them refuses half of those that are in order.)
  "Blob"(random) {
    const pieces = random.times(4, () => random.of(["a", "é\r\n", new Uint8Array([255, 0]), new Blob(["b"]), new ArrayBuffer(2)]));
    const type = random.of(["text/plain", "A/B", "é", "", "a\u0001"]);
    // (Node ends with a failed assertion for NaN.)
    const [start, end] = [random.of([undefined, 0, 1, -2, 99]), random.of([undefined, 2, -1, 99])];
    return {
      what: [pieces, type, start, end],
      async act() {
        const blob = new Blob(pieces, { type });
        const slice = blob.slice(start, end, "x/Y");
        return [blob.size, blob.type, slice.type, new Uint8Array(await slice.arrayBuffer()), await blob.text()];
      },
    };
  },

  "digests and MACs"(random) {
    // (No MD5: Workers have it, Node has not.)
    const hash = random.of(["SHA-1", "SHA-256", "sha-384", { name: "SHA-512" }, "SHA"]);
    const [key, data] = [random.bytes(80), random.bytes(200)];
    return {
      what: [hash, key, data],
      async act() {
        const digest = await crypto.subtle.digest(hash, data);
        if (key.length === 0) return digest;
        const imported = await crypto.subtle.importKey("raw", key, { name: "HMAC", hash }, true, ["sign"]);
        return [digest, await crypto.subtle.sign("HMAC", imported, data), (await crypto.subtle.exportKey("jwk", imported)).k];
      },
    };
  },

  "ciphers"(random) {
    const name = random.of(["AES-CBC", "AES-CTR", "AES-GCM"]);
    const key = Uint8Array.from({ length: random.of([16, 24, 32]) }, () => random.below(256));
    // (Node refuses an initialization vector of one byte.)
    const iv = Uint8Array.from({ length: name === "AES-GCM" ? random.of([12, 12, 16, 60]) : 16 }, () => random.below(256));
    const data = random.bytes(70);
    const algorithm = {
      "AES-CBC": { name, iv },
      "AES-CTR": { name, counter: iv, length: random.of([64, 128, 1]) },
      "AES-GCM": { name, iv, additionalData: random.maybe() ? random.bytes(9) : undefined, tagLength: random.of([undefined, 128, 96, 33]) },
    }[name];
    return {
      what: [algorithm, key, data],
      async act() {
        const imported = await crypto.subtle.importKey("raw", key, name, false, ["encrypt", "decrypt"]);
        const sealed = await crypto.subtle.encrypt(algorithm, imported, data);
        return [sealed, await crypto.subtle.decrypt(algorithm, imported, sealed)];
      },
    };
  },

  "derived bits"(random) {
    const hash = random.of(["SHA-1", "SHA-256", "SHA-512"]);
    const name = random.of(["PBKDF2", "HKDF"]);
    const [key, salt, info] = [random.bytes(40), random.bytes(20), random.bytes(20)];
    // (Lengths that are no whole bytes are Node's own business.)
    const length = random.of([8, 128, 256, 1000]);
    return {
      what: [name, hash, key, salt, info, length],
      async act() {
        const imported = await crypto.subtle.importKey("raw", key, name, false, ["deriveBits"]);
        return crypto.subtle.deriveBits({ name, hash, salt, info, iterations: 3 }, imported, length);
      },
    };
  },

  "compression"(random) {
    const format = random.of(["gzip", "deflate", "deflate-raw", "br"]);
    const data = Uint8Array.from({ length: random.below(5000) }, (_, at) => (at % 7) * random.below(3));
    return {
      what: [format, data.length],
      async act() {
        const packed = await bytesOf(new Blob([data]).stream().pipeThrough(new CompressionStream(format)));
        return bytesOf(new Blob([packed]).stream().pipeThrough(new DecompressionStream(format)));
      },
    };
  },

  "numbers"(random) {
    const number = random.of([() => random.below(2 ** 32) / random.below(1000), () => random.below(2 ** 31) * Number(`1e${random.below(40) - 20}`), () => [0, -0, NaN, Infinity, 5e-324, 1.7976931348623157e308, 0.1, 1e21, 123.456][random.below(9)]])() * random.of([1, -1]);
    const digits = random.below(22);
    return { what: [number, digits], act: () => [String(number), number.toFixed(digits), number.toExponential(digits), number.toPrecision(digits || 1), Math.trunc(number % 2 ** 31).toString(2 + random.below(35)), Math.fround(number), number | 0, Math.round(number), Number(String(number)) === number] };
  },

  "texts as numbers"(random) {
    const text = random.text(6, ["1", "0", ".", "e", "-", "+", "x", "_", " ", "n", "Infinity", "b1", "٣"]);
    return { what: text, act: () => [Number(text), parseFloat(text), parseInt(text), parseInt(text, 16), (() => { try { return BigInt(text); } catch (error) { return error; } })()] };
  },

  "JSON"(random) {
    const text = random.text(7, ["{", "}", "[", "]", ",", ":", '"a"', '"\\u00e9"', '"\\x"', "1", "-0", "1e5", ".5", "01", "true", "null", " ", "\n", '"__proto__"', "'"]);
    const [value, space] = [cloneable(random), random.of([0, 2, "ab"])];
    return {
      what: [text, value, space],
      act: () => [text, value].map((one, at) => { try { return at === 0 ? JSON.parse(one) : JSON.stringify(one, null, space); } catch (error) { return error.name; } }),
    };
  },

  "dates"(random) {
    // (What is not of the standard's form is each engine's own business.)
    const two = (least, most) => String(least + random.below(most - least + 1)).padStart(2, "0");
    const text = `${random.of(["2024", "1970", "-000001", "+012345", "0099"])}-${two(1, 12)}${random.maybe() ? `-${two(1, 28)}` : ""}${random.maybe() ? `T${two(0, 23)}:${two(0, 59)}${random.maybe() ? `:${two(0, 59)}${random.maybe(3) ? ".123" : ""}` : ""}${random.of(["Z", "+01:30", "-23:59"])}` : ""}`;
    const fields = Array.from({ length: 7 }, () => random.below(4000) - 2000);
    return {
      what: [text, fields],
      act() {
        const date = new Date(Date.UTC(...fields));
        return [Date.parse(text), date.getTime(), date.toISOString(), date.toUTCString(), date.getUTCDay(), new Date(date.setUTCMonth(fields[0])).toJSON()];
      },
    };
  },

  "regular expressions"(random) {
    const atom = () => random.of(["a", "b", ".", "\\d", "\\w", "[^a]", "[a-c\\-]", "\\b", "^", "$", "(?=a)", "(?<!b)", "é", "\\u{1F600}", "\\p{L}", "(a|b)", "(?:ab)", "(?<n>a)", "\\1", "x{2}", "\\/"]) + random.of(["", "", "", "*", "+?", "?", "{1,2}"]);
    const [source, flags] = [random.times(4, atom).join(""), random.of(["", "g", "i", "u", "gu", "s", "m", "y", "v", "d"])];
    const text = random.text(9, ["a", "b", "ab", "A", "é", "😀", "1", "_", "\n", "x", "/"]);
    return {
      what: [source, flags, text],
      act() {
        const pattern = new RegExp(source, flags);
        const match = pattern.exec(text);
        return [match && [...match], match?.index, match?.groups && { ...match.groups }, match?.indices && [...match.indices], text.replace(new RegExp(source, flags), "[$&$1$<n>$`]"), text.split(new RegExp(source, flags)), pattern.lastIndex, String(pattern)];
      },
    };
  },

  "texts"(random) {
    const [text, other] = [word(random, 6), word(random, 1)];
    const [one, two] = [random.below(9) - 3, random.below(9) - 3];
    return { what: [text, other, one, two], act: () => [text.slice(one, two), text.substring(one, two), text.at(one), text.padStart(one + 5, other), text.split(other), text.replaceAll(other, "$&$$"), text.normalize("NFKD"), text.toUpperCase(), text.toLowerCase(), text.trim(), text.lastIndexOf(other, one), text.codePointAt(one), [...text].length, encodeURIComponent(text), encodeURI(text), escape(text), unescape(text), text.localeCompare(text)] };
  },

  "percent signs"(random) {
    const text = random.text(5, ["%41", "%e9", "%C3%A9", "%F0%9F%98%80", "%", "%2", "%2F", "a", "é", "%ED%A0%80", "%80"]);
    return { what: text, act: () => [unescape(text), (() => { try { return decodeURI(text); } catch (error) { return error; } })(), decodeURIComponent(text)] };
  },

  "lists"(random) {
    const list = random.times(8, () => random.of([1, 2, 10, "10", "9", undefined, NaN, null, -0, "é", true]));
    const [from, count] = [random.below(9) - 3, random.below(5)];
    return { what: [list, from, count], act: () => [[...list].sort(), list.toSorted((a, b) => String(a).length - String(b).length), list.toSpliced(from, count, "x"), list.indexOf(NaN), list.includes(NaN), list.flat(), list.join(), list.findLast((one) => one > 1), list.copyWithin?.call([...list], from, count), list.slice().fill(0, from), list.slice(from).lastIndexOf(10), [...list].reverse().with?.(0, 5)] };
  },

  // (In Node listeners that capture do not go first, passive ones can prevent, and the phase is 0 once a listener before has been
  // removed.)
  "events"(random) {
    const steps = random.times(8, () => [random.of(["add", "add", "add", "remove", "dispatch", "abort"]), random.below(3), { once: random.maybe(3) }, random.of(["none", "stop", "prevent", "throwless"])]);
    return {
      what: steps,
      act() {
        const [target, controller, told] = [new EventTarget(), new AbortController(), []];
        const listeners = [0, 1, 2].map((name) => (event) => { told.push(name, event.cancelable); if (steps[name]?.[3] === "stop") event.stopImmediatePropagation(); if (steps[name]?.[3] === "prevent") event.preventDefault(); });
        for (const [step, which, options] of steps) {
          if (step === "add") target.addEventListener("e", listeners[which], { ...options, signal: which === 2 ? controller.signal : undefined });
          else if (step === "remove") target.removeEventListener("e", listeners[which], options);
          else if (step === "abort") controller.abort();
          else told.push(target.dispatchEvent(new Event("e", { cancelable: which > 0 })));
        }
        return told;
      },
    };
  },

  "signals"(random) {
    const steps = random.times(5, () => [random.below(3), random.of([undefined, "reason", null])]);
    return {
      what: steps,
      act() {
        const controllers = [0, 1, 2].map(() => new AbortController());
        const any = AbortSignal.any([controllers[0].signal, controllers[1].signal]);
        const told = [];
        any.onabort = () => told.push("any");
        controllers.forEach(({ signal }, at) => signal.addEventListener("abort", () => told.push(at)));
        for (const [which, reason] of steps) controllers[which].abort(reason);
        try { any.throwIfAborted(); } catch (error) { told.push(error); }
        return [told, any.aborted, any.reason, AbortSignal.abort("x").reason, AbortSignal.any([]).aborted];
      },
    };
  },

  "streams"(random) {
    const chunks = random.times(6, () => random.of(["a", 1, null, "é"]));
    const mark = random.of([0, 1, 3]);
    const fail = random.below(8);
    // (A branch of a tee is cancelled once both are.)
    const tee = random.maybe(3);
    const cancel = !tee && random.maybe(3);
    return {
      what: [chunks, mark, fail, tee, cancel],
      async act() {
        const told = [];
        let pulled = 0;
        const source = new ReadableStream({
          pull(controller) {
            if (pulled === chunks.length) controller.close();
            else controller.enqueue(chunks[pulled++]);
          },
          cancel: (reason) => void told.push(`cancel ${reason}`),
        }, { highWaterMark: mark });
        const transform = new TransformStream({ transform(chunk, controller) { if (chunk === fail) throw new RangeError("x"); controller.enqueue([chunk]); }, flush: (controller) => controller.enqueue("end") });
        const through = source.pipeThrough(transform);
        const [one, other] = tee ? through.tee() : [through];
        const read = [];
        try { for await (const chunk of one) { read.push(chunk); if (cancel) break; } } catch (error) { read.push(error); }
        if (other) try { for await (const chunk of other) read.push(chunk); } catch (error) { read.push(error); }
        // A source hears of the end a little later.
        await new Promise((done) => setTimeout(done, 1));
        return [read, told];
      },
    };
  },

  "promises"(random) {
    const steps = random.times(5, () => random.of(["resolve", "reject", "then", "await", "thenable", "microtask", "all", "race", "any", "settled"]));
    return {
      what: steps,
      async act() {
        const told = [];
        const each = steps.map(async (step, at) => {
          told.push(`${at} begins`);
          const [yes, no] = [Promise.resolve(at), Promise.reject(at)];
          no.catch(() => {});
          try {
            switch (step) {
              case "resolve": await yes; break;
              case "reject": await no; break;
              case "then": await yes.then(() => told.push(`${at} then`)).finally(() => told.push(`${at} finally`)); break;
              case "thenable": await { then: (done) => done(told.push(`${at} thenable`)) }; break;
              case "microtask": await new Promise((done) => queueMicrotask(done)); break;
              case "all": await Promise.all([yes, no]); break;
              case "race": await Promise.race([no, yes]); break;
              case "any": await Promise.any([no, yes]); break;
              case "settled": told.push(await Promise.allSettled([yes, no])); break;
              default: await undefined;
            }
          } catch (error) { told.push(`${at} throws ${error}`); }
          told.push(`${at} ends`);
        });
        await Promise.all(each);
        return told;
      },
    };
  },
};
