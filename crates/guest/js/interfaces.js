// What the classes of the web platform have in common: how they are defined, and how arguments are converted (Web IDL).
//
// Owns: INTERNAL, by which our own code makes what user code may not make, or makes it of parts.
// Must never: hand INTERNAL to user code, which `super(INTERNAL)` would do where a class's prototype was replaced.
//
// Where Web IDL says so, conversions call what the argument brings (toString, Symbol.iterator, getters), and nothing else.

const INTERNAL = ObjectCreate(null);

// Makes a class look as interfaces do: enumerable members, and a tag. `name` is also the global's, unless `isHidden`.
function defineInterface(name, constructor, isHidden) {
  const { prototype } = constructor;
  makeEnumerable(prototype);
  makeEnumerable(constructor);
  defineTag(prototype, name);
  if (isHidden !== true) defineGlobal(name, constructor);
}

function makeEnumerable(object) {
  const keys = ReflectOwnKeys(object);
  for (let index = 0; index < keys.length; index++) {
    const key = keys[index];
    if (typeof key !== "string" || key === "constructor") continue;
    if (typeof object === "function" && (key === "length" || key === "name" || key === "prototype")) continue;
    ObjectDefineProperty(object, key, { __proto__: null, enumerable: true });
  }
}

function defineTag(object, name) {
  ObjectDefineProperty(object, SymbolToStringTag, { __proto__: null, value: name, configurable: true });
}

function defineConstants(constructor, constants) {
  const names = ObjectKeys(constants);
  for (let index = 0; index < names.length; index++) {
    const constant = { __proto__: null, value: constants[names[index]], enumerable: true };
    ObjectDefineProperty(constructor, names[index], constant);
    ObjectDefineProperty(constructor.prototype, names[index], constant);
  }
}

function illegalConstructor() {
  return new TypeErrorConstructor("Illegal constructor");
}

function illegalInvocation() {
  return new TypeErrorConstructor("Illegal invocation: function called with incorrect `this` reference.");
}

function requireArguments(what, given, required) {
  if (given >= required) return;
  throw new TypeErrorConstructor(
    what + ": " + required + (required === 1 ? " argument is" : " arguments are") + " required, but only " + given + " given.",
  );
}

function newDOMException(message, name) {
  const exception = new DOMExceptionConstructor(message, name);
  const frames = ownData(exception, "stack");
  if (typeof frames === "string") {
    ObjectDefineProperty(exception, "stack", { __proto__: null, value: host.cleanStack(frames, newList()) });
  }
  return exception;
}

function isObject(value) {
  return (typeof value === "object" && value !== null) || typeof value === "function";
}

const dataProperty = (value) => ({ __proto__: null, value, writable: true, enumerable: true, configurable: true });

// --- text ---

function toText(value) {
  if (typeof value === "string") return value;
  if (typeof value === "symbol") throw new TypeErrorConstructor("A symbol can't be converted to a string.");
  return StringConstructor(value);
}

// Text without lone surrogates.
function toWellFormed(value) {
  return StringPrototypeToWellFormed(toText(value));
}

// Text of which each code unit is a byte.
function toByteString(value) {
  const text = toText(value);
  for (let index = 0; index < text.length; index++) {
    if (StringPrototypeCharCodeAt(text, index) > 255) {
      throw new TypeErrorConstructor("The text has a character above U+00FF, at index " + index + ".");
    }
  }
  return text;
}

// --- dictionaries, lists and numbers ---

// The members are read from it one by one, in alphabetical order.
function toDictionary(value, what) {
  if (value === undefined || value === null) return NO_MEMBERS;
  if (!isObject(value)) throw new TypeErrorConstructor(what + " is not an object.");
  return value;
}
const NO_MEMBERS = ObjectCreate(null);

// An integer from 0 to `max`; throws for what is outside, as Web IDL's [EnforceRange].
function toEnforcedInteger(value, max, what) {
  const number = +value;
  if (!(number > -1 && number < max + 1)) {
    throw new TypeErrorConstructor(what + " is not an integer from 0 to " + max + ".");
  }
  return MathTrunc(number);
}

// `method` is what the value answered for Symbol.iterator. Calls `visit(item)` until it is true.
function iterate(value, method, visit) {
  if (typeof method !== "function") throw new TypeErrorConstructor("The value is not iterable.");
  const iterator = ReflectApply(method, value, newList());
  if (!isObject(iterator)) throw new TypeErrorConstructor("The iterator is not an object.");
  const next = iterator.next;
  for (;;) {
    const step = ReflectApply(next, iterator, newList());
    if (!isObject(step)) throw new TypeErrorConstructor("What the iterator answered is not an object.");
    if (step.done) return;
    visit(step.value);
  }
}

// A list of what an iterable has, each item converted as it comes.
function toSequence(value, what, convert) {
  const method = isObject(value) ? value[SymbolIterator] : undefined;
  if (method === undefined || method === null) throw new TypeErrorConstructor(what + " is not iterable.");
  const list = newList();
  iterate(value, method, (item) => {
    const converted = convert === undefined ? item : convert(item);
    list[list.length] = converted;
  });
  return list;
}

// An ordinary array of what is in a list.
function toArray(list) {
  const array = new ArrayConstructor(list.length);
  for (let index = 0; index < list.length; index++) {
    ObjectDefineProperty(array, index, dataProperty(list[index]));
  }
  return array;
}

