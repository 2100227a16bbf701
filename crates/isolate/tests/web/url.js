import { equal, looksRight, suite, throws } from "./check.js";

export default suite(() => {
  looksRight("URL", 1, "href origin protocol username password host hostname port pathname search searchParams hash toString toJSON");
  looksRight("URLSearchParams", 0, "append delete get getAll has set sort toString size entries keys values forEach");

  const url = new URL("https://user:pass@sub.Example.com:8080/p/a/../t/?query=a b#h\u00e4");
  equal(url.href, "https://user:pass@sub.example.com:8080/p/t/?query=a%20b#h%C3%A4");
  equal([url.origin, url.protocol, url.username, url.password, url.host, url.hostname, url.port], ["https://sub.example.com:8080", "https:", "user", "pass", "sub.example.com:8080", "sub.example.com", "8080"]);
  equal([url.pathname, url.search, url.hash], ["/p/t/", "?query=a%20b", "#h%C3%A4"]);
  equal([String(url), JSON.stringify(url)], [url.href, JSON.stringify(url.href)]);
  for (const [text, base, href] of [
    ["b", "http://a/x/y?z#w", "http://a/x/b"], ["//c/d", "https://a/", "https://c/d"], ["///c/d", "https://a/", "https://c/d"], [" /\t\\//c", "ws://a/", "ws://c/"], ["///c", "a://b/", "a:///c"], ["?q", "http://a/x", "http://a/x?q"], ["#f", "http://a/x?q", "http://a/x?q#f"],
    ["http://a:80/", undefined, "http://a/"], ["http://a\\b", undefined, "http://a/b"], [" http://a/\n", undefined, "http://a/"], ["http://0x7f.1/", undefined, "http://127.0.0.1/"],
    ["http://[1::0:1]/", undefined, "http://[1::1]/"], ["http://m\u00fcnchen.de/", undefined, "http://xn--mnchen-3ya.de/"], ["mailto:a@b", undefined, "mailto:a@b"],
    ["data:text/plain,a b", undefined, "data:text/plain,a b"], ["file:///c:/x/../y", undefined, "file:///c:/y"], ["javascript:alert(1)", undefined, "javascript:alert(1)"], ["a:b", "http://x/", "a:b"], ["a://", undefined, "a://"], ["a://@", undefined, "a://"], ["a:", undefined, "a:"],
  ]) {
    equal(new URL(text, base).href, href, text);
  }
  for (const text of ["", "/x", "http://", "http://a:99999/", "http://a b/", "http://[::g]/", "//x"]) {
    throws(() => new URL(text), "TypeError", "Invalid URL");
    equal([URL.canParse(text), URL.parse(text)], [false, null], text);
  }
  equal([URL.canParse("x", "http://a/"), URL.parse("x", "http://a/").href, URL.parse("http://a") instanceof URL], [true, "http://a/x", true]);
  throws(() => new URL("x", "y"), "TypeError", "Invalid URL");
  throws(() => URL("http://a/"), "TypeError");
  throws(() => new URL(), "TypeError", "1 argument");
  equal([new URL("data:x").origin, new URL("blob:https://a/x").origin, new URL("file:///x").origin], ["null", "https://a", "null"]);

  const set = (href, part, value) => { const it = new URL(href); it[part] = value; return it.href; };
  for (const [part, value, href] of [
    ["protocol", "http", "http://u@h:1/p?q#f"], ["protocol", "mailto", "https://u@h:1/p?q#f"], ["username", "n\u00e9", "https://n%C3%A9@h:1/p?q#f"], ["password", "p@", "https://u:p%40@h:1/p?q#f"],
    ["host", "x:2", "https://u@x:2/p?q#f"], ["hostname", "x", "https://u@x:1/p?q#f"], ["hostname", "", "https://u@h:1/p?q#f"], ["port", "443", "https://u@h/p?q#f"], ["port", "", "https://u@h/p?q#f"],
    ["port", "x", "https://u@h:1/p?q#f"], ["pathname", "a b", "https://u@h:1/a%20b?q#f"], ["search", "", "https://u@h:1/p#f"], ["search", "?a=\u00fc", "https://u@h:1/p?a=%C3%BC#f"],
    ["search", "x", "https://u@h:1/p?x#f"], ["hash", "", "https://u@h:1/p?q"], ["hash", "#z", "https://u@h:1/p?q#z"], ["href", "ftp://x/", "ftp://x/"],
  ]) {
    equal(set("https://u@h:1/p?q#f", part, value), href, `${part} = ${value}`);
  }
  throws(() => { url.href = "nope"; }, "TypeError", "Invalid URL");

  // Slashes at the beginning of a file's path stay, whatever way they came there.
  for (const [text, base, href] of [
    ["file:////a//b", undefined, "file:////a//b"], ["file://host///a?q#f", undefined, "file://host///a?q#f"], ["FILE:\\\\\\\\a", undefined, "file:////a"], ["file:.//a", undefined, "file:////a"],
    ["file:/..//a/../..", undefined, "file:///"], ["file:\t//localhost//\na", undefined, "file:////a"], ["//a", "file://h/x", "file://a/"], ["//a//b", "file://h/x", "file://a//b"], ["/..//a//b", "file://h/x", "file://h//a//b"],
    ["b", "file:////a", "file:////b"], ["../b", "file:////a/c", "file:////b"], ["../../b", "file:////a/c", "file:///b"], ["?q", "file:////a", "file:////a?q"], ["#f", "file:////a?q", "file:////a?q#f"], ["", "file:////a#f", "file:////a"],
    ["b:c", "file:////a", "b:c"], ["file:b:c", "file:////a", "file:////b:c"], ["file:///c:/..", undefined, "file:///c:/"], ["http:////a", "file:////x", "http://a/"],
  ]) {
    const parsed = new URL(text, base);
    equal([parsed.href, new URL(parsed.href).href], [href, href], `${text} on ${base}`);
  }
  const deep = new URL("file://host///a?q#f");
  equal([deep.pathname, deep.search, deep.hash, deep.host, deep.origin], ["///a", "?q", "#f", "host", "null"]);
  for (const [part, value, href] of [
    ["pathname", "//b", "file://host//b?q#f"], ["pathname", "b", "file://host/b?q#f"], ["pathname", "\\\\", "file://host//?q#f"], ["search", "z", "file://host///a?z#f"], ["hash", "", "file://host///a?q"],
    ["host", "other", "file://other///a?q#f"], ["host", "/x", "file://///a?q#f"], ["hostname", "#", "file://///a?q#f"], ["protocol", "http", "http://host///a?q#f"], ["protocol", "foo", "file://host///a?q#f"],
  ]) {
    equal(set("file://host///a?q#f", part, value), href, `${part} = ${value}`);
  }

  // Parameters.
  const entries = (init) => [...new URLSearchParams(init)];
  equal(entries("?a=1&b=%20x+y&a=&=z&c"), [["a", "1"], ["b", " x y"], ["a", ""], ["", "z"], ["c", ""]]);
  equal(entries({ a: 1, b: [2, 3] }), [["a", "1"], ["b", "2,3"]]);
  equal(entries([["a", "1"], new Set(["b", "2"])]), [["a", "1"], ["b", "2"]]);
  equal(entries(new Map([["a", 1]])), [["a", "1"]]);
  equal(entries(new URLSearchParams("a=1&a=2")), [["a", "1"], ["a", "2"]]);
  equal([entries(), entries(undefined), entries(null), entries("%")], [[], [], [["null", ""]], [["%", ""]]]);
  throws(() => new URLSearchParams([["a"]]), "TypeError");
  throws(() => new URLSearchParams([5]), "TypeError");
  const params = new URLSearchParams("b=2&a=1&b=3");
  params.append("c", "\ud800");
  equal([params.get("b"), params.get("none"), params.getAll("b"), params.has("a"), params.has("b", "3"), params.has("b", "4"), params.size], ["2", null, ["2", "3"], true, true, false, 4]);
  params.set("b", "4");
  equal(String(params), "b=4&a=1&c=%EF%BF%BD");
  params.delete("a", "other");
  params.delete("c", "\ufffd");
  params.append("a", "~ *-._&=%");
  params.append("\u{1f600}", "");
  params.append("\uffff", "");
  params.sort();
  equal(String(params), "a=1&a=%7E+*-._%26%3D%25&b=4&%F0%9F%98%80=&%EF%BF%BF=", "sorted by code units");
  equal([[...params.keys()].length, [...params.values()][0], Object.prototype.toString.call(params.keys()), params[Symbol.iterator] === params.entries], [5, "1", "[object URLSearchParams Iterator]", true]);
  const visited = [];
  params.forEach(function (value, name, all) { visited.push([value, name, all === params, this.x]); }, { x: 1 });
  equal(visited[0], ["1", "a", true, 1]);
  throws(() => params.forEach(5), "TypeError");
  throws(() => params.append("x"), "TypeError", "2 arguments");
  throws(() => params.keys().next.call({}), "TypeError");

  // Both ways.
  const both = new URL("http://a/?x=1#f");
  const linked = both.searchParams;
  equal(linked === both.searchParams, true);
  linked.append("y", "a b");
  equal(both.href, "http://a/?x=1&y=a+b#f");
  both.search = "?z=3";
  equal([...linked], [["z", "3"]]);
  linked.delete("z");
  equal([both.href, both.search], ["http://a/#f", ""]);
  both.href = "http://b/?n=1";
  equal(linked.get("n"), "1");
  const live = new URLSearchParams("a=1&b=2&c=3");
  const left = [];
  for (const [name] of live) { left.push(name); live.delete(name); }
  equal(left, ["a", "c"], "an iterator looks at the list as it is");
});
