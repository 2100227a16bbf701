// Small globals of the web platform: console, structuredClone, Math.random, crypto's randomness, performance, navigator,
// reportError, and a fetch that asks the host.
//
// Must never: hand out `host` or a function of it.

defineGlobal("console", makeConsole(host.log));
// There is no second thread to share it with.
ReflectDeleteProperty(globalObject, "SharedArrayBuffer");

{
  const { clone, fillRandom, random } = host;

  // The buffers that structuredClone is to detach.
  const transferred = (options) => {
    const buffers = newList();
    const list = options === undefined || options === null ? undefined : options.transfer;
    if (list === undefined) return buffers;
    if (!ArrayIsArray(list)) throw new TypeErrorConstructor("structuredClone: transfer is not an array.");
    for (let index = 0; index < list.length; index++) buffers[index] = list[index];
    return buffers;
  };

  const functions = {
    structuredClone(value, options) {
      return clone(value, transferred(options));
    },
    random() {
      return random();
    },
    fetch(input, init = undefined) {
      try {
        refuseInModuleScope();
        requireArguments("fetch", arguments.length, 1);
        const request = new Request(input, init);
        const signal = requestState(request).source;
        return signal?.isAborted ? PromiseReject(signal.reason) : sendRequest(request);
      } catch (error) {
        return PromiseReject(error);
      }
    },
    getRandomValues(array) {
      refuseInModuleScope();
      const kind = TypedArrayPrototypeGetToStringTag(array);
      if (kind === undefined || StringPrototypeStartsWith(kind, "Float")) {
        throw newDOMException("The array must be an integer typed array.", "TypeMismatchError");
      }
      const length = TypedArrayPrototypeGetByteLength(array);
      if (length > 65536) {
        throw newDOMException("getRandomValues fills at most 65536 bytes, not " + length + ".", "QuotaExceededError");
      }
      fillRandom(TypedArrayPrototypeGetBuffer(array), TypedArrayPrototypeGetByteOffset(array), length);
      return array;
    },
    randomUUID() {
      refuseInModuleScope();
      const bytes = new Uint8ArrayConstructor(16);
      fillRandom(TypedArrayPrototypeGetBuffer(bytes), 0, 16);
      bytes[6] = (bytes[6] & 0x0f) | 0x40;
      bytes[8] = (bytes[8] & 0x3f) | 0x80;
      let text = "";
      for (let index = 0; index < 16; index++) {
        if (index === 4 || index === 6 || index === 8 || index === 10) text += "-";
        text += StringPrototypePadStart(NumberPrototypeToString(bytes[index], 16), 2, "0");
      }
      return text;
    },
  };
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
  const crypto = { getRandomValues: functions.getRandomValues, randomUUID: functions.randomUUID };
  ObjectDefineProperty(crypto, SymbolToStringTag, { __proto__: null, value: "Crypto", configurable: true });
  defineGlobal("crypto", crypto);
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
