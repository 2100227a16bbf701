// The intrinsics that the prelude uses, captured before user code runs.
//
// Owns: one constant for each intrinsic, named as in Node's primordials (`StringPrototypeSlice(text, 1)`
// is `text.slice(1)`).
// Must never: look anything up after set-up, change what user code may see, or be exposed.
//
// The rest of the prelude calls a built-in only through these, because user code may replace every
// property of every prototype. That also forbids what calls a replaceable method unseen: for-of, spread
// and array patterns (Symbol.iterator), `list[i] = x` on an array that inherits (setters on
// Object.prototype; use `newList`), descriptors and tables that inherit (write `__proto__: null`),
// reading an absent property of an object that inherits, regular expressions other than through
// `RegExpPrototypeExec`, and String methods that ask their argument for a Symbol method (split, replace,
// match). Template literals with substitutions are out too: QuickJS makes them a call of whatever
// String.prototype.concat is (write `"" + value`, or StringConstructor(value) for what may be an object).
// Nothing is awaited or returned from an async function but by `settle` of promises.js, and `globalThis`
// is a property like any other: use globalObject.

// Bound `call` is native all the way: half the cost of a closure over Reflect.apply in QuickJS.
const uncurry = Function.prototype.bind.bind(Function.prototype.call);
const uncurryGetter = (object, key) => uncurry(Reflect.getOwnPropertyDescriptor(object, key).get);

const globalObject = globalThis;

const {
  apply: ReflectApply,
  construct: ReflectConstruct,
  defineProperty: ReflectDefineProperty,
  deleteProperty: ReflectDeleteProperty,
  getOwnPropertyDescriptor: ReflectGetOwnPropertyDescriptor,
  getPrototypeOf: ReflectGetPrototypeOf,
  has: ReflectHas,
  ownKeys: ReflectOwnKeys,
} = Reflect;

const ObjectConstructor = Object;
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

const ArrayConstructor = Array;
const ArrayIsArray = Array.isArray;
const ArrayPrototypeJoin = uncurry(Array.prototype.join); // of strings only

const StringConstructor = String;
const StringPrototypeCharCodeAt = uncurry(String.prototype.charCodeAt);
const StringPrototypeEndsWith = uncurry(String.prototype.endsWith);
const StringPrototypeIndexOf = uncurry(String.prototype.indexOf);
const StringPrototypeLastIndexOf = uncurry(String.prototype.lastIndexOf);
const StringPrototypePadEnd = uncurry(String.prototype.padEnd);
const StringPrototypePadStart = uncurry(String.prototype.padStart);
const StringPrototypeRepeat = uncurry(String.prototype.repeat);
const StringPrototypeSlice = uncurry(String.prototype.slice);
const StringPrototypeStartsWith = uncurry(String.prototype.startsWith);
const StringPrototypeToLowerCase = uncurry(String.prototype.toLowerCase);
const StringPrototypeToUpperCase = uncurry(String.prototype.toUpperCase);
const StringPrototypeToWellFormed = uncurry(String.prototype.toWellFormed);
const StringPrototypeValueOf = uncurry(String.prototype.valueOf);

const NumberMaxSafeInteger = Number.MAX_SAFE_INTEGER;
const NumberParseFloat = Number.parseFloat;
const NumberParseInt = Number.parseInt;
const NumberPrototypeToString = uncurry(Number.prototype.toString);
const NumberPrototypeValueOf = uncurry(Number.prototype.valueOf);
const BigIntConstructor = BigInt;
const BigIntPrototypeToString = uncurry(BigInt.prototype.toString);
const BigIntPrototypeValueOf = uncurry(BigInt.prototype.valueOf);
const BooleanPrototypeValueOf = uncurry(Boolean.prototype.valueOf);

const {
  asyncIterator: SymbolAsyncIterator,
  iterator: SymbolIterator,
  species: SymbolSpecies,
  toStringTag: SymbolToStringTag,
} = Symbol;
const SymbolPrototypeToString = uncurry(Symbol.prototype.toString);
const SymbolPrototypeValueOf = uncurry(Symbol.prototype.valueOf);

const { ceil: MathCeil, clz32: MathClz32, floor: MathFloor, max: MathMax, min: MathMin, trunc: MathTrunc } = Math;

const { parse: JSONParse, stringify: JSONStringify } = JSON;

