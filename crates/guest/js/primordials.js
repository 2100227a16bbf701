// The intrinsics that the prelude uses, captured before user code runs.
//
// Owns: one constant for each intrinsic, named as in Node's primordials (`StringPrototypeSlice(text, 1)`
// is `text.slice(1)`), and the removal of the one intrinsic that would hand our functions to user code.
// Must never: look anything up after set-up, change what user code may see beyond that removal, or be
// exposed.
//
// The rest of the prelude calls a built-in only through these, because user code may replace every
// property of every prototype. That also forbids what calls a replaceable method unseen: for-of, spread
// and array patterns (Symbol.iterator), `list[i] = x` on an array that inherits (setters on
// Object.prototype; use `newList`), descriptors and tables that inherit (write `__proto__: null`),
// reading an absent property of an object that inherits, regular expressions other than through
// `RegExpPrototypeExec`, and String methods that ask their argument for a Symbol method (split, replace,
// match). Template literals with substitutions are out too: QuickJS makes them a call of whatever
// String.prototype.concat is (write `"" + value`). `PromisePrototypeThen` and `await` still read
// `constructor` from the promise that they are given.

// Bound `call` is native all the way: half the cost of a closure over Reflect.apply in QuickJS.
const uncurry = Function.prototype.bind.bind(Function.prototype.call);
const uncurryGetter = (object, key) => uncurry(Reflect.getOwnPropertyDescriptor(object, key).get);

const {
  apply: ReflectApply,
  construct: ReflectConstruct,
  getOwnPropertyDescriptor: ReflectGetOwnPropertyDescriptor,
  getPrototypeOf: ReflectGetPrototypeOf,
  ownKeys: ReflectOwnKeys,
} = Reflect;

const {
  create: ObjectCreate,
  defineProperty: ObjectDefineProperty,
  hasOwn: ObjectHasOwn,
  is: ObjectIs,
  keys: ObjectKeys,
  prototype: ObjectPrototype,
  setPrototypeOf: ObjectSetPrototypeOf,
} = Object;

const FunctionPrototypeToString = uncurry(Function.prototype.toString);

const ArrayIsArray = Array.isArray;
const ArrayPrototypeJoin = uncurry(Array.prototype.join); // of strings only

const StringPrototypeIndexOf = uncurry(String.prototype.indexOf);
const StringPrototypePadEnd = uncurry(String.prototype.padEnd);
const StringPrototypePadStart = uncurry(String.prototype.padStart);
const StringPrototypeRepeat = uncurry(String.prototype.repeat);
const StringPrototypeSlice = uncurry(String.prototype.slice);
const StringPrototypeStartsWith = uncurry(String.prototype.startsWith);
const StringPrototypeValueOf = uncurry(String.prototype.valueOf);

const NumberParseFloat = Number.parseFloat;
const NumberParseInt = Number.parseInt;
const NumberPrototypeValueOf = uncurry(Number.prototype.valueOf);
const BigIntPrototypeValueOf = uncurry(BigInt.prototype.valueOf);
const BooleanPrototypeValueOf = uncurry(Boolean.prototype.valueOf);

const SymbolToStringTag = Symbol.toStringTag;
const SymbolPrototypeToString = uncurry(Symbol.prototype.toString);
const SymbolPrototypeValueOf = uncurry(Symbol.prototype.valueOf);

const { floor: MathFloor, max: MathMax, min: MathMin } = Math;

const JSONStringify = JSON.stringify;

const MapConstructor = Map;
const MapPrototypeDelete = uncurry(Map.prototype.delete);
const MapPrototypeEntries = uncurry(Map.prototype.entries);
const MapPrototypeGet = uncurry(Map.prototype.get);
const MapPrototypeGetSize = uncurryGetter(Map.prototype, "size");
const MapPrototypeHas = uncurry(Map.prototype.has);
const MapPrototypeSet = uncurry(Map.prototype.set);
const MapIteratorPrototypeNext = uncurry(new Map().entries().next);

const SetPrototypeGetSize = uncurryGetter(Set.prototype, "size");
const SetPrototypeValues = uncurry(Set.prototype.values);
const SetIteratorPrototypeNext = uncurry(new Set().values().next);

