// Small globals of the web platform: console, structuredClone, Math.random, performance, navigator,
// reportError, and a fetch that asks the host.
//
// Must never: hand out `host` or a function of it.

defineGlobal("console", makeConsole(host.log, host.logArguments));
// There is no second thread to share it with.
ReflectDeleteProperty(globalObject, "SharedArrayBuffer");

{
  const { clone, random } = host;

  const functions = {
    structuredClone(value, options = undefined) {
      requireArguments("structuredClone", arguments.length, 1);
      return clone(value, toTransferred(options, "structuredClone"));
    },
    random() {
      return random();
    },
    fetch(input, init = undefined) {
      try {
        refuseInModuleScope();
        requireArguments("fetch", arguments.length, 1);
        const request = new Request(input, init);
        refuseBadPort(requestState(request).url);
        const signal = requestState(request).source;
        return signal?.isAborted ? PromiseReject(signal.reason) : sendRequest(request);
      } catch (error) {
        return PromiseReject(error);
      }
    },
  };
  // As browsers and Workers call it; libraries look for it.
  defineGlobal("self", globalObject);
  defineGlobal("structuredClone", functions.structuredClone);
  defineGlobal("fetch", functions.fetch);
  // The engine's own generator is part of the snapshot and would repeat itself in every isolate.
  ObjectDefineProperty(Math, "random", {
    __proto__: null,
    value: functions.random,
    writable: true,
    enumerable: false,
    configurable: true,
  });
}

class Performance {
  #brand = true;
  constructor(token = undefined) {
    if (token !== INTERNAL) throw illegalConstructor();
  }
  now() {
    this.#brand;
    return DateNow();
  }
  // The clock tells when it is, and no more than that: it stands still while code runs.
  get timeOrigin() {
    this.#brand;
    return 0;
  }
  toJSON() {
    this.#brand;
    return { timeOrigin: 0 };
  }
}
defineInterface("Performance", Performance);
defineGlobal("performance", new Performance(INTERNAL));

class Navigator {
  #brand = true;
  constructor(token = undefined) {
    if (token !== INTERNAL) throw illegalConstructor();
  }
  get userAgent() {
    this.#brand;
    return "Coracle";
  }
  get hardwareConcurrency() {
    this.#brand;
    return 1;
  }
}
defineInterface("Navigator", Navigator);
defineGlobal("navigator", new Navigator(INTERNAL));

{
  const functions = {
    reportError(error) {
      requireArguments("reportError", arguments.length, 1);
      reportUncaught(error, false);
    },
  };
  defineGlobal("reportError", functions.reportError);
}
