
// What the value codec needs from JavaScript: taking built-ins apart and making them, untouched by what a worker did to
// prototypes.

const samples = {
  __proto__: null,
  object: {},
  error: new Error(),
  number: new Number(0),
  string: new String(""),
  boolean: new Boolean(false),
  bigint: Object(0n),
  date: new Date(0),
  regexp: /x/,
  map: new Map(),
  set: new Set(),
  arrayBuffer: new ArrayBuffer(0),
  dataView: new DataView(new ArrayBuffer(0)),
  promise: PromiseResolve(undefined),
  objectPrototype: ObjectPrototype,
};

function mapEntries(map) {
  const flat = newList();
  MapPrototypeForEach(map, (value, key) => {
    flat[flat.length] = key;
    flat[flat.length] = value;
  });
  return flat;
}

function setValues(set) {
  const values = newList();
  SetPrototypeForEach(set, (value) => {
    values[values.length] = value;
  });
  return values;
}

function regexpParts(regexp) {
  let flags = "";
  if (RegExpPrototypeGetHasIndices(regexp)) flags += "d";
  if (RegExpPrototypeGetGlobal(regexp)) flags += "g";
  if (RegExpPrototypeGetIgnoreCase(regexp)) flags += "i";
  if (RegExpPrototypeGetMultiline(regexp)) flags += "m";
  if (RegExpPrototypeGetDotAll(regexp)) flags += "s";
  if (RegExpPrototypeGetUnicode(regexp)) flags += "u";
  if (RegExpPrototypeGetUnicodeSets(regexp)) flags += "v";
  if (RegExpPrototypeGetSticky(regexp)) flags += "y";
  const parts = newList();
  parts[0] = RegExpPrototypeGetSource(regexp);
  parts[1] = flags;
  return parts;
}

function unbox(boxed) {
  for (let index = 0; index < unboxers.length; index++) {
    try {
      return unboxers[index](boxed);
    } catch {
      // Not of this kind.
    }
  }
  return undefined;
}
const unboxers = newList();
unboxers[0] = NumberPrototypeValueOf;
unboxers[1] = StringPrototypeValueOf;
unboxers[2] = BooleanPrototypeValueOf;
unboxers[3] = BigIntPrototypeValueOf;

function bigintText(bigint) {
  return BigIntPrototypeToString(bigint, 16);
}

function bigint(hexadecimal, negative) {
  const magnitude = BigIntFunction(`0x${hexadecimal}`);
  return negative ? -1n - magnitude : magnitude;
}

const errorConstructors = {
  __proto__: null,
  Error,
  EvalError,
  RangeError,
  ReferenceError,
  SyntaxError,
  TypeError,
  URIError,
};

function create(kind, detail) {
  switch (kind) {
    case "map":
      return new MapConstructor();
    case "set":
      return new SetConstructor();
    case "boxed":
      return ObjectFunction(detail);
    case "error":
      // Own properties are filled in later; the class is the built-in one of that name.
      return new (errorConstructors[detail] ?? ErrorConstructor)();
  }
}

function mapFill(map, flat) {
  for (let index = 0; index < flat.length; index += 2) MapPrototypeSet(map, flat[index], flat[index + 1]);
}

function setFill(set, values) {
  for (let index = 0; index < values.length; index++) SetPrototypeAdd(set, values[index]);
}

function regexp(source, flags) {
  return new RegExpConstructor(source, flags);
}

// By the engine's numbering of typed arrays.
const viewConstructors = newList();
viewConstructors[0] = Uint8ClampedArray;
viewConstructors[1] = Int8Array;
viewConstructors[2] = Uint8Array;
viewConstructors[3] = Int16Array;
viewConstructors[4] = Uint16Array;
viewConstructors[5] = Int32Array;
viewConstructors[6] = Uint32Array;
viewConstructors[7] = BigInt64Array;
viewConstructors[8] = BigUint64Array;
viewConstructors[9] = Float16Array;
viewConstructors[10] = Float32Array;
viewConstructors[11] = Float64Array;
const DataViewConstructor = DataView;

function view(kind, buffer) {
  return kind < 0 ? new DataViewConstructor(buffer) : new viewConstructors[kind](buffer);
}

function viewParts(dataView) {
  const parts = newList();
  parts[0] = DataViewPrototypeGetBuffer(dataView);
  parts[1] = DataViewPrototypeGetByteOffset(dataView);
  parts[2] = DataViewPrototypeGetByteLength(dataView);
  return parts;
}

function domException(message, name) {
  return new DOMExceptionConstructor(message, name);
}

// Name and value of what an error carries: the fixed fields first, then its own data under "props".
function errorParts(error) {
  const parts = newList();
  const add = (key, value) => {
    parts[parts.length] = key;
    parts[parts.length] = value;
  };
  add("name", `${error.name}`);
  add("message", `${error.message}`);
  const stack = error.stack;
  if (typeof stack === "string") add("stack", stack);
  if (ObjectHasOwn(error, "cause")) add("cause", error.cause);
  if (ObjectHasOwn(error, "errors")) add("errors", error.errors);
  const names = ObjectKeys(error);
  let props;
  for (let index = 0; index < names.length; index++) {
    const name = names[index];
    if (name === "name" || name === "message" || name === "stack" || name === "cause" || name === "errors") continue;
    const value = error[name];
    // As in Workers: methods of an error don't travel.
    if (typeof value === "function") continue;
    props ??= {};
    ObjectDefineProperty(props, name, {
      __proto__: null,
      value,
      writable: true,
      enumerable: true,
      configurable: true,
    });
  }
  if (props !== undefined) add("props", props);
  return parts;
}

function errorFill(error, parts) {
  const define = (key, value, enumerable) =>
    ObjectDefineProperty(error, key, { __proto__: null, value, writable: true, enumerable, configurable: true });
  const name = ownData(parts, "name");
  if (typeof name === "string" && errorConstructors[name] === undefined) define("name", name, false);
  const message = ownData(parts, "message");
  if (message !== undefined) define("message", `${message}`, false);
  const stack = ownData(parts, "stack");
  if (typeof stack === "string") define("stack", stack, false);
  if (ObjectHasOwn(parts, "cause")) define("cause", parts.cause, false);
  if (ObjectHasOwn(parts, "errors")) define("errors", parts.errors, false);
  const props = ownData(parts, "props");
  if (typeof props === "object" && props !== null) {
    const names = ObjectKeys(props);
    for (let index = 0; index < names.length; index++) define(names[index], props[names[index]], true);
  }
}

// Name, message and stack of anything that was thrown. A worker's getters may throw; they must not throw at us.
function describe(error) {
  const parts = newList();
  const text = (read, otherwise) => {
    try {
      const value = read();
      return typeof value === "string" ? value : otherwise;
    } catch {
      return otherwise;
    }
  };
  if (typeof error !== "object" || error === null) {
    parts[0] = "Error";
    parts[1] = text(() => (typeof error === "symbol" ? SymbolPrototypeToString(error) : `${error}`), "");
    parts[2] = "";
    return parts;
  }
  parts[0] = text(() => error.name, "Error");
  parts[1] = text(() => error.message, undefined) ?? text(() => inspect(error), "an object was thrown");
  parts[2] = text(() => error.stack, "");
  return parts;
}
