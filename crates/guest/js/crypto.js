// crypto: randomness, of the host's, and `subtle` (Web Cryptography).
//
// Owns: CryptoKey and what may be done with a key. crypto-algorithms.js knows the algorithms.
// Must never: hand out a key's bytes but by exporting one that may be exported.

class Crypto {
  #brand = true;
  constructor(token = undefined) {
    if (token !== INTERNAL) throw illegalConstructor();
  }
  get subtle() {
    this.#brand;
    return subtle;
  }
  getRandomValues(array) {
    this.#brand;
    refuseInModuleScope();
    const kind = isObject(array) ? TypedArrayPrototypeGetToStringTag(array) : undefined;
    if (kind === undefined || StringPrototypeStartsWith(kind, "Float")) {
      throw newDOMException("The array must be an integer typed array.", "TypeMismatchError");
    }
    const length = TypedArrayPrototypeGetByteLength(array);
    if (length > 65536) {
      throw newDOMException("getRandomValues fills at most 65536 bytes, not " + length + ".", "QuotaExceededError");
    }
    host.fillRandom(TypedArrayPrototypeGetBuffer(array), TypedArrayPrototypeGetByteOffset(array), length);
    return array;
  }
  randomUUID() {
    this.#brand;
    refuseInModuleScope();
    const bytes = randomBytes(16);
    bytes[6] = (bytes[6] & 0x0f) | 0x40;
    bytes[8] = (bytes[8] & 0x3f) | 0x80;
    let text = "";
    for (let index = 0; index < 16; index++) {
      if (index === 4 || index === 6 || index === 8 || index === 10) text += "-";
      text += StringPrototypePadStart(NumberPrototypeToString(bytes[index], 16), 2, "0");
    }
    return text;
  }
}
defineInterface("Crypto", Crypto);

function randomBytes(length) {
  const bytes = new Uint8ArrayConstructor(length);
  host.fillRandom(TypedArrayPrototypeGetBuffer(bytes), 0, length);
  return bytes;
}

// A key's record { type, isExtractable, algorithm, usages, bytes }, with `parts` in the place of `bytes` where keys come in
// pairs: `algorithm` is what a worker sees.
let keyState;

