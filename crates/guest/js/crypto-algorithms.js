// The algorithms of crypto.subtle: which there are, and those with secret keys: SHA-1 and SHA-2, HMAC, AES in its modes,
// PBKDF2 and HKDF. Those with keys in pairs are in crypto-pairs.js.
//
// Owns: what an algorithm asks of its parameters, keys and usages. The Rust core computes.

const HASHES = { __proto__: null, "SHA-1": 512, "SHA-256": 512, "SHA-384": 1024, "SHA-512": 1024 };

const AES_USAGES = { __proto__: null, encrypt: true, decrypt: true, wrapKey: true, unwrapKey: true };
const DERIVATION_USAGES = { __proto__: null, deriveKey: true, deriveBits: true };
const SIGN_USAGES = { __proto__: null, sign: true };
const VERIFY_USAGES = { __proto__: null, verify: true };
const SIGNATURE_USAGES = { __proto__: null, sign: true, verify: true };
const NO_USAGES = { __proto__: null };

// Those with keys in pairs, by their kind.
const newSignature = (kind) => ({
  __proto__: null,
  kind,
  usages: SIGNATURE_USAGES,
  publicUsages: VERIFY_USAGES,
  privateUsages: SIGN_USAGES,
  sign: true,
  verify: true,
  generateKey: true,
  importKey: true,
});
const newAgreement = (kind) => ({
  __proto__: null,
  kind,
  usages: DERIVATION_USAGES,
  publicUsages: NO_USAGES,
  privateUsages: DERIVATION_USAGES,
  deriveBits: true,
  generateKey: true,
  importKey: true,
});

// By name: the usages of its keys, of what kind it is where those come in pairs, and which operations there are.
const ALGORITHMS = {
  __proto__: null,
  HMAC: { __proto__: null, usages: SIGNATURE_USAGES, sign: true, verify: true, generateKey: true, importKey: true },
  "AES-CBC": { __proto__: null, usages: AES_USAGES, encrypt: true, decrypt: true, wrapKey: true, unwrapKey: true, generateKey: true, importKey: true },
  "AES-CTR": { __proto__: null, usages: AES_USAGES, encrypt: true, decrypt: true, wrapKey: true, unwrapKey: true, generateKey: true, importKey: true },
  "AES-GCM": { __proto__: null, usages: AES_USAGES, encrypt: true, decrypt: true, wrapKey: true, unwrapKey: true, generateKey: true, importKey: true },
  "AES-KW": { __proto__: null, usages: { __proto__: null, wrapKey: true, unwrapKey: true }, wrapKey: true, unwrapKey: true, generateKey: true, importKey: true },
  PBKDF2: { __proto__: null, usages: DERIVATION_USAGES, deriveBits: true, importKey: true },
  HKDF: { __proto__: null, usages: DERIVATION_USAGES, deriveBits: true, importKey: true },
  "RSASSA-PKCS1-v1_5": newSignature("rsa"),
  "RSA-PSS": newSignature("rsa"),
  "RSA-OAEP": {
    __proto__: null,
    kind: "rsa",
    usages: AES_USAGES,
    publicUsages: { __proto__: null, encrypt: true, wrapKey: true },
    privateUsages: { __proto__: null, decrypt: true, unwrapKey: true },
    encrypt: true,
    decrypt: true,
    wrapKey: true,
    unwrapKey: true,
    generateKey: true,
    importKey: true,
  },
  ECDSA: newSignature("elliptic"),
  ECDH: newAgreement("elliptic"),
  Ed25519: newSignature("25519"),
  X25519: newAgreement("25519"),
};

const ALL_USAGES = { __proto__: null, encrypt: true, decrypt: true, sign: true, verify: true, deriveKey: true, deriveBits: true, wrapKey: true, unwrapKey: true };

function notSupported(message) {
  return newDOMException(message, "NotSupportedError");
}

function operationFailed(message) {
  return newDOMException(message, "OperationError");
}

