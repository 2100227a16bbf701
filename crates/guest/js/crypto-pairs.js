// The algorithms of crypto.subtle whose keys come in pairs: RSA, elliptic curves, Ed25519 and X25519.
//
// Owns: what such keys are made of. `parts` of a key's record is a list of buffers: of RSA the numbers n, e and of a private
// key d, p, q, dp, dq, qi; else the private key, if it is one, and the public. The Rust core computes.

const CURVES = { __proto__: null, "P-256": 32, "P-384": 48, "P-521": 66 };
const RSA_MEMBERS = ["n", "e", "d", "p", "q", "dp", "dq", "qi"];
ObjectSetPrototypeOf(RSA_MEMBERS, null);

function isPair(algorithm) {
  return ALGORITHMS[algorithm.name].kind !== undefined;
}

// The parameters that such an algorithm has for an operation.
function readPairParameters(result, members, operation) {
  const { name } = result;
  const { kind } = ALGORITHMS[name];
  const isForKey = operation === "generateKey" || operation === "importKey";
  if ((kind === "rsa" && isForKey) || (name === "ECDSA" && !isForKey)) {
    const { hash } = members;
    if (hash === undefined) throw new TypeErrorConstructor(name + ": hash is required.");
    result.hash = toHash(hash, false);
  }
  if (kind === "rsa" && operation === "generateKey") {
    result.modulusLength = toEnforcedInteger(members.modulusLength, 4294967295, name + ": modulusLength");
    const { publicExponent } = members;
    if (!isObject(publicExponent) || TypedArrayPrototypeGetToStringTag(publicExponent) !== "Uint8Array") {
      throw new TypeErrorConstructor(name + ": publicExponent is not a Uint8Array.");
    }
    result.publicExponent = copyBytes(publicExponent);
  } else if (kind === "elliptic" && isForKey) {
    const { namedCurve } = members;
    if (namedCurve === undefined) throw new TypeErrorConstructor(name + ": namedCurve is required.");
    result.namedCurve = toText(namedCurve);
  } else if (name === "RSA-PSS" && !isForKey) {
    result.saltLength = toEnforcedInteger(members.saltLength, 4294967295, "RSA-PSS: saltLength");
  } else if (name === "RSA-OAEP" && !isForKey) {
    const { label } = members;
    result.label = label === undefined ? new ArrayBufferConstructor(0) : toBuffer(label, "RSA-OAEP: label");
  } else if (operation === "deriveBits") {
    result.public = toKey(members.public, name + ": public");
  }
}

// What the Rust core calls the curve of an algorithm.
function curveOf({ name, namedCurve }) {
  if (ALGORITHMS[name].kind !== "elliptic") return name;
  if (CURVES[namedCurve] === undefined) throw notSupported("There is no curve " + namedCurve + ".");
  return namedCurve;
}

function newPairKey(type, given, parts, isExtractable, usages) {
  const { name, hash, namedCurve } = given;
  const algorithm = { __proto__: null, name, hash, namedCurve, length: undefined };
  if (ALGORITHMS[name].kind === "rsa") {
    algorithm.modulusLength = bitLength(parts[0]);
    algorithm.publicExponent = newBytes(parts[1], 0, ArrayBufferPrototypeGetByteLength(parts[1]));
  }
  return new CryptoKey(INTERNAL, { __proto__: null, type, algorithm, parts, isExtractable, usages });
}

function bitLength(buffer) {
  const length = ArrayBufferPrototypeGetByteLength(buffer);
  return length === 0 ? 0 : 8 * length - MathClz32(newBytes(buffer, 0, length)[0]) + 24;
}

function checkPairUsages({ name }, type, usages) {
  const allowed = ALGORITHMS[name][type === "private" ? "privateUsages" : "publicUsages"];
  for (let index = 0; index < usages.length; index++) {
    if (allowed[usages[index]] !== true) {
      throw newDOMException("A " + type + " key for " + name + " can't be used for " + usages[index] + ".", "SyntaxError");
    }
  }
}

