// The worst that user code can do to the built-ins. The function is evaluated from its source inside the
// context under test, so it can use nothing from here.

// Replaces every function, accessor and constructor that can be reached by one that records its use, and
// gives Object.prototype an accessor for every name that the prelude might look for on an object that
// inherits. Returns { on, fatal, calls, replaced }: uses are recorded while `on`, and throw if `fatal`.
export function replaceEverything() {
  const { apply, construct, defineProperty, getOwnPropertyDescriptor, getPrototypeOf, ownKeys } = Reflect;
  const recorder = { __proto__: null, on: false, fatal: false, calls: [], replaced: 0 };
  const { calls } = recorder;
  const seen = new Set();
  const has = seen.has.bind(seen);
  const add = seen.add.bind(seen);
  const TypeErrorHere = TypeError;
  const objectPrototype = Object.prototype;

  function note(path) {
    if (!recorder.on) return;
    recorder.on = false;
    defineProperty(calls, calls.length, { __proto__: null, value: path, writable: true, enumerable: true, configurable: true });
    recorder.on = true;
    if (recorder.fatal) throw new TypeErrorHere(`replaced: ${path}`);
  }

  // A stand-in that does what the original does. Its own identity differs, as a user's patch would.
  const replacement = (original, path) =>
    new Proxy(original, {
      __proto__: null,
      apply(target, self, args) {
        note(path);
        return apply(target, self, args);
      },
      construct(target, args, newTarget) {
        note(path);
        return construct(target, args, newTarget);
      },
    });

  function replaceIn(object, path) {
    if ((typeof object !== "object" && typeof object !== "function") || object === null || has(object)) return;
    add(object);
    const keys = ownKeys(object);
    const next = [];
    for (let i = 0; i < keys.length; i++) {
      const key = keys[i];
      const property = getOwnPropertyDescriptor(object, key);
      const name = `${path}.${typeof key === "symbol" ? key.description : key}`;
      if ("value" in property) next[next.length] = [property.value, name];
      if (!property.configurable && !property.writable) continue;
      if (typeof property.value === "function") {
        defineProperty(object, key, { __proto__: property, value: replacement(property.value, name) });
        recorder.replaced++;
      } else if (property.get !== undefined && property.configurable) {
        defineProperty(object, key, { __proto__: property, get: replacement(property.get, name) });
        recorder.replaced++;
      }
    }
    for (let i = 0; i < next.length; i++) replaceIn(next[i][0], next[i][1]);
    replaceIn(getPrototypeOf(object), `${path}.__proto__`);
  }

  // What no global leads to.
  const hidden = [
    [].values(), new Map().entries(), new Set().values(), ""[Symbol.iterator](), "".matchAll(/x/g), new Uint8Array(),
    (function* () {})(), (async function* () {})(), async () => {}, function* () {}, async function* () {},
  ];
  const names = [
    "0", "1", "2", "value", "get", "set", "writable", "enumerable", "configurable", "done", "next", "then", "toJSON",
    "depth", "columns", "read", "write", "kind", "base", "index", "groups", "more", "cells", "cause", "errors", "return",
  ];
  // Left alone: what the tests drive.
  add(globalThis);
  add(globalThis.console);
  add(globalThis.clock);
  const globals = ownKeys(globalThis);
  for (let i = 0; i < globals.length; i++) {
    if (globals[i] === "console") continue;
    const value = globalThis[globals[i]];
    replaceIn(value, globals[i]);
    const property = getOwnPropertyDescriptor(globalThis, globals[i]);
    if (typeof value === "function" && property.writable) globalThis[globals[i]] = replacement(value, globals[i]);
  }
  for (let i = 0; i < hidden.length; i++) replaceIn(getPrototypeOf(hidden[i]), `hidden${i}`);
  const accessor = (name) => ({
    __proto__: null,
    get() {
      note(`get Object.prototype.${name}`);
      return undefined;
    },
    set(value) {
      note(`set Object.prototype.${name}`);
      // What the user's own code assigns still works.
      defineProperty(this, name, { __proto__: null, value, writable: true, enumerable: true, configurable: true });
    },
    configurable: true,
  });
  // All made before the first is in place: from then on, this function is its own victim.
  const accessors = [];
  for (let i = 0; i < names.length; i++) accessors[i] = accessor(names[i]);
  for (let i = 0; i < accessors.length; i++) defineProperty(objectPrototype, names[i], accessors[i]);
  return recorder;
}