const DateNow = Date.now;
const DatePrototypeGetTime = uncurry(Date.prototype.getTime);
const DatePrototypeToISOString = uncurry(Date.prototype.toISOString);

const RegExpPrototypeExec = uncurry(RegExp.prototype.exec);
const RegExpPrototypeGetDotAll = uncurryGetter(RegExp.prototype, "dotAll");
const RegExpPrototypeGetGlobal = uncurryGetter(RegExp.prototype, "global");
const RegExpPrototypeGetHasIndices = uncurryGetter(RegExp.prototype, "hasIndices");
const RegExpPrototypeGetIgnoreCase = uncurryGetter(RegExp.prototype, "ignoreCase");
const RegExpPrototypeGetMultiline = uncurryGetter(RegExp.prototype, "multiline");
const RegExpPrototypeGetSource = uncurryGetter(RegExp.prototype, "source");
const RegExpPrototypeGetSticky = uncurryGetter(RegExp.prototype, "sticky");
const RegExpPrototypeGetUnicode = uncurryGetter(RegExp.prototype, "unicode");
const RegExpPrototypeGetUnicodeSets = uncurryGetter(RegExp.prototype, "unicodeSets");

const ErrorConstructor = Error;
const TypeErrorConstructor = TypeError;
// An accessor in QuickJS-ng; V8 gives each error a property of its own instead.
const ErrorPrototypeGetStack = ObjectHasOwn(Error.prototype, "stack")
  ? uncurryGetter(Error.prototype, "stack")
  : undefined;

const TypedArrayPrototype = ReflectGetPrototypeOf(Uint8Array.prototype);
const TypedArrayPrototypeGetBuffer = uncurryGetter(TypedArrayPrototype, "buffer");
const TypedArrayPrototypeGetByteLength = uncurryGetter(TypedArrayPrototype, "byteLength");
const TypedArrayPrototypeGetByteOffset = uncurryGetter(TypedArrayPrototype, "byteOffset");
const TypedArrayPrototypeGetLength = uncurryGetter(TypedArrayPrototype, "length");
const TypedArrayPrototypeGetToStringTag = uncurryGetter(TypedArrayPrototype, SymbolToStringTag);
const Uint8ArrayConstructor = Uint8Array;
const ArrayBufferPrototypeGetByteLength = uncurryGetter(ArrayBuffer.prototype, "byteLength");
const DataViewPrototypeGetBuffer = uncurryGetter(DataView.prototype, "buffer");
const DataViewPrototypeGetByteLength = uncurryGetter(DataView.prototype, "byteLength");
const DataViewPrototypeGetByteOffset = uncurryGetter(DataView.prototype, "byteOffset");

const PromiseConstructor = Promise;
const PromisePrototypeThen = uncurry(Promise.prototype.then);
const queueMicrotask = globalThis.queueMicrotask;

// A list that inherits nothing: `list[list.length] = x` can reach no setter of the user's. It has no
// methods either; join it with ArrayPrototypeJoin.
const newList = () => ObjectSetPrototypeOf([], null);

// The data property that `object` itself has, or undefined; runs no getter.
function ownData(object, key) {
  const property = ReflectGetOwnPropertyDescriptor(object, key);
  return property !== undefined && ObjectHasOwn(property, "value") ? property.value : undefined;
}

// QuickJS-ng gives `Error.prepareStackTrace` a call site for every frame, and `getFunction` returns the
// function even where it is strict: in any callback from the prelude, user code could pick up the
// prelude's own functions. Call sites keep their other methods, which return only text and numbers.
// (V8's can't be deleted, and returns no strict functions.)
{
  Error.prepareStackTrace = (_error, sites) => sites;
  const sites = new Error().stack;
  Error.prepareStackTrace = undefined;
  const site = ArrayIsArray(sites) ? sites[0] : undefined;
  if (site?.getFunction !== undefined) {
    const isDeleted = Reflect.deleteProperty(ReflectGetPrototypeOf(site), "getFunction");
    if (!isDeleted && site.getFunction() !== undefined) throw new Error("call sites give functions away");
  }
}