function usagesOf(usages, allowed) {
  const kept = newList();
  for (let index = 0; index < usages.length; index++) {
    if (allowed[usages[index]] === true) kept[kept.length] = usages[index];
  }
  return kept;
}

function generatePair(given, isExtractable, usages) {
  const { kind, publicUsages, privateUsages } = ALGORITHMS[given.name];
  checkUsages(given, usages);
  const ofPrivate = usagesOf(usages, privateUsages);
  let privateParts;
  let publicParts;
  if (kind === "rsa") {
    const { modulusLength, publicExponent } = given;
    if (!(modulusLength >= 256 && modulusLength <= 4096 && isExponent(publicExponent))) throw noRsaKey();
    if (ofPrivate.length === 0) throw noUsages();
    privateParts = host.rsaGenerate(modulusLength, TypedArrayPrototypeGetBuffer(publicExponent));
    if (privateParts === undefined) throw noRsaKey();
    publicParts = listOfTwo(privateParts[0], privateParts[1]);
  } else {
    const curve = curveOf(given);
    if (ofPrivate.length === 0) throw noUsages();
    privateParts = host.curveGenerate(curve);
    publicParts = newList();
    publicParts[0] = privateParts[1];
  }
  const pair = {};
  const publicKey = newPairKey("public", given, publicParts, true, usagesOf(usages, publicUsages));
  ObjectDefineProperty(pair, "publicKey", dataProperty(publicKey));
  ObjectDefineProperty(pair, "privateKey", dataProperty(newPairKey("private", given, privateParts, isExtractable, ofPrivate)));
  return pair;
}

function noRsaKey() {
  return operationFailed("No RSA key has this length (256 to 4096 bits) and this exponent (3 or 65537).");
}

function noUsages() {
  return newDOMException("A secret or private key must have a usage.", "SyntaxError");
}

// 3 or 65537, the two that are in use.
function isExponent(bytes) {
  let value = 0;
  for (let index = 0; index < byteLength(bytes); index++) value = value > 65537 ? value : value * 256 + bytes[index];
  return value === 3 || value === 65537;
}

// --- importing ---

function importPair(format, data, given, isExtractable, usages) {
  const { kind } = ALGORITHMS[given.name];
  const isPrivate = format === "pkcs8" || (format === "jwk" && data.d !== undefined);
  const type = isPrivate ? "private" : "public";
  checkPairUsages(given, type, usages);
  const isRsa = kind === "rsa";
  if (isRsa && format === "raw") throw notSupported("A key for " + given.name + " can't be raw.");
  const curve = isRsa ? undefined : curveOf(given);
  let parts;
  if (format === "jwk") {
    parts = isRsa ? rsaOfJwk(data, given, isPrivate, isExtractable, usages) : curveOfJwk(data, given, curve, isPrivate, isExtractable, usages);
  } else if (format === "raw") {
    parts = publicOnly(host.curvePoint(curve, data));
  } else {
    parts = isRsa ? host.rsaRead(isPrivate, data) : host.curveRead(curve, isPrivate, data);
  }
  if (parts === undefined) throw dataError("The key is none for " + given.name + ".");
  if (isPrivate && usages.length === 0) throw noUsages();
  return newPairKey(type, given, parts, isExtractable, usages);
}

function publicOnly(buffer) {
  if (buffer === undefined) return undefined;
  const parts = newList();
  parts[0] = buffer;
  return parts;
}

function checkJwkAlgorithm(jwk, wanted) {
  const { alg } = jwk;
  if (alg !== undefined && alg !== wanted) throw dataError("The JSON Web Key is for another algorithm.");
}

function memberOf(jwk, name) {
  const value = jwk[name];
  const buffer = typeof value === "string" ? decodeBase64Url(value) : undefined;
  if (buffer === undefined) throw dataError("The JSON Web Key has no " + name + " that is base64url.");
  return buffer;
}

