import { equal, suite, throws } from "./check.js";

// What module scope may do, and may not.
const atLoad = { request: new Request("https://a/", { headers: new Headers({ a: "1" }) }).headers.get("a"), refused: [] };
for (const run of [() => new Response("x"), () => Response.json(1), () => Response.redirect("https://a/"), () => AbortSignal.timeout(1)]) {
  try { run(); } catch (error) { atLoad.refused.push(error.message.slice(0, 54)); }
}

export default suite(() => {
  equal([atLoad.request, new Set(atLoad.refused).size, atLoad.refused.length, atLoad.refused[0]], ["1", 1, 4, "Disallowed operation called within global scope. Async"]);
  equal([typeof performance.now(), performance.now() === Date.now(), performance.timeOrigin, JSON.stringify(performance)], ["number", true, 0, '{"timeOrigin":0}']);
  equal(Object.prototype.toString.call(performance), "[object Performance]");
  throws(() => new Performance(), "TypeError", "Illegal constructor");
  throws(() => Performance.prototype.now.call({}), "TypeError");
  equal([self === globalThis, typeof self.crypto.subtle], [true, "object"]);
  equal([navigator.userAgent, navigator.hardwareConcurrency, String(navigator)], ["Coracle", 1, "[object Navigator]"]);
  throws(() => new Navigator(), "TypeError", "Illegal constructor");
  equal(reportError(new Error("reported")), undefined);
  throws(() => reportError(), "TypeError", "1 argument");

  for (const [text, base64] of [["", ""], ["a", "YQ=="], ["ab", "YWI="], ["abc", "YWJj"], ["\xff\xfe", "//4="]]) {
    equal([btoa(text), atob(base64)], [base64, text], text);
  }
  equal([atob(" Y W I = "), atob("YWI"), btoa(undefined), btoa(null)], ["ab", "ab", "dW5kZWZpbmVk", "bnVsbA=="]);
  for (const text of ["a", "a===", "YQ=", "=", "Y\u20ac==", "YQ==x", "****", "_-8="]) throws(() => atob(text), "InvalidCharacterError");
  throws(() => btoa("\u0100"), "InvalidCharacterError");
  const buffer = new ArrayBuffer(1);
  throws(() => structuredClone(), "TypeError", "1 argument");
  throws(() => structuredClone(1, { transfer: [5] }), "TypeError", "not an object");
  throws(() => structuredClone(buffer, { transfer: [buffer, buffer] }), "DataCloneError");
  equal([structuredClone(undefined), structuredClone(buffer, { transfer: [buffer] }).byteLength, buffer.byteLength], [undefined, 1, 0]);
  try { atob("a"); } catch (error) { equal([error.code, error instanceof DOMException], [5, true]); }
});