function dataError(message) {
  return newDOMException(message, "DataError");
}

// The name that is meant, whatever its case.
function knownName(table, name) {
  const upper = StringPrototypeToUpperCase(name);
  const names = ObjectKeys(table);
  for (let index = 0; index < names.length; index++) {
    if (StringPrototypeToUpperCase(names[index]) === upper) return names[index];
  }
  return undefined;
}

function nameOf(algorithm) {
  return toText(isObject(algorithm) ? algorithm.name : algorithm);
}

function toHash(algorithm, isDigest) {
  const name = nameOf(algorithm);
  const known = knownName(HASHES, name);
  if (known !== undefined) return known;
  if (isDigest && StringPrototypeToUpperCase(name) === "MD5") return "MD5";
  throw notSupported("Unrecognized or unimplemented hash algorithm requested: " + name);
}

// The algorithm with the parameters that it has for an operation.
function toAlgorithm(algorithm, operation) {
  const name = knownName(ALGORITHMS, nameOf(algorithm));
  if (name === undefined || ALGORITHMS[name][operation] !== true) {
    throw notSupported("Unrecognized or unimplemented algorithm for " + operation + ": " + nameOf(algorithm));
  }
  const isDerivation = name === "PBKDF2" || name === "HKDF";
  const result = { __proto__: null, name, isDerivation, hash: undefined, length: undefined };
  const members = isObject(algorithm) ? algorithm : NO_MEMBERS;
  if (ALGORITHMS[name].kind !== undefined) {
    readPairParameters(result, members, operation);
    return result;
  }
  if (operation === "deriveBits" || (name === "HMAC" && (operation === "generateKey" || operation === "importKey"))) {
    const { hash } = members;
    if (hash === undefined) throw new TypeErrorConstructor(name + ": hash is required.");
    result.hash = toHash(hash, false);
  }
  if (operation === "deriveBits") {
    result.salt = toBuffer(members.salt, name + ": salt");
    if (name === "HKDF") result.info = toBuffer(members.info, "HKDF: info");
    else result.iterations = toEnforcedInteger(members.iterations, 4294967295, "PBKDF2: iterations");
  } else if (operation === "generateKey" || operation === "importKey") {
    const { length } = members;
    if (length !== undefined) result.length = toEnforcedInteger(length, 4294967295, name + ": length");
    else if (operation === "generateKey" && name !== "HMAC") throw new TypeErrorConstructor(name + ": length is required.");
  } else if (name === "AES-GCM") {
    result.iv = toBuffer(members.iv, "AES-GCM: iv");
    const { additionalData, tagLength } = members;
    result.additionalData = additionalData === undefined ? new ArrayBufferConstructor(0) : toBuffer(additionalData, "AES-GCM: additionalData");
    result.tagLength = tagLength === undefined ? 128 : toEnforcedInteger(tagLength, 255, "AES-GCM: tagLength");
  } else if (name === "AES-CBC") {
    result.iv = toBuffer(members.iv, "AES-CBC: iv");
  } else if (name === "AES-CTR") {
    result.iv = toBuffer(members.counter, "AES-CTR: counter");
    result.length = toEnforcedInteger(members.length, 255, "AES-CTR: length");
  }
  return result;
}

// In the order of the standard, each once.
function toUsages(value) {
  const given = toSequence(value, "The key usages", toText);
  const usages = newList();
  const names = ObjectKeys(ALL_USAGES);
  for (let index = 0; index < given.length; index++) {
    if (ALL_USAGES[given[index]] !== true) throw new TypeErrorConstructor("There is no key usage " + given[index] + ".");
  }
  for (let index = 0; index < names.length; index++) {
    if (hasItem(given, names[index])) usages[usages.length] = names[index];
  }
  return usages;
}