const ProxyConstructor = Proxy;
const SymbolDispose = Symbol.dispose;
const PromisePrototypeFinally = uncurry(Promise.prototype.finally);
const PromisePrototypeThen = uncurry(Promise.prototype.then);
const FinalizationRegistryConstructor = FinalizationRegistry;
const FinalizationRegistryPrototypeRegister = uncurry(FinalizationRegistry.prototype.register);
const WeakMapConstructor = WeakMap;
const WeakMapPrototypeDelete = uncurry(WeakMap.prototype.delete);
const WeakMapPrototypeGet = uncurry(WeakMap.prototype.get);
const WeakMapPrototypeSet = uncurry(WeakMap.prototype.set);

const MapConstructor = Map;
const MapPrototypeDelete = uncurry(Map.prototype.delete);
const MapPrototypeEntries = uncurry(Map.prototype.entries);
const MapPrototypeForEach = uncurry(Map.prototype.forEach);
const MapPrototypeGet = uncurry(Map.prototype.get);
const MapPrototypeGetSize = uncurryGetter(Map.prototype, "size");
const MapPrototypeHas = uncurry(Map.prototype.has);
const MapPrototypeSet = uncurry(Map.prototype.set);
const MapIteratorPrototypeNext = uncurry(new Map().entries().next);

const SetConstructor = Set;
const SetPrototypeAdd = uncurry(Set.prototype.add);
const SetPrototypeDelete = uncurry(Set.prototype.delete);
const SetPrototypeForEach = uncurry(Set.prototype.forEach);
const SetPrototypeGetSize = uncurryGetter(Set.prototype, "size");
const SetPrototypeValues = uncurry(Set.prototype.values);
const SetIteratorPrototypeNext = uncurry(new Set().values().next);

const DateNow = Date.now;
const DatePrototypeGetTime = uncurry(Date.prototype.getTime);
const DatePrototypeToISOString = uncurry(Date.prototype.toISOString);

const RegExpConstructor = RegExp;
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

const IteratorPrototype = ReflectGetPrototypeOf(ReflectGetPrototypeOf([].values()));
const AsyncIteratorPrototype = ReflectGetPrototypeOf(ReflectGetPrototypeOf((async function* () {}).prototype));

const ErrorConstructor = Error;
const ErrorPrototype = Error.prototype;
const RangeErrorConstructor = RangeError;
const TypeErrorConstructor = TypeError;
const DOMExceptionConstructor = DOMException;
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
const Uint32ArrayConstructor = Uint32Array;
const TypedArrayPrototypeSet = uncurry(TypedArrayPrototype.set);
const TypedArrayPrototypeSlice = uncurry(Uint8Array.prototype.slice);
const ArrayBufferConstructor = ArrayBuffer;
const ArrayBufferIsView = ArrayBuffer.isView;
const ArrayBufferPrototypeGetByteLength = uncurryGetter(ArrayBuffer.prototype, "byteLength");
const ArrayBufferPrototypeGetDetached = uncurryGetter(ArrayBuffer.prototype, "detached");
const ArrayBufferPrototypeTransfer = uncurry(ArrayBuffer.prototype.transfer);
const DataViewConstructor = DataView;
const DataViewPrototypeGetBuffer = uncurryGetter(DataView.prototype, "buffer");
const DataViewPrototypeGetByteLength = uncurryGetter(DataView.prototype, "byteLength");
const DataViewPrototypeGetByteOffset = uncurryGetter(DataView.prototype, "byteOffset");

const PromiseConstructor = Promise;
const PromisePrototype = Promise.prototype;
const PromiseReject = Promise.reject.bind(Promise);
const PromiseResolve = Promise.resolve.bind(Promise);
const QueueMicrotask = globalThis.queueMicrotask;

// A list that inherits nothing: `list[list.length] = x` can reach no setter of the user's. It has no
// methods either; join it with ArrayPrototypeJoin.
const newList = () => ObjectSetPrototypeOf([], null);

// The data property that `object` itself has, or undefined; runs no getter.
function ownData(object, key) {
  const property = ReflectGetOwnPropertyDescriptor(object, key);
  return property !== undefined && ObjectHasOwn(property, "value") ? property.value : undefined;
}

function listOfTwo(first, second) {
  const list = newList();
  list[0] = first;
  list[1] = second;
  return list;
}