class CryptoKey {
  #state;
  #algorithm;
  #usages;
  static {
    keyState = (value) => (isObject(value) && #state in value ? value.#state : undefined);
  }
  constructor(token = undefined, state = undefined) {
    if (token !== INTERNAL) throw illegalConstructor();
    this.#state = state;
  }
  get type() {
    return this.#state.type;
  }
  get extractable() {
    return this.#state.isExtractable;
  }
  get algorithm() {
    const { algorithm } = this.#state;
    if (this.#algorithm === undefined) this.#algorithm = algorithmObject(algorithm);
    return this.#algorithm;
  }
  get usages() {
    const { usages } = this.#state;
    if (this.#usages === undefined) this.#usages = toArray(usages);
    return this.#usages;
  }
}
defineInterface("CryptoKey", CryptoKey);

// `algorithm` is { name, hash, length }, the last two of them undefined where the algorithm has none.
function newKey(algorithm, bytes, isExtractable, usages) {
  return new CryptoKey(INTERNAL, { __proto__: null, type: "secret", algorithm, bytes, isExtractable, usages });
}

function algorithmObject({ name, hash, length, namedCurve, modulusLength, publicExponent }) {
  const object = {};
  ObjectDefineProperty(object, "name", dataProperty(name));
  if (length !== undefined) ObjectDefineProperty(object, "length", dataProperty(length));
  if (namedCurve !== undefined) ObjectDefineProperty(object, "namedCurve", dataProperty(namedCurve));
  if (modulusLength !== undefined) {
    ObjectDefineProperty(object, "modulusLength", dataProperty(modulusLength));
    ObjectDefineProperty(object, "publicExponent", dataProperty(copyBytes(publicExponent)));
  }
  if (hash !== undefined) ObjectDefineProperty(object, "hash", dataProperty(algorithmObject({ name: hash })));
  return object;
}

function toKey(value, what) {
  const key = keyState(value);
  if (key === undefined) throw new TypeErrorConstructor(what + ": the key is not a CryptoKey.");
  return key;
}

function invalidAccess(message) {
  return newDOMException(message, "InvalidAccessError");
}

// The key must be of the algorithm, and may be used for this.
function checkKey(key, algorithm, usage) {
  if (key.algorithm.name !== algorithm.name) throw invalidAccess("The key is for " + key.algorithm.name + ", not for " + algorithm.name + ".");
  if (!hasItem(key.usages, usage)) throw invalidAccess("The key must not be used for " + usage + ".");
}

function hasItem(list, item) {
  for (let index = 0; index < list.length; index++) {
    if (list[index] === item) return true;
  }
  return false;
}

// A copy of the bytes, as the buffer that the Rust core takes.
function toBuffer(value, what) {
  const bytes = bytesOf(value);
  if (bytes === undefined) throw new TypeErrorConstructor(what + " is neither an ArrayBuffer nor a view of one.");
  return TypedArrayPrototypeGetBuffer(copyBytes(bytes));
}

// Every method answers with a promise, whatever happens.
function promised(subtle, run) {
  try {
    if (!isSubtle(subtle)) throw illegalInvocation();
    return promiseOf(run());
  } catch (error) {
    return PromiseReject(error);
  }
}

let isSubtle;

class SubtleCrypto {
  #brand = true;
  static {
    isSubtle = (value) => isObject(value) && #brand in value;
  }
  constructor(token = undefined) {
    if (token !== INTERNAL) throw illegalConstructor();
  }

  digest(algorithm, data) {
    return promised(this, () => {
      requireArguments("SubtleCrypto.digest", arguments.length, 2);
      const name = toHash(algorithm, true);
      return host.digest(name, toBuffer(data, "digest: the data"));
    });
  }
  encrypt(algorithm, key, data) {
    return promised(this, () => {
      requireArguments("SubtleCrypto.encrypt", arguments.length, 3);
      return cipher(algorithm, key, data, "encrypt", "encrypt");
    });
  }
  decrypt(algorithm, key, data) {
    return promised(this, () => {
      requireArguments("SubtleCrypto.decrypt", arguments.length, 3);
      return cipher(algorithm, key, data, "decrypt", "decrypt");
    });
  }
  sign(algorithm, key, data) {
    return promised(this, () => {
      requireArguments("SubtleCrypto.sign", arguments.length, 3);
      const given = toAlgorithm(algorithm, "sign");
      const state = toKey(key, "sign");
      const buffer = toBuffer(data, "sign: the data");
      checkKey(state, given, "sign");
      if (isPair(given)) return signWithPair(given, state, buffer);
      return host.hmac(state.algorithm.hash, state.bytes, buffer);
    });
  }
  verify(algorithm, key, signature, data) {
    return promised(this, () => {
      requireArguments("SubtleCrypto.verify", arguments.length, 4);
      const given = toAlgorithm(algorithm, "verify");
      const state = toKey(key, "verify");
      const wanted = toBuffer(signature, "verify: the signature");
      const buffer = toBuffer(data, "verify: the data");
      checkKey(state, given, "verify");
      if (isPair(given)) return verifyWithPair(given, state, wanted, buffer);
      const code = host.hmac(state.algorithm.hash, state.bytes, buffer);
      return isSameBuffer(code, wanted);
    });
  }
  generateKey(algorithm, extractable, keyUsages) {
    return promised(this, () => {
      requireArguments("SubtleCrypto.generateKey", arguments.length, 3);
      const given = toAlgorithm(algorithm, "generateKey");
      const usages = toUsages(keyUsages);
      refuseInModuleScope();
      if (isPair(given)) return generatePair(given, !!extractable, usages);
      checkUsages(given, usages);
      const length = generatedLength(given);
      if (usages.length === 0) throw noUsages();
      const bytes = randomBytes(length / 8);
      return newKey(keyAlgorithm(given, length), TypedArrayPrototypeGetBuffer(bytes), !!extractable, usages);
    });
  }
  importKey(format, keyData, algorithm, extractable, keyUsages) {
    return promised(this, () => {
      requireArguments("SubtleCrypto.importKey", arguments.length, 5);
      const kind = toKeyFormat(format);
      const given = toAlgorithm(algorithm, "importKey");
      const usages = toUsages(keyUsages);
      const data = kind === "jwk" ? toDictionary(keyData, "importKey: the key") : toBuffer(keyData, "importKey: the key");
      return importAny(kind, data, given, !!extractable, usages);
    });
  }
  exportKey(format, key) {
    return promised(this, () => {
      requireArguments("SubtleCrypto.exportKey", arguments.length, 2);
      return exportAny(toKeyFormat(format), toKey(key, "exportKey"));
    });
  }
  deriveBits(algorithm, baseKey, length = null) {
    return promised(this, () => {
      requireArguments("SubtleCrypto.deriveBits", arguments.length, 2);
      const given = toAlgorithm(algorithm, "deriveBits");
      const state = toKey(baseKey, "deriveBits");
      checkKey(state, given, "deriveBits");
      return derive(given, state, length === null || length === undefined ? undefined : toEnforcedInteger(length, 4294967295, "deriveBits: the length"));
    });
  }
  deriveKey(algorithm, baseKey, derivedKeyType, extractable, keyUsages) {
    return promised(this, () => {
      requireArguments("SubtleCrypto.deriveKey", arguments.length, 5);
      const given = toAlgorithm(algorithm, "deriveBits");
      const state = toKey(baseKey, "deriveKey");
      const wanted = toAlgorithm(derivedKeyType, "importKey");
      if (isPair(wanted)) throw notSupported("A key for " + wanted.name + " can't be derived.");
      const lengthOf = wanted.isDerivation ? undefined : generatedLength(toAlgorithm(derivedKeyType, "generateKey"));
      const usages = toUsages(keyUsages);
      checkKey(state, given, "deriveKey");
      return importSecret("raw", derive(given, state, lengthOf), wanted, !!extractable, usages);
    });
  }
  wrapKey(format, key, wrappingKey, wrapAlgorithm) {
    return promised(this, () => {
      requireArguments("SubtleCrypto.wrapKey", arguments.length, 4);
      const kind = toKeyFormat(format);
      const exported = exportAny(kind, toKey(key, "wrapKey"));
      const data = kind === "jwk" ? encodeText(JSONStringify(exported)) : exported;
      return cipher(wrapAlgorithm, wrappingKey, data, "encrypt", "wrapKey");
    });
  }
  unwrapKey(format, wrappedKey, unwrappingKey, unwrapAlgorithm, unwrappedKeyAlgorithm, extractable, keyUsages) {
    return promised(this, () => {
      requireArguments("SubtleCrypto.unwrapKey", arguments.length, 7);
      const kind = toKeyFormat(format);
      const given = toAlgorithm(unwrappedKeyAlgorithm, "importKey");
      const usages = toUsages(keyUsages);
      const data = cipher(unwrapAlgorithm, unwrappingKey, wrappedKey, "decrypt", "unwrapKey");
      const parsed = kind === "jwk" ? parseJwk(data) : data;
      return importAny(kind, parsed, given, !!extractable, usages);
    });
  }
  // Of Workers.
  timingSafeEqual(a, b) {
    this.#brand;
    requireArguments("SubtleCrypto.timingSafeEqual", arguments.length, 2);
    const one = toBuffer(a, "timingSafeEqual: the first argument");
    const other = toBuffer(b, "timingSafeEqual: the second argument");
    if (ArrayBufferPrototypeGetByteLength(one) !== ArrayBufferPrototypeGetByteLength(other)) {
      throw new TypeErrorConstructor("Input buffers must have the same byte length.");
    }
    return host.isSame(one, other);
  }
}
defineInterface("SubtleCrypto", SubtleCrypto);

function isSameBuffer(one, other) {
  const isOfOneLength = ArrayBufferPrototypeGetByteLength(one) === ArrayBufferPrototypeGetByteLength(other);
  return isOfOneLength && host.isSame(one, other);
}

function parseJwk(buffer) {
  try {
    return toDictionary(JSONParse(decodeUtf8(newBytes(buffer, 0, ArrayBufferPrototypeGetByteLength(buffer)))), "The key");
  } catch {
    throw newDOMException("What was unwrapped is not a JSON Web Key.", "DataError");
  }
}

const subtle = new SubtleCrypto(INTERNAL);
defineGlobal("crypto", new Crypto(INTERNAL));