// A flat list of names and values, converted by `convert`: of pairs where the value is iterable, else of what the object
// itself has.
function toPairs(value, method, convert, what) {
  const flat = newList();
  if (method !== undefined && method !== null) {
    iterate(value, method, (item) => {
      const pair = toSequence(item, what + ": a pair");
      if (pair.length !== 2) throw new TypeErrorConstructor(what + ": a pair has " + pair.length + " elements, not 2.");
      flat[flat.length] = convert(pair[0]);
      flat[flat.length] = convert(pair[1]);
    });
    return flat;
  }
  const keys = ReflectOwnKeys(value);
  const places = ObjectCreate(null);
  for (let index = 0; index < keys.length; index++) {
    const property = ReflectGetOwnPropertyDescriptor(value, keys[index]);
    if (property === undefined || !property.enumerable) continue;
    const key = convert(keys[index]);
    const item = convert(value[keys[index]]);
    // Two keys may become one when they are converted.
    const place = places[key] ?? flat.length;
    places[key] = place;
    flat[place] = key;
    flat[place + 1] = item;
  }
  return flat;
}

// --- bytes ---

// A Uint8Array over what is a buffer or a view; undefined for what is neither, or detached.
function bytesOf(value) {
  if (!isObject(value)) return undefined;
  if (ArrayBufferIsView(value)) {
    const isTypedArray = TypedArrayPrototypeGetToStringTag(value) !== undefined;
    try {
      return isTypedArray
        ? newBytes(TypedArrayPrototypeGetBuffer(value), TypedArrayPrototypeGetByteOffset(value), TypedArrayPrototypeGetByteLength(value))
        : newBytes(DataViewPrototypeGetBuffer(value), DataViewPrototypeGetByteOffset(value), DataViewPrototypeGetByteLength(value));
    } catch {
      return undefined; // detached, or the buffer has become too small
    }
  }
  if (!isArrayBuffer(value) || ArrayBufferPrototypeGetDetached(value)) return undefined;
  return newBytes(value, 0, ArrayBufferPrototypeGetByteLength(value));
}

function isBuffer(value) {
  return isObject(value) && (ArrayBufferIsView(value) || isArrayBuffer(value));
}

function isArrayBuffer(value) {
  try {
    ArrayBufferPrototypeGetByteLength(value);
    return true;
  } catch {
    return false;
  }
}

function newBytes(buffer, offset, length) {
  return new Uint8ArrayConstructor(buffer, offset, length);
}

// A copy with a buffer of its own, of which it is the whole.
function copyBytes(bytes) {
  const copy = new Uint8ArrayConstructor(TypedArrayPrototypeGetLength(bytes));
  TypedArrayPrototypeSet(copy, bytes);
  return copy;
}

// The length of a Uint8Array. (`bytes.length` is a property of the worker's.)
const byteLength = TypedArrayPrototypeGetByteLength;

function joinBytes(list, length) {
  const joined = new Uint8ArrayConstructor(length);
  let offset = 0;
  for (let index = 0; index < list.length; index++) {
    TypedArrayPrototypeSet(joined, list[index], offset);
    offset += byteLength(list[index]);
  }
  return joined;
}

// --- iterators ---

// Gives a class of pairs its methods. `pairAt(object, index)` answers [name, value] as a list, or undefined at the end;
// it throws for what is of another class.
function defineIterable(name, constructor, pairAt) {
  const states = new WeakMapConstructor();
  const iteratorPrototype = ObjectCreate(IteratorPrototype);
  const methods = {
    next() {
      const state = isObject(this) ? WeakMapPrototypeGet(states, this) : undefined;
      if (state === undefined) throw illegalInvocation();
      const pair = state.target === undefined ? undefined : pairAt(state.target, state.index);
      if (pair === undefined) {
        state.target = undefined;
        return { value: undefined, done: true };
      }
      state.index++;
      if (state.kind === "keys") return { value: pair[0], done: false };
      if (state.kind === "values") return { value: pair[1], done: false };
      return { value: [pair[0], pair[1]], done: false };
    },
  };
  const define = (object, key, value, enumerable) =>
    ObjectDefineProperty(object, key, { __proto__: null, value, writable: true, enumerable, configurable: true });
  define(iteratorPrototype, "next", methods.next, true);
  defineTag(iteratorPrototype, name + " Iterator");
  const newIterator = (target, kind) => {
    pairAt(target, 0);
    const iterator = ObjectCreate(iteratorPrototype);
    WeakMapPrototypeSet(states, iterator, { __proto__: null, target, kind, index: 0 });
    return iterator;
  };
  const functions = {
    entries() {
      return newIterator(this, "entries");
    },
    keys() {
      return newIterator(this, "keys");
    },
    values() {
      return newIterator(this, "values");
    },
    forEach(callback, thisArgument = undefined) {
      pairAt(this, 0);
      if (typeof callback !== "function") throw new TypeErrorConstructor(name + ".forEach: the callback is not a function.");
      for (let index = 0; ; index++) {
        const pair = pairAt(this, index);
        if (pair === undefined) return;
        ReflectApply(callback, thisArgument, [pair[1], pair[0], this]);
      }
    },
  };
  const { prototype } = constructor;
  define(prototype, "entries", functions.entries, true);
  define(prototype, "keys", functions.keys, true);
  define(prototype, "values", functions.values, true);
  define(prototype, "forEach", functions.forEach, true);
  define(prototype, SymbolIterator, functions.entries, false);
}