// What `alg` is of an RSA key: "RS256", "PS1", "RSA-OAEP-512".
function rsaJwkName({ name, hash }) {
  const digits = hash === "SHA-1" ? "1" : StringPrototypeSlice(hash, 4);
  if (name === "RSA-OAEP") return hash === "SHA-1" ? name : name + "-" + digits;
  return (name === "RSA-PSS" ? "PS" : "RS") + digits;
}

function rsaOfJwk(jwk, given, isPrivate, isExtractable, usages) {
  checkJwk(jwk, "RSA", given.name === "RSA-OAEP" ? "enc" : "sig", isExtractable, usages);
  checkJwkAlgorithm(jwk, rsaJwkName(given));
  if (jwk.oth !== undefined) throw notSupported("RSA keys of more than two primes are not supported.");
  const parts = newList();
  const count = isPrivate ? RSA_MEMBERS.length : 2;
  for (let index = 0; index < count; index++) parts[index] = memberOf(jwk, RSA_MEMBERS[index]);
  return host.rsaCheck(isPrivate, parts);
}

function curveOfJwk(jwk, given, curve, isPrivate, isExtractable, usages) {
  const isElliptic = ALGORITHMS[given.name].kind === "elliptic";
  const isSigning = given.name === "ECDSA" || given.name === "Ed25519";
  checkJwk(jwk, isElliptic ? "EC" : "OKP", isSigning ? "sig" : "enc", isExtractable, usages);
  if (jwk.crv !== curve) throw dataError("The JSON Web Key is of another curve.");
  if (given.name === "ECDSA") checkJwkAlgorithm(jwk, "ES" + (curve === "P-521" ? "512" : StringPrototypeSlice(curve, 2)));
  else if (given.name === "Ed25519" && jwk.alg !== "Ed25519") checkJwkAlgorithm(jwk, "EdDSA");
  let point = memberOf(jwk, "x");
  if (isElliptic) {
    const y = memberOf(jwk, "y");
    const size = CURVES[curve];
    if (ArrayBufferPrototypeGetByteLength(point) !== size || ArrayBufferPrototypeGetByteLength(y) !== size) return undefined;
    const bytes = new Uint8ArrayConstructor(2 * size + 1);
    bytes[0] = 4;
    TypedArrayPrototypeSet(bytes, newBytes(point, 0, size), 1);
    TypedArrayPrototypeSet(bytes, newBytes(y, 0, size), size + 1);
    point = TypedArrayPrototypeGetBuffer(bytes);
  }
  point = host.curvePoint(curve, point);
  if (!isPrivate || point === undefined) return publicOnly(point);
  const key = memberOf(jwk, "d");
  if (isElliptic && ArrayBufferPrototypeGetByteLength(key) !== CURVES[curve]) return undefined;
  const wanted = host.curvePublic(curve, key);
  return wanted !== undefined && isSameBuffer(wanted, point) ? listOfTwo(key, point) : undefined;
}

// --- exporting ---

function exportPair(format, key) {
  const { algorithm, parts, type } = key;
  const isRsa = ALGORITHMS[algorithm.name].kind === "rsa";
  if (isRsa && format === "raw") throw notSupported("A key for " + algorithm.name + " can't be raw.");
  if (!key.isExtractable) throw invalidAccess("The key is not extractable.");
  if (format === "jwk") return isRsa ? rsaJwk(key) : curveJwk(key);
  const isPrivate = format === "pkcs8";
  if (isPrivate !== (type === "private")) throw invalidAccess("A " + type + " key is not exported as " + format + ".");
  if (format === "raw") return copyBuffer(parts[0]);
  return isRsa ? host.rsaWrite(isPrivate, toArray(parts)) : host.curveWrite(curveOf(algorithm), isPrivate, parts[0]);
}

