import { equal, looksRight, rejects, suite, throws } from "./check.js";

// Expected texts were computed by another implementation.
const text = (it) => new TextEncoder().encode(it);
const count = (length) => Uint8Array.from({ length }, (_, index) => index);
const hex = (buffer) => [...new Uint8Array(buffer)].map((byte) => byte.toString(16).padStart(2, "0")).join("");
const { subtle } = crypto;

export default suite(async () => {
  looksRight("Crypto", 0, "subtle getRandomValues randomUUID");
  looksRight("SubtleCrypto", 0, "digest encrypt decrypt sign verify generateKey importKey exportKey deriveBits deriveKey wrapKey unwrapKey timingSafeEqual");
  looksRight("CryptoKey", 0, "type extractable algorithm usages");
  throws(() => new CryptoKey(), "TypeError", "Illegal constructor");

  for (const [name, expected] of [["SHA-1", "a9993e364706816aba3e2571"], ["sha-256", "ba7816bf8f01cfea414140de"], [{ name: "SHA-384" }, "cb00753f45a35e8bb5a03d69"], ["SHA-512", "ddaf35a193617abacc417349"], ["MD5", "900150983cd24fb0d6963f7d"]]) {
    const digest = await subtle.digest(name, text("abc"));
    equal([hex(digest).slice(0, 24), digest instanceof ArrayBuffer], [expected, true], String(name));
  }
  await rejects(subtle.digest("SHA-0", text("")), "NotSupportedError");
  await rejects(subtle.digest("SHA-1", "text"), "TypeError");
  await rejects(subtle.digest("SHA-1"), "TypeError", "2 arguments");
  await rejects(subtle.digest.call({}, "SHA-1", text("")), "TypeError");

  // HMAC.
  const hmac = await subtle.importKey("raw", count(20), { name: "hmac", hash: "SHA-256" }, true, ["verify", "sign"]);
  equal([hmac.type, hmac.extractable, hmac.algorithm, hmac.usages], ["secret", true, { name: "HMAC", length: 160, hash: { name: "SHA-256" } }, ["sign", "verify"]]);
  const signature = await subtle.sign("HMAC", hmac, text("abc"));
  equal(hex(signature), "e0ee2d40d246e53b1aacdc7cd62eefd084fc4deb2ff944d25474dafec5cd6e96");
  equal([await subtle.verify("HMAC", hmac, signature, text("abc")), await subtle.verify("HMAC", hmac, signature, text("abd")), await subtle.verify("HMAC", hmac, count(3), text("abc"))], [true, false, false]);
  const jwk = await subtle.exportKey("jwk", hmac);
  equal(jwk, { kty: "oct", alg: "HS256", key_ops: ["sign", "verify"], ext: true, k: "AAECAwQFBgcICQoLDA0ODxAREhM" });
  const again = await subtle.importKey("jwk", jwk, { name: "HMAC", hash: "SHA-256" }, false, ["sign"]);
  equal(hex(await subtle.sign("HMAC", again, text("abc"))), hex(signature));
  await rejects(subtle.exportKey("raw", again), "InvalidAccessError", "not extractable");
  await rejects(subtle.verify("HMAC", again, signature, text("abc")), "InvalidAccessError", "verify");
  await rejects(subtle.importKey("jwk", jwk, { name: "HMAC", hash: "SHA-1" }, false, ["sign"]), "DataError");
  await rejects(subtle.importKey("raw", count(20), { name: "HMAC", hash: "SHA-256" }, true, ["encrypt"]), "SyntaxError");
  await rejects(subtle.importKey("raw", count(20), { name: "HMAC", hash: "SHA-256" }, true, []), "SyntaxError");
  await rejects(subtle.importKey("raw", count(20), "none", true, ["sign"]), "NotSupportedError");
  equal((await subtle.generateKey({ name: "HMAC", hash: "SHA-512" }, true, ["sign"])).algorithm.length, 1024);

  // AES.
  const long = text("some text that is longer than one block");
  for (const [algorithm, expected] of [
    [{ name: "AES-CBC", iv: count(16) }, "3a6524fb27c73b5303e897f6a2d71af08be7027db52e7864282a0c650118754e4684c38752dede09866571769ba09c73"],
    [{ name: "AES-CTR", counter: new Uint8Array(16).fill(255), length: 64 }, "9af689786cd315a227a765133cfb7787e245e11885ce8a3c0a393e78a8e1e9d9b56c91b1c08b32"],
    [{ name: "AES-GCM", iv: count(12), additionalData: text("ad") }, "346dbb7ee591a763f961e3e3d09d5804f0f6eb5b9e1c3a0e18138de473496fdc6430cc90c0a279780ba64508d04544419b6b121f46bcb0"],
  ]) {
    const key = await subtle.importKey("raw", count(32), algorithm.name, true, ["encrypt", "decrypt"]);
    const encrypted = await subtle.encrypt(algorithm, key, long);
    equal(hex(encrypted), expected, algorithm.name);
    equal(new Uint8Array(await subtle.decrypt(algorithm, key, encrypted)), long);
    if (algorithm.name !== "AES-CTR") await rejects(subtle.decrypt(algorithm, key, new Uint8Array(encrypted).fill(1)), "OperationError");
  }
  const key = await subtle.importKey("raw", count(16), "AES-GCM", true, ["encrypt"]);
  equal(hex(await subtle.encrypt({ name: "AES-GCM", iv: count(16), tagLength: 96 }, key, text("abc"))), "cbcaf0f964e7f4123f8f1c71b88021");
  await rejects(subtle.encrypt({ name: "AES-GCM", iv: count(12), tagLength: 7 }, key, long), "OperationError");
  await rejects(subtle.encrypt({ name: "AES-CBC", iv: count(16) }, key, long), "InvalidAccessError");
  await rejects(subtle.encrypt({ name: "AES-CTR", counter: count(16), length: 1 }, await subtle.importKey("raw", count(16), "AES-CTR", false, ["encrypt"]), new Uint8Array(48)), "OperationError", "more blocks");
  await rejects(subtle.importKey("raw", count(15), "AES-GCM", true, ["encrypt"]), "DataError");
  await rejects(subtle.generateKey({ name: "AES-GCM", length: 100 }, true, ["encrypt"]), "OperationError");
  const wrapping = await subtle.importKey("raw", count(16), "AES-KW", true, ["wrapKey", "unwrapKey"]);
  const wrapped = await subtle.wrapKey("raw", key, wrapping, "AES-KW");
  equal(hex(wrapped), "935a3eb101c34add025e170b46ff0db23e5c2fae8c8f8370");
  const unwrapped = await subtle.unwrapKey("raw", wrapped, wrapping, "AES-KW", "AES-GCM", true, ["encrypt"]);
  equal(new Uint8Array(await subtle.exportKey("raw", unwrapped)), count(16));
  await rejects(subtle.unwrapKey("raw", count(24), wrapping, "AES-KW", "AES-GCM", true, ["encrypt"]), "OperationError");

  // Derivation.
  const password = await subtle.importKey("raw", text("password"), "PBKDF2", false, ["deriveBits", "deriveKey"]);
  const pbkdf2 = { name: "PBKDF2", hash: "SHA-256", salt: text("salt"), iterations: 100 };
  equal(hex(await subtle.deriveBits(pbkdf2, password, 256)), "07e6997180cf7f12904f04100d405d34888fdf62af6d506a0ecc23b196fe99d8");
  const derived = await subtle.deriveKey(pbkdf2, password, { name: "AES-CBC", length: 256 }, true, ["encrypt"]);
  equal(hex(await subtle.exportKey("raw", derived)), "07e6997180cf7f12904f04100d405d34888fdf62af6d506a0ecc23b196fe99d8");
  const hkdf = await subtle.importKey("raw", text("key"), "HKDF", false, ["deriveBits"]);
  equal(hex(await subtle.deriveBits({ name: "HKDF", hash: "SHA-512", salt: text("salt"), info: text("info") }, hkdf, 256)), "24156e2c35525baaf3d0fbb92b734c8032a110a3f12e2596e441e1924870d84c");
  await rejects(subtle.deriveBits(pbkdf2, hkdf, 256), "InvalidAccessError");
  await rejects(subtle.deriveBits({ ...pbkdf2, iterations: 0 }, password, 256), "OperationError");
  await rejects(subtle.deriveBits(pbkdf2, password, 7), "OperationError");
  await rejects(subtle.importKey("raw", text("x"), "PBKDF2", true, ["deriveBits"]), "SyntaxError");

  equal([subtle.timingSafeEqual(count(3), count(3)), subtle.timingSafeEqual(count(3), new Uint8Array(3))], [true, false]);
  throws(() => subtle.timingSafeEqual(count(3), count(4)), "TypeError", "same byte length");
});
