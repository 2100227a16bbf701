
// Small globals of the web platform: console, structuredClone, Math.random, crypto's randomness, and a fetch that
// asks the host.
//
// Must never: hand out `host` or a function of it.

defineGlobal("console", makeConsole(host.log));

if (typeof DOMException !== "function") {
  // The older engine has none.
  const codes = { __proto__: null, DataCloneError: 25, AbortError: 20, TimeoutError: 23, NotSupportedError: 9 };
  defineGlobal(
    "DOMException",
    class DOMException extends Error {
      #name;
      constructor(message = "", name = "Error") {
        super(message);
        this.#name = `${name}`;
      }
      get name() {
        return this.#name;
      }
      get code() {
        return codes[this.#name] ?? 0;
      }
    },
  );
}
const DOMExceptionConstructor = DOMException;

{
  const clone = host.clone;
  const random = host.random;
  const fillRandom = host.fillRandom;
  const functions = {
    structuredClone(value) {
      return clone(value);
    },
    random() {
      return random();
    },
    fetch(resource) {
      let url;
      try {
        refuseInModuleScope();
        url = `${typeof resource === "object" && resource !== null ? resource.url ?? resource : resource}`;
      } catch (error) {
        return PromiseReject(error);
      }
      return new PromiseConstructor((_resolve, reject) => {
        waiting[host.startFetch(url)] = (reason) => reject(new ErrorConstructor(reason));
      });
    },
    getRandomValues(array) {
      refuseInModuleScope();
      const kind = TypedArrayPrototypeGetToStringTag(array);
      if (kind === undefined || StringPrototypeStartsWith(kind, "Float")) {
        throw new DOMExceptionConstructor("The array must be an integer typed array.", "TypeMismatchError");
      }
      const length = TypedArrayPrototypeGetByteLength(array);
      if (length > 65536) {
        throw new DOMExceptionConstructor(`getRandomValues fills at most 65536 bytes, not ${length}.`, "QuotaExceededError");
      }
      fillRandom(
        new Uint8ArrayConstructor(TypedArrayPrototypeGetBuffer(array), TypedArrayPrototypeGetByteOffset(array), length),
      );
      return array;
    },
    randomUUID() {
      refuseInModuleScope();
      const bytes = new Uint8ArrayConstructor(16);
      fillRandom(bytes);
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
  defineGlobal("crypto", {
    getRandomValues: functions.getRandomValues,
    randomUUID: functions.randomUUID,
    [SymbolToStringTag]: "Crypto",
  });
}