function copyBuffer(buffer) {
  return TypedArrayPrototypeGetBuffer(copyBytes(newBytes(buffer, 0, ArrayBufferPrototypeGetByteLength(buffer))));
}

function encodeBuffer(buffer, start = 0, end = ArrayBufferPrototypeGetByteLength(buffer)) {
  return encodeBase64Url(newBytes(buffer, start, end - start));
}

function rsaJwk({ algorithm, parts, usages }) {
  const jwk = newJwk("RSA", usages, rsaJwkName(algorithm));
  for (let index = 0; index < parts.length; index++) {
    ObjectDefineProperty(jwk, RSA_MEMBERS[index], dataProperty(encodeBuffer(parts[index])));
  }
  return jwk;
}

function curveJwk({ algorithm, parts, type, usages }) {
  const curve = curveOf(algorithm);
  const size = CURVES[curve];
  const jwk = newJwk(size === undefined ? "OKP" : "EC", usages, algorithm.name === "Ed25519" ? "EdDSA" : undefined);
  const point = parts[type === "private" ? 1 : 0];
  ObjectDefineProperty(jwk, "crv", dataProperty(curve));
  ObjectDefineProperty(jwk, "x", dataProperty(size === undefined ? encodeBuffer(point) : encodeBuffer(point, 1, size + 1)));
  if (size !== undefined) ObjectDefineProperty(jwk, "y", dataProperty(encodeBuffer(point, size + 1)));
  if (type === "private") ObjectDefineProperty(jwk, "d", dataProperty(encodeBuffer(parts[0])));
  return jwk;
}

// --- computing ---

function signWithPair(given, key, data) {
  const { name, hash } = key.algorithm;
  const isRsa = ALGORITHMS[name].kind === "rsa";
  if (name !== "Ed25519") refuseInModuleScope(); // takes random numbers
  const signature = isRsa
    ? host.rsaSign(hash, toArray(key.parts), data, given.saltLength)
    : host.curveSign(curveOf(key.algorithm), given.hash, key.parts[0], data);
  if (signature === undefined) throw operationFailed(name + ": nothing can be signed with this key and these parameters.");
  return signature;
}

function verifyWithPair(given, key, signature, data) {
  const { name, hash } = key.algorithm;
  if (ALGORITHMS[name].kind === "rsa") return host.rsaVerify(hash, toArray(key.parts), signature, data, given.saltLength);
  return host.curveVerify(curveOf(key.algorithm), given.hash, key.parts[0], signature, data);
}

function rsaCipher(given, key, data, isEncrypting) {
  refuseInModuleScope(); // takes random numbers
  const run = isEncrypting ? host.rsaEncrypt : host.rsaDecrypt;
  return run(key.algorithm.hash, toArray(key.parts), data, given.label);
}

// So many bits, or all where that is undefined.
function agree(given, key, length) {
  const { algorithm } = key;
  const other = given.public;
  if (key.type !== "private") throw invalidAccess("The base key is not a private one.");
  if (other.type !== "public") throw invalidAccess("The other side's key is not a public one.");
  if (other.algorithm.name !== algorithm.name || other.algorithm.namedCurve !== algorithm.namedCurve) {
    throw invalidAccess("The other side's key is of another algorithm or curve.");
  }
  const secret = host.curveAgree(curveOf(algorithm), key.parts[0], other.parts[0]);
  if (secret === undefined) throw operationFailed(algorithm.name + ": these keys agree on nothing.");
  if (length === undefined) return secret;
  if (length > 8 * ArrayBufferPrototypeGetByteLength(secret)) throw operationFailed(algorithm.name + ": there are not so many bits.");
  const bytes = copyBytes(newBytes(secret, 0, MathCeil(length / 8)));
  if (length % 8 !== 0) bytes[byteLength(bytes) - 1] &= 0xff << (8 - (length % 8));
  return TypedArrayPrototypeGetBuffer(bytes);
}
