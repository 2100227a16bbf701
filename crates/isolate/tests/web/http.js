import { equal, looksRight, rejects, suite, throws } from "./check.js";

const bytes = (...list) => new Uint8Array(list);
const of = (...chunks) => new ReadableStream({ start(c) { for (const chunk of chunks) c.enqueue(chunk); c.close(); } });
const USED = "Body has already been used";

export default suite(async () => {
  looksRight("Headers", 0, "append delete get getSetCookie has set entries keys values forEach");
  looksRight("Blob", 0, "size type slice stream text arrayBuffer bytes");
  looksRight("File", 2, "name lastModified");
  looksRight("FormData", 0, "append delete get getAll has set entries keys values forEach");
  looksRight("Request", 1, "url method headers redirect signal clone body bodyUsed arrayBuffer blob bytes formData json text");
  looksRight("Response", 0, "type url redirected status ok statusText headers clone body bodyUsed arrayBuffer blob bytes formData json text");

  // Headers.
  const headers = new Headers([["B", " 2 "], ["a", "1"], ["b", "3"]]);
  headers.append("Set-Cookie", "x=1");
  headers.append("set-cookie", "y=2");
  equal([...headers], [["a", "1"], ["b", "2, 3"], ["set-cookie", "x=1"], ["set-cookie", "y=2"]]);
  equal([headers.get("B"), headers.get("none"), headers.has("A"), headers.getSetCookie(), headers.get("set-cookie")], ["2, 3", null, true, ["x=1", "y=2"], "x=1, y=2"]);
  headers.set("b", "4");
  headers.delete("A");
  equal([...headers.keys()], ["b", "set-cookie", "set-cookie"]);
  equal([...new Headers({ a: 1, b: "x" })], [["a", "1"], ["b", "x"]]);
  equal([...new Headers(new Headers({ c: "1" }))], [["c", "1"]]);
  equal([...new Headers(new Map([["d", "1"]]))], [["d", "1"]]);
  for (const name of ["", "a b", "a:", "\u00e9", "a\n"]) throws(() => headers.set(name, "x"), "TypeError", "Invalid header name");
  for (const value of ["a\nb", "a\0", "\rb\r x"]) throws(() => headers.set("x", value), "TypeError", "Invalid header value");
  throws(() => headers.set("x", "\u0100"), "TypeError");
  throws(() => new Headers([["a"]]), "TypeError");
  throws(() => new Headers(5), "TypeError");
  headers.forEach((value, name, all) => equal(all === headers, true));
  equal(Object.prototype.toString.call(headers.entries()), "[object Headers Iterator]");

  // Blobs and files.
  const blob = new Blob(["a\u00e9", bytes(1, 2), new Blob(["z"]), new Uint16Array([0x4142]).buffer, new DataView(bytes(9, 8).buffer, 1)], { type: "Text/Plain" });
  equal([blob.size, blob.type, await blob.bytes()], [9, "text/plain", bytes(97, 195, 169, 1, 2, 122, 0x42, 0x41, 8)]);
  equal([await blob.slice(0, 3).text(), await blob.slice(-1).bytes(), blob.slice(2, 1).size, blob.slice(0, 1, "X/y").type], ["a\u00e9", bytes(8), 0, "x/y"]);
  equal((await blob.arrayBuffer()).byteLength, 9);
  equal(await new Response(blob.stream()).bytes(), await blob.bytes());
  const read = await blob.bytes();
  read.fill(0);
  equal((await blob.bytes())[0], 97, "what was read is a copy");
  const source = bytes(1);
  const copied = new Blob([source]);
  source[0] = 2;
  equal(await copied.bytes(), bytes(1));
  equal([new Blob([], { type: "\u00e9" }).type, await new Blob(["a\r\nb\rc"], { endings: "native" }).text()], ["", "a\nb\nc"]);
  throws(() => new Blob("text"), "TypeError");
  throws(() => new Blob([], { endings: "other" }), "TypeError");
  const file = new File(["x"], "n\ud800.txt", { type: "a/b", lastModified: 5 });
  equal([file.name, file.lastModified, file.size, file.type, file instanceof Blob, await file.text(), String(file)], ["n\ufffd.txt", 5, 1, "a/b", true, "x", "[object File]"]);
  throws(() => new File(["x"]), "TypeError", "2 arguments");

  // Forms.
  const form = new FormData();
  form.append("a", "1");
  form.append("a", 2);
  form.append("f", new Blob(["in it"], { type: "text/x" }), 'q"\n.txt');
  form.append("g", new Blob(["z"]));
  equal([form.get("a"), form.getAll("a"), form.has("f"), form.get("f").name, form.get("g").name, form.get("none"), form.get("f") instanceof File], ["1", ["1", "2"], true, 'q"\n.txt', "blob", null, true]);
  form.set("a", "\u00e9\r\n\"");
  equal([...form.keys()], ["a", "f", "g"]);
  const sent = new Response(form);
  const type = sent.headers.get("content-type");
  equal(/^multipart\/form-data; boundary=-*[\w-]+$/.test(type), true, type);
  const text = await sent.clone().text();
  equal(text.includes('Content-Disposition: form-data; name="f"; filename="q%22%0A.txt"\r\nContent-Type: text/x\r\n\r\nin it\r\n'), true, text);
  const back = await sent.formData();
  equal([back.get("a"), back.get("f").name, back.get("f").type, await back.get("f").text(), back.get("g").type], ["\u00e9\r\n\"", 'q"\n.txt', "text/x", "in it", "application/octet-stream"]);
  const part = (content) => new Response(content, { headers: { "Content-Type": "multipart/form-data; boundary=b" } }).formData();
  equal((await part('--b\r\nContent-Disposition: form-data; name="x"\r\n\r\n\r\n--b\r\ncontent-disposition: form-data; name=y\r\nX: z\r\n\r\n1\r\n--b--')).get("y"), "1");
  for (const content of ["", "--b", "--b\r\n\r\nx\r\n--b--", '--b\r\nContent-Disposition: form-data; name="x\r\n\r\n1\r\n--b--', '--b\r\nContent-Disposition: form-data; name="x"\r\n\r\n1', "--c--"]) await rejects(part(content), "TypeError", "multipart");
  equal([...await new Response(new URLSearchParams("a=1&b=%20")).formData()], [["a", "1"], ["b", " "]]);
  await rejects(new Response("x").formData(), "TypeError", "Content-Type");
  throws(() => form.append("x", "y", "z"), "TypeError");
  throws(() => new FormData({}), "TypeError");

  // Bodies.
  for (const [body, contentType, content] of [
    ["t\u00e9", "text/plain;charset=UTF-8", "t\u00e9"], [new URLSearchParams({ a: "b c" }), "application/x-www-form-urlencoded;charset=UTF-8", "a=b+c"], [new Blob(["b"], { type: "x/y" }), "x/y", "b"],
    [new Blob(["b"]), null, "b"], [bytes(97), null, "a"], [bytes(97, 98).buffer, null, "ab"], [new DataView(bytes(97, 98).buffer, 1), null, "b"], [of(bytes(97), "b"), null, "ab"], [5, "text/plain;charset=UTF-8", "5"], [null, null, ""], [undefined, null, ""],
  ]) {
    const response = new Response(body);
    equal([response.headers.get("content-type"), response.bodyUsed, response.body === null], [contentType, false, body === null || body === undefined], String(body));
    equal(await response.text(), content);
    equal(response.bodyUsed, body !== null && body !== undefined);
  }
  const json = new Response('\ufeff{"a":[1]}');
  equal([await json.json(), json.bodyUsed], [{ a: [1] }, true]);
  await rejects(json.text(), "TypeError", USED);
  await rejects(new Response("{").json(), "SyntaxError");
  equal([await new Response("ab").bytes(), (await new Response("abc").arrayBuffer()).byteLength], [bytes(97, 98), 3]);
  const typed = await new Response("x", { headers: [["content-type", 'Text/HTML; charset="x y"; q']] }).blob();
  equal([typed.type, typed.size], ['text/html;charset="x y"', 1]);
  await rejects(new Response(of({})).text(), "TypeError", "chunk");
  await rejects(new Response(new ReadableStream({ pull() { throw new RangeError("in the stream"); } })).text(), "RangeError", "in the stream");
  const streamed = new Response("abc");
  equal([streamed.body === streamed.body, streamed.body.locked, streamed.bodyUsed], [true, false, false]);
  const reader = streamed.body.getReader({ mode: "byob" });
  equal([(await reader.read(new Uint8Array(2))).value, streamed.bodyUsed], [bytes(97, 98), true]);
  await rejects(streamed.text(), "TypeError", USED);
  throws(() => streamed.clone(), "TypeError", USED);
  const locked = of("x");
  locked.getReader();
  throws(() => new Response(locked), "TypeError");
  const twice = new Response(of("a", "b"));
  const clone = twice.clone();
  equal([await twice.text(), await clone.text()], ["ab", "ab"]);
  const big = new Uint8Array(300_000).fill(7);
  const all = await new Response(new Response(big).body).bytes();
  equal([all.length, all[299_999], big.length], [300_000, 7, 300_000]);

  // Responses.
  const plain = new Response();
  equal([plain.status, plain.ok, plain.statusText, plain.type, plain.url, plain.redirected, plain.body, plain.webSocket], [200, true, "", "default", "", false, null, null]);
  const full = new Response("x", { status: 404, statusText: "Not Found", headers: { "X-A": "1", "content-type": "a/b" } });
  equal([full.status, full.ok, full.statusText, full.headers.get("x-a"), full.headers.get("content-type")], [404, false, "Not Found", "1", "a/b"]);
  const copy = new Response("y", full);
  equal([copy.status, copy.statusText, copy.headers.get("x-a"), await copy.text()], [404, "Not Found", "1", "y"]);
  for (const status of [0, 100, 199, 600, 1000]) throws(() => new Response("", { status }), "RangeError", "200 to 599");
  for (const status of [204, 205, 304]) throws(() => new Response("x", { status }), "TypeError", "null body status");
  throws(() => new Response(null, { status: 101 }), "RangeError", "200 to 599");
  throws(() => new Response(null, { status: 600, statusText: "\n", headers: { ":": "x" } }), "RangeError", "200 to 599");
  throws(() => new Response(null, { status: 600, statusText: "\u0100" }), "TypeError", "U+00FF");
  equal(new Response(null, { status: 204 }).status, 204);
  throws(() => new Response("", { statusText: "\n" }), "TypeError", "Invalid statusText");
  const redirect = Response.redirect("https://a/x y", 307);
  equal([redirect.status, redirect.headers.get("location")], [307, "https://a/x%20y"]);
  throws(() => redirect.headers.set("a", "b"), "TypeError", "immutable");
  throws(() => Response.redirect("https://a/", 200), "RangeError", "redirect");
  throws(() => Response.redirect("/relative"), "TypeError", "Invalid URL");
  const made = Response.json({ a: 1 }, { status: 201, headers: { x: "y" } });
  equal([made.status, made.headers.get("content-type"), made.headers.get("x"), await made.text()], [201, "application/json", "y", '{"a":1}']);
  throws(() => Response.json(undefined), "TypeError");
  equal([Response.error().type, Response.error().status], ["error", 0]);

  // Requests.
  const request = new Request("https://a.example:443/x/../y?q#f", { method: "post", body: "b", headers: { A: "1" }, redirect: "manual", duplex: "half", cf: { x: 1 } });
  equal([request.url, request.method, request.redirect, [...request.headers], request.cf], ["https://a.example/y?q#f", "POST", "manual", [["a", "1"], ["content-type", "text/plain;charset=UTF-8"]], { x: 1 }]);
  const next = new Request(request, { headers: { B: "2" } });
  equal([next.method, [...next.headers], await next.text(), request.bodyUsed], ["POST", [["b", "2"]], "b", true]);
  throws(() => new Request(request), "TypeError", USED);
  equal((await new Request(request, { body: "other" }).text()), "other");
  const get = new Request(new URL("https://a/"));
  equal([get.method, get.redirect, get.body, get.signal.aborted, get.signal === get.signal], ["GET", "follow", null, false, true]);
  for (const method of ["GET", "HEAD"]) throws(() => new Request("https://a/", { method, body: "x" }), "TypeError", "cannot have a body");
  for (const method of ["CONNECT", "trace", "a b", ""]) throws(() => new Request("https://a/", { method }), "TypeError", "Invalid HTTP method");
  equal([new Request("https://a/", { method: "patch" }).method, new Request("https://a/", { method: "delete" }).method], ["patch", "DELETE"]);
  for (const url of ["/x", "", "https://u:p@a/"]) throws(() => new Request(url), "TypeError");
  // structuredClone copies blobs, and none of what has a body or headers.
  const clonedFile = structuredClone({ file: new File(["hi"], "n.txt", { type: "text/plain", lastModified: 5 }) }).file;
  equal([clonedFile instanceof File, clonedFile.name, clonedFile.type, clonedFile.lastModified, await clonedFile.text()], [true, "n.txt", "text/plain", 5, "hi"]);
  const uncloned = new Request("https://a/", { method: "POST", body: "x" });
  for (const value of [uncloned, new Response("x"), new Headers()]) throws(() => structuredClone(value), "DataCloneError");
  equal([uncloned.bodyUsed, await uncloned.text()], [false, "x"]);
  class Plain {
    x = 1;
  }
  equal([structuredClone(new Plain()), structuredClone(new Plain()) instanceof Plain], [{ x: 1 }, false]);
  throws(() => new Request("https://a/", { redirect: "other" }), "TypeError");
  throws(() => new Request("https://a/", { referrerPolicy: "other" }), "TypeError");
  throws(() => new Request("https://a/", { referrer: "none" }), "TypeError");
  throws(() => new Request("https://a/", { window: {} }), "TypeError");
  throws(() => new Request("https://a/", { mode: "no-cors", method: "PUT" }), "TypeError");
  throws(() => new Request("https://a/", { cache: "only-if-cached" }), "TypeError");
  equal(new Request("https://a/", { cache: "only-if-cached", mode: "same-origin", window: null, referrer: "" }).referrer, "");
  throws(() => new Request("https://a/", { method: "POST", body: of("x"), keepalive: true, duplex: "half" }), "TypeError");
  for (const url of ["http://a.example:25/", "https://a.example:6667/x", "https://a.example:10080"]) await rejects(fetch(url), "TypeError", "another protocol");
  throws(() => new Request("https://a/", { signal: {} }), "TypeError");
  const controller = new AbortController();
  const signalled = new Request("https://a/", { signal: controller.signal });
  const cloned = signalled.clone();
  controller.abort("why");
  equal([signalled.signal.aborted, cloned.signal.reason, signalled.signal === controller.signal], [true, "why", false]);
  await rejects(fetch(signalled).catch((reason) => { throw new Error(reason); }), "Error", "why");
  const streaming = new Request("https://a/", { method: "PUT", body: of("a", "b") });
  const taken = new Request(streaming);
  equal([streaming.bodyUsed, streaming.body.locked, await taken.text()], [true, true, "ab"]);
  await rejects(fetch("nope"), "TypeError", "Invalid URL");
  await rejects(fetch(), "TypeError", "1 argument");
  throws(() => Request("https://a/"), "TypeError");
  throws(() => Object.getOwnPropertyDescriptor(Request.prototype, "body").get.call({}), "TypeError");
  await rejects(Response.prototype.text.call({}), "TypeError");
});