function checkUsages(algorithm, usages) {
  const allowed = ALGORITHMS[algorithm.name].usages;
  for (let index = 0; index < usages.length; index++) {
    if (allowed[usages[index]] !== true) {
      throw newDOMException("A key for " + algorithm.name + " can't be used for " + usages[index] + ".", "SyntaxError");
    }
  }
}

// In bits.
function generatedLength(algorithm) {
  const { name, length } = algorithm;
  if (name === "HMAC") {
    if (length === undefined) return HASHES[algorithm.hash];
    if (length === 0 || length % 8 !== 0) throw operationFailed("The length of an HMAC key is a multiple of 8 bits.");
    return length;
  }
  if (length !== 128 && length !== 192 && length !== 256) throw operationFailed("An AES key has 128, 192 or 256 bits, not " + length + ".");
  return length;
}

function keyAlgorithm(algorithm, length) {
  const { name, hash, isDerivation } = algorithm;
  return { __proto__: null, name, hash: name === "HMAC" ? hash : undefined, length: isDerivation ? undefined : length };
}

// --- keys ---

function toKeyFormat(value) {
  const format = toText(value);
  if (format === "raw" || format === "jwk" || format === "pkcs8" || format === "spki") return format;
  throw new TypeErrorConstructor("There is no key format " + format + ".");
}

function importAny(format, data, algorithm, isExtractable, usages) {
  const run = isPair(algorithm) ? importPair : importSecret;
  return run(format, data, algorithm, isExtractable, usages);
}

function importSecret(format, data, algorithm, isExtractable, usages) {
  const { name, isDerivation } = algorithm;
  checkUsages(algorithm, usages);
  if (isDerivation && isExtractable) throw newDOMException("A key for " + name + " can't be extractable.", "SyntaxError");
  if (isDerivation && format !== "raw") throw notSupported("A key for " + name + " can only be imported raw.");
  if (format !== "raw" && format !== "jwk") throw notSupported("A key for " + name + " is raw or a JSON Web Key, and not " + format + ".");
  const buffer = format === "jwk" ? importJwk(data, algorithm, isExtractable, usages) : data;
  const length = 8 * ArrayBufferPrototypeGetByteLength(buffer);
  if (name === "HMAC") {
    if (length === 0) throw dataError("The HMAC key is empty.");
    if (algorithm.length !== undefined && algorithm.length !== length) throw dataError("The HMAC key has another length.");
  } else if (!isDerivation && length !== 128 && length !== 192 && length !== 256) {
    throw dataError("An AES key has 128, 192 or 256 bits, not " + length + ".");
  }
  if (usages.length === 0) throw noUsages();
  return newKey(keyAlgorithm(algorithm, length), buffer, isExtractable, usages);
}

// What `alg` is of a key: "HS256", "A128GCM".
function jwkName(algorithm) {
  const { name, hash, length } = algorithm;
  if (name === "HMAC") return "HS" + (hash === "SHA-1" ? "1" : StringPrototypeSlice(hash, 4));
  return "A" + length + StringPrototypeSlice(name, 4);
}

// What keys of every type have.
function checkJwk(jwk, type, purpose, isExtractable, usages) {
  const { ext, key_ops: operations, kty, use } = jwk;
  if (kty !== type) throw dataError("The JSON Web Key is of another type than " + type + ".");
  if (usages.length > 0 && use !== undefined && use !== purpose) throw dataError("The JSON Web Key is for another use.");
  if (operations !== undefined) {
    const allowed = toSequence(operations, "key_ops", toText);
    for (let index = 0; index < usages.length; index++) {
      if (!hasItem(allowed, usages[index])) throw dataError("The JSON Web Key must not be used for " + usages[index] + ".");
    }
  }
  if (ext === false && isExtractable) throw dataError("The JSON Web Key must not be extractable.");
}

