import { equal, suite, throws } from "./check.js";

export default suite(() => {
  equal([typeof performance.now(), performance.now() === Date.now(), performance.timeOrigin, JSON.stringify(performance)], ["number", true, 0, '{"timeOrigin":0}']);
  equal(Object.prototype.toString.call(performance), "[object Performance]");
  throws(() => new Performance(), "TypeError", "Illegal constructor");
  throws(() => Performance.prototype.now.call({}), "TypeError");
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
  try { atob("a"); } catch (error) { equal([error.code, error instanceof DOMException], [5, true]); }
});
