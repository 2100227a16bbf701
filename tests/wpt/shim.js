// What a page or a worker of a browser has around a test, and a server's sandbox has not: names for the global object,
// and a base that relative URLs are resolved against. Runs before the harness, in the sandbox and in Node alike.
// `WPT` is { url, globals, timeoutMilliseconds }.

globalThis.self = globalThis;
globalThis.GLOBAL = {
  isWindow: () => WPT.globals === "window",
  isWorker: () => WPT.globals !== "window",
  isShadowRealm: () => false,
};
// The harness for interfaces looks for one kind of global object that it knows.
globalThis.Window = function Window() {};
globalThis.location = {};
for (const part of ["href", "origin", "protocol", "host", "hostname", "port", "pathname", "search", "hash"]) {
  location[part] = new URL(WPT.url)[part];
}
Object.defineProperty(location, "toString", { value: () => WPT.url });

(() => {
  const absolute = (input) => {
    if (typeof input !== "string" && !(input instanceof URL)) return input;
    try {
      return new URL(input, WPT.url).href;
    } catch {
      return input;
    }
  };
  const first = ([input, ...others]) => [absolute(input), ...others];
  const NativeRequest = globalThis.Request;
  const replace = (object, name, handler) => {
    const proxy = new Proxy(object[name], handler);
    Object.defineProperty(object, name, { ...Object.getOwnPropertyDescriptor(object, name), value: proxy });
    return proxy;
  };
  const request = replace(globalThis, "Request", {
    construct: (target, values, newTarget) =>
      Reflect.construct(target, values.length > 0 ? first(values) : values, newTarget === request ? NativeRequest : newTarget),
  });
  request.prototype.constructor = request;
  replace(globalThis, "fetch", {
    apply: (target, that, values) => Reflect.apply(target, that, values.length > 0 ? first(values) : values),
  });
  replace(globalThis.Response, "redirect", {
    apply: (target, that, values) => Reflect.apply(target, that, values.length > 0 ? first(values) : values),
  });
})();
