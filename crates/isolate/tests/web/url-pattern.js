import { equal, looksRight, suite, throws } from "./check.js";

const pattern = (...args) => new URLPattern(...args);
const groupsOf = (it, name, ...input) => it.exec(...input)?.[name].groups;

export default suite(async () => {
  looksRight("URLPattern", 0, "test exec protocol username password hostname port pathname search hash hasRegExpGroups");

  // What is not said is anything, in front of what is said and behind it.
  const books = pattern({ pathname: "/books/:id" });
  equal([books.pathname, books.protocol, books.hostname, books.search, books.hasRegExpGroups], ["/books/:id", "*", "*", "*", false]);
  equal([books.test("https://a.example/books/12?x"), books.test("https://a.example/books/12/3"), books.test({ pathname: "/books/12" })], [true, false, true]);
  equal(books.exec("https://a.example/books/12").pathname, { input: "/books/12", groups: { id: "12" } });
  equal([books.exec("https://a.example/"), books.test("no URL"), books.test()], [null, false, false]);
  equal(books.exec("books/7", "https://a.example").inputs, ["books/7", "https://a.example"]);

  // A whole URL.
  const whole = pattern("https://{:sub.}?shop.example:8443/*/:item(\\d+)\\?q=:q#top");
  equal([whole.protocol, whole.hostname, whole.port, whole.pathname, whole.search, whole.hash], ["https", "{:sub.}?shop.example", "8443", "/*/:item(\\d+)", "q=:q", "top"]);
  equal([whole.username, whole.hasRegExpGroups], ["*", true]);
  const found = whole.exec("https://de.shop.example:8443/a/b/42?q=red#top");
  equal([found.hostname.groups, found.pathname.groups, found.search.groups], [{ sub: "de" }, { 0: "a/b", item: "42" }, { q: "red" }]);
  equal(whole.test("https://shop.example:8443/a/42?q=#top"), false, "a group is not empty");
  equal(whole.test("https://shop.example:8443/a/4x?q=1#top"), false);
  equal(pattern("https://a.example:443/").port, "", "the port that goes without saying");
  equal(pattern("data\\:text/*").test("data:text/plain,x"), true);
  equal(pattern("/a/:b", "https://a.example").test("https://a.example/a/1"), true);
  equal(pattern("?x=*", "https://a.example/p").pathname, "/p", "what a base says stays");

  // Modifiers.
  const many = pattern({ pathname: "/f/:parts+" });
  equal([groupsOf(many, "pathname", { pathname: "/f/a/b" }), many.test({ pathname: "/f" })], [{ parts: "a/b" }, false]);
  const maybe = pattern({ pathname: "/f/:part?" });
  equal([Object.keys(groupsOf(maybe, "pathname", { pathname: "/f" })), groupsOf(maybe, "pathname", { pathname: "/f" }).part], [["part"], undefined]);
  equal(groupsOf(pattern({ pathname: "/f{/x}*" }), "pathname", { pathname: "/f/x/x" }), {});

  // The forms that URLs have.
  equal(pattern({ hostname: "EXAMPLE.com" }).hostname, "example.com");
  equal(pattern({ hostname: "[\\:\\:AB]" }).hostname, "[\\:\\:ab]");
  equal(pattern({ pathname: "/ä" }).pathname, "/%C3%A4");
  equal(pattern({ pathname: "a", baseURL: "https://a.example/x/y" }).pathname, "/x/a");
  equal(pattern({ protocol: "http:", search: "?a", hash: "#b" }).search, "a");
  equal(pattern({ pathname: "/A" }, { ignoreCase: true }).test({ pathname: "/a" }), true);
  equal(pattern({ port: "80" }).test({ protocol: "http", port: "80" }), false, "80 is no port of http's that a URL would have");

  for (const wrong of ["(", "(?a)", "(a(b))", ":", "{a", "a}", "\\", "(ä)"]) throws(() => pattern({ pathname: wrong }), "TypeError");
  throws(() => pattern({ pathname: "/:a/:a" }), "TypeError", "the name a");
  throws(() => pattern({ hostname: "a#b" }), "TypeError");
  throws(() => pattern("/a"), "TypeError", "no base");
  throws(() => pattern({}, "https://a.example"), "TypeError", "baseURL");
  throws(() => pattern({ pathname: "[a" + "(\\p{Nope})" }), "TypeError");
  throws(() => URLPattern(), "TypeError");
  throws(() => URLPattern.prototype.pathname, "TypeError");
});