function importJwk(jwk, algorithm, isExtractable, usages) {
  checkJwk(jwk, "oct", algorithm.name === "HMAC" ? "sig" : "enc", isExtractable, usages);
  const { k } = jwk;
  const buffer = typeof k === "string" ? decodeBase64Url(k) : undefined;
  if (buffer === undefined) throw dataError("The JSON Web Key has no key that is base64url.");
  const length = 8 * ArrayBufferPrototypeGetByteLength(buffer);
  checkJwkAlgorithm(jwk, jwkName({ name: algorithm.name, hash: algorithm.hash, length }));
  return buffer;
}

// A JSON Web Key without the key.
function newJwk(type, usages, name) {
  const jwk = {};
  ObjectDefineProperty(jwk, "kty", dataProperty(type));
  if (name !== undefined) ObjectDefineProperty(jwk, "alg", dataProperty(name));
  ObjectDefineProperty(jwk, "key_ops", dataProperty(toArray(usages)));
  ObjectDefineProperty(jwk, "ext", dataProperty(true));
  return jwk;
}

function exportAny(format, key) {
  return (isPair(key.algorithm) ? exportPair : exportSecret)(format, key);
}

function exportSecret(format, key) {
  if (ALGORITHMS[key.algorithm.name].usages === DERIVATION_USAGES) throw notSupported("A key for " + key.algorithm.name + " can't be exported.");
  if (!key.isExtractable) throw invalidAccess("The key is not extractable.");
  const bytes = newBytes(key.bytes, 0, ArrayBufferPrototypeGetByteLength(key.bytes));
  if (format === "raw") return TypedArrayPrototypeGetBuffer(copyBytes(bytes));
  if (format !== "jwk") throw notSupported("A key for " + key.algorithm.name + " is raw or a JSON Web Key, and not " + format + ".");
  const jwk = newJwk("oct", key.usages, jwkName(key.algorithm));
  ObjectDefineProperty(jwk, "k", dataProperty(encodeBase64Url(bytes)));
  return jwk;
}

const BASE64_URL = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

function encodeBase64Url(bytes) {
  const length = byteLength(bytes);
  let text = "";
  for (let index = 0; index < length; index += 3) {
    const group = (bytes[index] << 16) | ((bytes[index + 1] ?? 0) << 8) | (bytes[index + 2] ?? 0);
    const digits = MathMin(length - index, 3) + 1;
    for (let digit = 0; digit < digits; digit++) text += BASE64_URL[(group >> (18 - 6 * digit)) & 63];
  }
  return text;
}

// Undefined for what is none.
function decodeBase64Url(text) {
  if (text.length % 4 === 1) return undefined;
  const bytes = new Uint8ArrayConstructor(MathFloor((text.length * 3) / 4));
  let bits = 0;
  let count = 0;
  let at = 0;
  for (let index = 0; index < text.length; index++) {
    const digit = StringPrototypeIndexOf(BASE64_URL, text[index]);
    if (digit === -1) return undefined;
    bits = ((bits << 6) | digit) & 0xffff;
    count += 6;
    if (count >= 8) {
      count -= 8;
      bytes[at++] = (bits >> count) & 255;
    }
  }
  return TypedArrayPrototypeGetBuffer(bytes);
}

// --- computing ---

// Encrypts or decrypts by what `usage` allows.
function cipher(algorithm, keyObject, data, operation, usage) {
  const given = toAlgorithm(algorithm, usage);
  const key = toKey(keyObject, usage);
  const buffer = toBuffer(data, usage + ": the data");
  checkKey(key, given, usage);
  const isEncrypting = operation === "encrypt";
  let result;
  if (given.name === "AES-GCM") {
    if (!isTagLength(given.tagLength)) throw operationFailed("AES-GCM: a tag can't have " + given.tagLength + " bits.");
    result = host.aesGcm(isEncrypting, key.bytes, given.iv, buffer, given.additionalData, given.tagLength / 8);
  } else if (given.name === "AES-CBC") {
    if (ArrayBufferPrototypeGetByteLength(given.iv) !== 16) throw operationFailed("AES-CBC: the iv has 16 bytes.");
    result = host.aes("cbc " + operation, key.bytes, given.iv, buffer);
  } else if (given.name === "AES-CTR") {
    result = counterMode(key, given, buffer);
  } else if (given.name === "RSA-OAEP") {
    result = rsaCipher(given, key, buffer, isEncrypting);
  } else {
    result = host.aes(isEncrypting ? "kw wrap" : "kw unwrap", key.bytes, given.iv, buffer);
  }
  if (result === undefined) throw operationFailed(given.name + ": the data can't be " + operation + "ed with this key and these parameters.");
  return result;
}

