// source: isolated-vm issue 107
// rule: a text that becomes longer than a text can be is an exception
// limits: {"memory_bytes_max":16777216}
// expected verdict: memory {"started":true,"limit":16777216}
// expected throw: {"name":"InternalError","message":"string too long"}
// expected throw: {"name":"RangeError"}
export default [
  () => { for (let text = "x"; ; ) text += text; },
  () => { for (let text = "x"; ; ) text = text.concat(text, text); },
  () => { for (let text = "x"; ; ) text = `${text}${text}`; },
  () => { let text = "x"; for (let i = 0; i < 29; i++) text += text; return text.indexOf("y"); },
];
