// What the value codec needs from JavaScript: taking built-ins apart and making them, untouched by what a worker did
// to prototypes.
//
// Must never: run code of a worker's. Getters are read by the Rust core, which expects them to throw.

const samples = {
  __proto__: null,
  object: {},
  array: [],
  error: new Error(),
  domException: new DOMExceptionConstructor(),
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
  promise: new Promise(() => {}),
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
  return listOfTwo(RegExpPrototypeGetSource(regexp), flags);
}

function dateValue(date) {
  return DatePrototypeGetTime(date);
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

function box(primitive) {
  return ObjectConstructor(primitive);
}

function bigintText(bigint) {
  return BigIntPrototypeToString(bigint, 16);
}

// Of a negative bigint the bytes hold -1 - n.
function bigint(hexadecimal, isNegative) {
  const magnitude = BigIntConstructor(hexadecimal);
  return isNegative ? -1n - magnitude : magnitude;
}

function newMap() {
  return new MapConstructor();
}

function mapFill(map, flat) {
  for (let index = 0; index < flat.length; index += 2) MapPrototypeSet(map, flat[index], flat[index + 1]);
}

function newSet() {
  return new SetConstructor();
}

function setFill(set, values) {
  for (let index = 0; index < values.length; index++) SetPrototypeAdd(set, values[index]);
}

function newRegExp(source, flags) {
  return new RegExpConstructor(source, flags);
}

function newDataView(buffer) {
  return new DataViewConstructor(buffer);
}

// Of a DataView that no longer lies in its buffer, throws.
function viewWindow(view) {
  const isTypedArray = TypedArrayPrototypeGetToStringTag(view) !== undefined;
  const parts = newList();
  parts[0] = isTypedArray ? TypedArrayPrototypeGetBuffer(view) : DataViewPrototypeGetBuffer(view);
  parts[1] = isTypedArray ? TypedArrayPrototypeGetByteOffset(view) : DataViewPrototypeGetByteOffset(view);
  parts[2] = isTypedArray ? TypedArrayPrototypeGetByteLength(view) : DataViewPrototypeGetByteLength(view);
  return parts;
}

const errorPrototypes = {
  __proto__: null,
  Error: Error.prototype,
  AggregateError: AggregateError.prototype,
  EvalError: EvalError.prototype,
  RangeError: RangeError.prototype,
  ReferenceError: ReferenceError.prototype,
  SyntaxError: SyntaxError.prototype,
  TypeError: TypeError.prototype,
  URIError: URIError.prototype,
};

// Names of DOMExceptions: an error that came with one of them was one.
const domExceptionNames = {
  __proto__: null,
  AbortError: true,
  DataCloneError: true,
  DataError: true,
  EncodingError: true,
  InvalidAccessError: true,
  InvalidCharacterError: true,
  InvalidStateError: true,
  NetworkError: true,
  NotFoundError: true,
  NotSupportedError: true,
  OperationError: true,
  QuotaExceededError: true,
  TimeoutError: true,
  TypeMismatchError: true,
};

// The prototype for errors of a name, whether they get the name from it, and whether they are DOMExceptions.
function errorPrototype(name) {
  const prototype = errorPrototypes[name];
  const parts = listOfTwo(prototype ?? ErrorPrototype, prototype !== undefined);
  parts[2] = domExceptionNames[name] === true;
  return parts;
}

// The stack that the engine has noted for an error, the one that is a property of its own, and its classes' names.
function stacks(error) {
  const own = ownData(error, "stack");
  const parts = newList();
  parts[0] = undefined;
  parts[1] = own;
  parts[2] = classNames(error);
  if (ErrorPrototypeGetStack !== undefined) {
    parts[0] = ErrorPrototypeGetStack(error);
  } else if (typeof own === "string" && own[0] === " ") {
    // The older engine notes it in that property, and begins with a frame, which is indented. Others begin with a name.
    parts[0] = own;
    parts[1] = undefined;
  }
  return parts;
}