function isTagLength(bits) {
  return bits === 32 || bits === 64 || (bits >= 96 && bits <= 128 && bits % 8 === 0);
}

// Only the last `length` bits of the block count: the rest stays as it is where they begin anew.
function counterMode(key, { iv, length }, buffer) {
  if (ArrayBufferPrototypeGetByteLength(iv) !== 16) throw operationFailed("AES-CTR: the counter has 16 bytes.");
  if (length < 1 || length > 128) throw operationFailed("AES-CTR: the counter has 1 to 128 bits.");
  const size = ArrayBufferPrototypeGetByteLength(buffer);
  const blocks = MathCeil(size / 16);
  if (length < 53 && blocks > 2 ** length) throw operationFailed("AES-CTR: there are more blocks than the counter has numbers.");
  const first = newBytes(iv, 0, 16);
  const left = blocksBeforeOverflow(first, length, blocks);
  if (left >= blocks) return host.aes("ctr", key.bytes, iv, buffer);
  const data = newBytes(buffer, 0, size);
  const next = copyBytes(first);
  for (let bit = 0; bit < length; bit++) next[15 - (bit >> 3)] &= ~(1 << (bit & 7));
  const head = host.aes("ctr", key.bytes, iv, TypedArrayPrototypeGetBuffer(copyBytes(windowOf(data, 0, 16 * left))));
  const tailData = copyBytes(windowOf(data, 16 * left, size));
  const tail = host.aes("ctr", key.bytes, TypedArrayPrototypeGetBuffer(next), TypedArrayPrototypeGetBuffer(tailData));
  return TypedArrayPrototypeGetBuffer(joinBytes(listOfTwo(newBytes(head, 0, 16 * left), newBytes(tail, 0, size - 16 * left)), size));
}

// How many blocks can be counted until the counter is 0 again, at most `most`.
function blocksBeforeOverflow(block, length, most) {
  // (What is left to count is 2 to the power of `length` less the counter, which needs no more than 48 bits to be compared.)
  let left = 1;
  for (let bit = length - 1; bit >= 0; bit--) {
    const isSet = (block[15 - (bit >> 3)] >> (bit & 7)) & 1;
    left += isSet === 1 ? 0 : 2 ** bit;
    if (left > most) return most;
  }
  return left;
}

// The length is in bits.
function derive(algorithm, key, length) {
  if (isPair(algorithm)) return agree(algorithm, key, length);
  const { name, hash, salt } = algorithm;
  if (length === undefined || !(length >= 0) || length % 8 !== 0) {
    throw operationFailed(name + ": the length is a multiple of 8 bits.");
  }
  const size = length / 8;
  if (size > DERIVED_BYTES_MAX) throw operationFailed(name + ": at most " + DERIVED_BYTES_MAX + " bytes are derived.");
  if (name === "HKDF") {
    const derived = host.hkdf(hash, key.bytes, salt, algorithm.info, size);
    if (derived === undefined) throw operationFailed("HKDF: the length is at most 255 times that of the hash.");
    return derived;
  }
  if (algorithm.iterations === 0) throw operationFailed("PBKDF2: there has to be an iteration.");
  return host.pbkdf2(hash, key.bytes, salt, algorithm.iterations, size);
}

const DERIVED_BYTES_MAX = 1048576;
