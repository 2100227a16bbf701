// source: built-ins that run long
// rule: built-ins on long texts are stopped within a call of them, or soon after
// limits: {"cpu_ms_max":50}
// expected verdict: cpu|memory
export default [
  () => { const text = "\u0344a\u0300\u0323".repeat(3e5); for (;;) text.normalize("NFC").normalize("NFD"); },
  () => { const text = "a".repeat(4e6); for (;;) text.localeCompare(text + "b"); },
  () => { const text = "aB\u0130".repeat(1e6); for (;;) text.toLowerCase().toUpperCase(); },
  () => { const text = "a".repeat(4e6); for (;;) text.indexOf("a".repeat(2e6) + "b"); },
  () => "a".repeat(4e6).lastIndexOf("a".repeat(2e6) + "b"),
  () => { const text = "a".repeat(1e6); for (;;) text.split("a").join("aa"); },
  () => { const text = "ab".repeat(1e6); for (;;) text.replaceAll("a", "aa"); },
  () => { const text = "%41".repeat(1e6); for (;;) encodeURIComponent(decodeURIComponent(text)); },
  () => { const text = "\ud800".repeat(4e6); for (;;) text.toWellFormed().isWellFormed(); },
  () => { const text = " ".repeat(8e6); for (;;) (text + "x" + text).trim(); },
  () => { const text = "9".repeat(1e6); for (;;) Number(text) + parseFloat(text) + parseInt(text); },
  () => { const text = "x".repeat(4e6); for (;;) Object.assign({}, text); },
  () => Object.entries("x".repeat(3e7)),
  () => { const text = "[" + "1,".repeat(2e6) + "1]"; for (;;) JSON.parse(text); },
  () => JSON.parse('{"a":'.repeat(100) + "[" + "{},".repeat(5e6) + "{}]" + "}".repeat(100)),
  () => { const text = "\u0000".repeat(2e6); for (;;) JSON.stringify(text); },
  () => { let a = []; for (let i = 0; i < 1e4; i++) a = [a]; for (;;) JSON.stringify(a); },
  () => JSON.stringify(Array(1e4).fill("x".repeat(1e5))),
  () => { const text = "x".repeat(3e6); for (;;) atob(btoa(text)); },
  () => { const text = "ä".repeat(3e6); for (;;) new TextDecoder().decode(new TextEncoder().encode(text)); },
  () => { const query = "a=b&".repeat(1e5); for (;;) new URLSearchParams(query).sort(); },
  () => { const url = "https://a.example/" + "../a/".repeat(1e4); for (;;) new URL(url); },
  () => { for (let all = {}; ; ) all = structuredClone({ a: all, b: Array(1e5).fill(all) }); },
  () => structuredClone(Array(1e6).fill({ a: {} }).map((x) => ({ ...x }))),
  () => { for (;;) new RegExp("(?:" + "a|".repeat(1e5) + "b)"); },
];
