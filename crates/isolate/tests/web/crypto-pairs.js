import { equal, rejects, suite } from "./check.js";

// Made by another implementation.
const MADE = {
  "rsa": {
    pkcs8: 
      "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQCz83yqJDVf2h59vlfvFq703uMY3alqEpdPPm2d/f7+RtmsTxgfcN+uoHlxQp" +
      "EeiJb3/Gb3CbRtsLqxSb3+2vcQukzuWJtakun+FTlRHmgkL9vY8SisO0yUHFdferFdmAtu2AOgRc+JxpvLSIjuy165OrHt/VsK7A1BCli7pLXt" +
      "4F6TYM2oajhniCYwh+hAt1vMxDyOaAPtZ/499T3JB65ovwmVvpZpdMHv8HRfIFAER84ZVQ4jiE2A+NktNcn85V9mXF1TzuyS18V6vDp8o7FO6j" +
      "3ysPfmRTnV4QhqrOPdiWhwxDYlp2lV5IB4GJo3xOAO3cYEA/UHT1e6SJkicm3/AgMBAAECggEAQ5NLfM8FFh4gNiMc/WU8xSrQCB3xSSp7FKCC" +
      "ZIKl15H+mvTGv8PQ09BiWnRfb6JmYvCvL9S+ozRrHzlsdkB+6BK14gl3KW+jHC2XLQ2omPI58kE5f1fzXWk5LFs0MMvweyr2TaD5myjwh0mRVm" +
      "8bfp56g78RCcxz+7kpcimbwhxO3+kFLkK9Ir6oWzjP6J7ntDcM+CUBMqlaSOTAComKYIXmH5ejW6Tv15zWgMHZgs5qw2p9ZB+5yQNU//0jiAhU" +
      "NmHFNteZQ6mTOeqFtlK3/QoJG1XHf5ODr8VxC6CDd/X8qWpvjfVmpCmH+SwjDlKBZVAdGOn+OH6178xjBBKzfQKBgQDZxFyPOu1uXJY8v79/Gg" +
      "kKnJWaSbhQhV9X0PE383acg7L1fvv69yy8PTSedhGVt5ZH96GLEgKyJ3HMmp7vj23AYOV3bxllz1I/ZEYeuadGciLcqbHOxexKxZbxsXWRAaS0" +
      "vZ8e4JDLsRQukuEV4kYELbffWwepJy2IsvTyoYjqiwKBgQDTi3jMTGuN2J824+/pRiYr6pb28xEaJ/+HLkEmtPyPfmg6lPM6Gy00tGAZPJvC5o" +
      "UZ6Qnd4epnXj0LIkAwL4ZBG/wvEhxgL1sy7bQXz3wcJGGVepWk0vIMq43y00R4i8BJysxUlKt34jcglmTiFpP5CybH6qB3L0Q4LYO7DaJc3QKB" +
      "gCTUfQMMaFOd/RrRI0YP1S+iQ/sQNMgJhpKHmARqfMkDzSSQEXXkkABWKawTM+4qWpRZYUzwAty2pxx/mhnSHDHJMYX9mEILylFGWEWiCJR1gU" +
      "fou1XJS6lpuZmu9b9Mk9qtp1fFizen/03RMZhN6KGUSeDQuH73TVAtVBglEc75AoGANtq5rjA6y4Nadb9RXKoGB+lC0DJjQucQSZti5YiU3Rio" +
      "KlipYW3eoQYMzT58HWPtK7TUDCciwz8akSKGhngsVgHNuN73YLGm8mPVCT+SLTH54+rvltfkUAjEPC0wWhnS+M+PgHc0p1ePd/HHoyC7qh6MJd" +
      "bfWUh2ZiLXP8/fRDkCgYEAzL1l6hMJYA7UdiUm556LEjQlVQpZ7XEkBAxwe5Yp7VN78io/jKhej49RrlrC3rQ6psC+d8ktthfHplUhCrcqO7Jt" +
      "MmEO0wwSx7o/b/f4U050yfuvcXsn64cxm1O8pCWZ8miU7eoTR15kqMBEbX62flLnutb4h4xxaMu5Y9bwBT4=",
    spki: 
      "MIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8AMIIBCgKCAQEAs/N8qiQ1X9oefb5X7xau9N7jGN2pahKXTz5tnf3+/kbZrE8YH3DfrqB5cUKRHoiW9/" +
      "xm9wm0bbC6sUm9/tr3ELpM7libWpLp/hU5UR5oJC/b2PEorDtMlBxXX3qxXZgLbtgDoEXPicaby0iI7steuTqx7f1bCuwNQQpYu6S17eBek2DN" +
      "qGo4Z4gmMIfoQLdbzMQ8jmgD7Wf+PfU9yQeuaL8Jlb6WaXTB7/B0XyBQBEfOGVUOI4hNgPjZLTXJ/OVfZlxdU87sktfFerw6fKOxTuo98rD35k" +
      "U51eEIaqzj3YlocMQ2JadpVeSAeBiaN8TgDt3GBAP1B09XukiZInJt/wIDAQAB",
    pss: 
      "TuXeUpnwK2fQU7+4ANBDkuL8+ePl9WN9X9aUXgkyHABgW2x3OWK4EuccUC6CnfCyNiL8JBjF6V2CAu51mmHp/yicJU7aYLbjIr077fBwBbBKA/" +
      "+vxWfRrVS4TuEEuLQvsX0VXcoWOimFqRF+apeDC3fcpFAEjAtthAcQiy0dlayYDzWfU1WUb/5U87qlqhsCAOuVxIA9CPv+SaGssCq2d/vh83Or" +
      "ZXiwyvMlXqq9TMLVHPNT8zD67cVgSvC0gayDurLhwDS73ruPMRQ2I31qa8MGwBjBBrrGdyi24YQscx2S9F3EBbZtZ5Q5poErAoSZpuSdGswwc2" +
      "4BDrbHr913QQ==",
    pkcs1: 
      "GrXHwQkIkSdb/F8MyYpV8iaoHqCGO7jNyYT2SEPHOep8t8lmdsBxJvAVXZcih56nDcc9ipCy1UWK5kM+xEY29BYbtErWE9cVUUjnOeOTLqPMOs" +
      "FbdxHsSsw3h036H6XRd8arU4K8nojzxxtPsINPWV/hd15KJmcfk4BmuwP9qbJnTP/K0kCZm7knEZlwJX1uSj3u9D5glQsS8s4cDUaABUDuAYE6" +
      "4rwdVIJQzZFBXuHsx5orY7QIJ/SPjB9S3llC4h3aoG49PzDKgwEGn9LUms0WsaIbrqftmMDG2qAktzc+IyRRDw/wQyht5ostHTtF82BuSCbQNN" +
      "OcmmlONU+kWQ==",
    oaep: 
      "dOOPV52bAwapHaQNlhHA6pe4BIb/DeZF6nFeiE7qnNYPG6C00IQAixRQWcf6a4hSPaaZdKvlLDPPzF87dunNeO8afO0p6JDEiOsi1zjJpjDwH6" +
      "SpIfuW30i5XEL3bIqSoWeTMWttzwEEcHQz8mrBJYaTXElJiETzgdZmqJLjfSK62aJ+J4noRz+SWV055RK6IL2pz9eX13/+duZFkJ5LXZ2Dqyjl" +
      "z9RCXeN6ljmWX/9dYReQAGxlFr1lRCXMalYpsXxbuixyKNd2vP37Pb+CTFXAyM10ilGs8nxx7ru242SOTcuRiUarpCzfh+DJffRrLgZuZ0tl3Q" +
      "ZpunDsbEBQlA==",
  },
  "P-256": {
    hash: "SHA-256",
    pkcs8: 
      "MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgOEick9mp8QJu/8MMX4edhjUr04DHA4M3KoCANAR4w7WhRANCAATIc6q7YEplVk" +
      "TwevnD7vtYD1Zb9ezlP4zeosnnX1IgztoGU4L3oKpHVCY8Q5RlnaFMQWzedc+rE1i0CTxVEMLP",
    spki: 
      "MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEyHOqu2BKZVZE8Hr5w+77WA9WW/Xs5T+M3qLJ519SIM7aBlOC96CqR1QmPEOUZZ2hTEFs3nXPqx" +
      "NYtAk8VRDCzw==",
    signature: "lPNvDKEVYqmgdHwmZYi2+LCUUDczceZx0BSTfYH6kTjTTSHe5AHLKRlgJor84v65wLG2lFdrud4aWwbU2L7jbQ==",
    secret: "62e1c899ce7646146dc98106503cdb9c332094182378b290975fe4968151907f",
  },
  "P-384": {
    hash: "SHA-1",
    pkcs8: 
      "MIG2AgEAMBAGByqGSM49AgEGBSuBBAAiBIGeMIGbAgEBBDBPVQ5cgF6UyE9DnhCegKzEzlwLa17gqb7RojJlazNBFwCnCTPOTUFSJvAbf+XP5Q" +
      "ShZANiAATepaC1Jc8pWI4PXRMeKgZZibwcS0j7OHWaALztYfpLGN7kEA0m8zz6OwBSWqHLK57PM32VeVJkzk8IejKqNTUkvlXGLv0dlnU1QkmL" +
      "xV0wyBmeWuiNVloR3l3T7r34yjU=",
    spki: 
      "MHYwEAYHKoZIzj0CAQYFK4EEACIDYgAE3qWgtSXPKViOD10THioGWYm8HEtI+zh1mgC87WH6Sxje5BANJvM8+jsAUlqhyyuezzN9lXlSZM5PCH" +
      "oyqjU1JL5Vxi79HZZ1NUJJi8VdMMgZnlrojVZaEd5d0+69+Mo1",
    signature: 
      "b7iwo2fpvhJrE8RMsMtPnCXbwX34MrXgd6yC5Q/OpiTUrr8MuloudKauHtxYUXUSxLsgvxF46Gdi3f/zNA9oy1+0SeLkXiNtw2G6qHEqWu2gFX" +
      "he9n57ZZERI+BgveBK",
    secret: "cbbb026f0ab9fd7cd5a0fbcf77f733aa9936321f9014f272973df70b17743540",
  },
  "P-521": {
    hash: "SHA-256",
    pkcs8: 
      "MIHuAgEAMBAGByqGSM49AgEGBSuBBAAjBIHWMIHTAgEBBEIB4kQ7ZUeyBAHj5jKN9oON9fMNx7q/5v0fIOc9SJme/0Pi9lXdQiHQjY812YITrB" +
      "/IelhB7ARuw+AAQ859ztGm3UuhgYkDgYYABAB78o49yg0hBZn6NZw8p6s06nGTB/HKfdEuvs3Ue5nq/Zi2Cb1BaPMjTSaWVLqx/kW17W2/4GPN" +
      "X6X2NTAfLbwpkAETd9hVxFsCv1Og7uA7z15kL6MT84hEuQPadR2NkxN3F6lLaClIHrgUBscr7GPvKaMd4g4Z3vfzh8v/pHDL1f6ivg==",
    spki: 
      "MIGbMBAGByqGSM49AgEGBSuBBAAjA4GGAAQAe/KOPcoNIQWZ+jWcPKerNOpxkwfxyn3RLr7N1HuZ6v2Ytgm9QWjzI00mllS6sf5Fte1tv+BjzV" +
      "+l9jUwHy28KZABE3fYVcRbAr9ToO7gO89eZC+jE/OIRLkD2nUdjZMTdxepS2gpSB64FAbHK+xj7ymjHeIOGd7384fL/6Rwy9X+or4=",
    signature: 
      "AYKSPpoAXG0yvNFaC7xq1qWT+Z4KKoOrgSUKoO7m8ffjBOaWfeBj2y3VikL8AOI0z2fyUndG6o6185JjiOfd1htQAVF37ZN02ROZ3ewcRMBfKa" +
      "tqkqrIhJZo8B7s/eeWVVQn7xFnB05BoLFLqtat+1cOSDmgW468bBlPN8Yax2yOaR8p",
    secret: "01f04f8898311690a559f1d81787ac136664eb5c9d5b962fd3ed3cfb3b4937bd",
  },
  "Ed25519": {
    pkcs8: "MC4CAQAwBQYDK2VwBCIEIGQXb3T6erUvsE5RU+6psLM0598irQCn4KFxgDBeCZUe",
    spki: "MCowBQYDK2VwAyEArL3c7q7PUnpZEh7ozAHK4amqZdyZqvuNhgLugTyQiKM=",
    signature: "9wCozKH/bbQZyAzvVdZnBd4sHOoiP1UQlE9heIKt3wElbHtX767YxH9frkOUvqDeWzjgydJzj67i6GBipaRdAA==",
    jwk: {"kty":"OKP","crv":"Ed25519","x":"rL3c7q7PUnpZEh7ozAHK4amqZdyZqvuNhgLugTyQiKM","d":"ZBdvdPp6tS-wTlFT7qmwszTn3yKtAKfgoXGAMF4JlR4"},
  },
  "X25519": {
    pkcs8: "MC4CAQAwBQYDK2VuBCIEIDjGJhud05vcKYBR7IxNtZ5nq6WZmNqEbb2wZ5iC2uZz",
    spki: "MCowBQYDK2VuAyEAKx+HhXcMYPyiAxQhTB5lhst+wOhheA9W+0qQ/hltJB8=",
    other: "cBuxqOg/c/t2OtGEeH6ZVYHAadl0/m2cRDIf76lYzAE=",
    secret: "cb72a396abdff08a00824fbd53e3a8091672d065fc73758eefd47a4452084878",
    jwk: {"kty":"OKP","crv":"X25519","x":"Kx-HhXcMYPyiAxQhTB5lhst-wOhheA9W-0qQ_hltJB8","d":"OMYmG53Tm9wpgFHsjE21nmerpZmY2oRtvbBnmILa5nM"},
  },
};

const text = (it) => new TextEncoder().encode(it);
const hex = (buffer) => [...new Uint8Array(buffer)].map((byte) => byte.toString(16).padStart(2, "0")).join("");
const bytes = (base64) => Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
const base64 = (buffer) => btoa(String.fromCharCode(...new Uint8Array(buffer)));
const { subtle } = crypto;

// A key's DER is what it was made of, and a JSON Web Key leads back to it.
async function goesRound(made, algorithm, ofPrivate, ofPublic) {
  for (const [format, usages, type] of [["pkcs8", ofPrivate, "private"], ["spki", ofPublic, "public"]]) {
    const key = await subtle.importKey(format, bytes(made[format]), algorithm, true, usages);
    equal([key.type, key.extractable, key.usages, key.algorithm.name], [type, true, usages, algorithm.name], format);
    equal(base64(await subtle.exportKey(format, key)), made[format], `${algorithm.name} ${format}`);
    const jwk = await subtle.exportKey("jwk", key);
    equal([jwk.key_ops, jwk.ext, "d" in jwk], [usages, true, type === "private"]);
    const again = await subtle.importKey("jwk", jwk, algorithm, true, usages);
    equal(base64(await subtle.exportKey(format, again)), made[format], `${algorithm.name} jwk`);
    await rejects(subtle.exportKey(format === "spki" ? "pkcs8" : "spki", key), "InvalidAccessError");
    await rejects(subtle.importKey(format, bytes(made[format]).subarray(1), algorithm, true, usages), "DataError");
    await rejects(subtle.importKey(format, bytes(made[format]), algorithm, true, ["encrypt", "sign", "deriveBits"]), "SyntaxError");
  }
  await rejects(subtle.importKey("pkcs8", bytes(made.pkcs8), algorithm, true, []), "SyntaxError");
}

async function rsa() {
  const made = MADE.rsa;
  const import_ = (format, name, hash, usages) => subtle.importKey(format, bytes(made[format]), { name, hash }, true, usages);
  await goesRound(made, { name: "RSA-PSS", hash: "SHA-256" }, ["sign"], ["verify"]);
  const signing = await import_("pkcs8", "RSASSA-PKCS1-v1_5", "SHA-256", ["sign"]);
  const { name, modulusLength, publicExponent, hash } = signing.algorithm;
  equal([name, modulusLength, [...publicExponent], hash.name], ["RSASSA-PKCS1-v1_5", 2048, [1, 0, 1], "SHA-256"]);
  equal(base64(await subtle.sign("RSASSA-PKCS1-v1_5", signing, text("abc"))), made.pkcs1);
  const verifying = await import_("spki", "RSASSA-PKCS1-v1_5", "SHA-256", ["verify"]);
  const verify = (data) => subtle.verify("RSASSA-PKCS1-v1_5", verifying, bytes(made.pkcs1), text(data));
  equal([await verify("abc"), await verify("abd")], [true, false]);

  const [pss, pssPublic] = [await import_("pkcs8", "RSA-PSS", "SHA-256", ["sign"]), await import_("spki", "RSA-PSS", "SHA-256", ["verify"])];
  const verifyPss = (saltLength, signature) => subtle.verify({ name: "RSA-PSS", saltLength }, pssPublic, signature, text("abc"));
  equal([await verifyPss(20, bytes(made.pss)), await verifyPss(21, bytes(made.pss)), await verifyPss(5000, bytes(made.pss))], [true, false, false]);
  equal(await verifyPss(7, await subtle.sign({ name: "RSA-PSS", saltLength: 7 }, pss, text("abc"))), true);
  await rejects(subtle.sign({ name: "RSA-PSS", saltLength: 5000 }, pss, text("abc")), "OperationError");
  await rejects(subtle.sign("RSASSA-PKCS1-v1_5", pss, text("abc")), "InvalidAccessError", "RSA-PSS");

  const decrypting = await import_("pkcs8", "RSA-OAEP", "SHA-1", ["decrypt", "unwrapKey"]);
  const encrypting = await import_("spki", "RSA-OAEP", "SHA-1", ["encrypt", "wrapKey"]);
  const label = new Uint8Array([255, 0, 1]);
  equal(hex(await subtle.decrypt({ name: "RSA-OAEP", label }, decrypting, bytes(made.oaep))), hex(text("a secret")));
  await rejects(subtle.decrypt("RSA-OAEP", decrypting, bytes(made.oaep)), "OperationError");
  const encrypted = await subtle.encrypt("RSA-OAEP", encrypting, text("x".repeat(214)));
  equal((await subtle.decrypt("RSA-OAEP", decrypting, encrypted)).byteLength, 214, "as long as there is room for");
  await rejects(subtle.encrypt("RSA-OAEP", encrypting, text("x".repeat(215))), "OperationError");
  const wrapped = await subtle.wrapKey("raw", await subtle.importKey("raw", new Uint8Array(16), "AES-GCM", true, ["encrypt"]), encrypting, "RSA-OAEP");
  const unwrapped = await subtle.unwrapKey("raw", wrapped, decrypting, "RSA-OAEP", "AES-GCM", true, ["encrypt"]);
  equal(hex(await subtle.exportKey("raw", unwrapped)), "00".repeat(16));

  const algorithm = { name: "RSASSA-PKCS1-v1_5", hash: "SHA-256", modulusLength: 512, publicExponent: new Uint8Array([1, 0, 1]) };
  const pair = await subtle.generateKey(algorithm, false, ["sign", "verify"]);
  equal([pair.publicKey.extractable, pair.privateKey.extractable, pair.publicKey.usages, pair.privateKey.usages], [true, false, ["verify"], ["sign"]]);
  const signature = await subtle.sign(algorithm, pair.privateKey, text("abc"));
  equal(await subtle.verify(algorithm, pair.publicKey, signature, text("abc")), true);
  await rejects(subtle.exportKey("jwk", pair.privateKey), "InvalidAccessError", "not extractable");
  await rejects(subtle.generateKey({ ...algorithm, modulusLength: 4104 }, true, ["sign"]), "OperationError", "4096");
  await rejects(subtle.generateKey({ ...algorithm, publicExponent: new Uint8Array([2]) }, true, ["sign"]), "OperationError", "65537");
  await rejects(subtle.generateKey({ ...algorithm, publicExponent: [1, 0, 1] }, true, ["sign"]), "TypeError", "Uint8Array");
  await rejects(subtle.generateKey(algorithm, true, ["verify"]), "SyntaxError");
}

async function curves() {
  for (const namedCurve of ["P-256", "P-384", "P-521"]) {
    const made = MADE[namedCurve];
    const ecdsa = { name: "ECDSA", namedCurve, hash: made.hash };
    await goesRound(made, ecdsa, ["sign"], ["verify"]);
    const verifying = await subtle.importKey("spki", bytes(made.spki), ecdsa, true, ["verify"]);
    const verify = (signature, data) => subtle.verify(ecdsa, verifying, signature, text(data));
    equal([await verify(bytes(made.signature), "abc"), await verify(bytes(made.signature), "abd"), await verify(new Uint8Array(3), "abc")], [true, false, false]);
    const signing = await subtle.importKey("pkcs8", bytes(made.pkcs8), ecdsa, false, ["sign"]);
    equal(await verify(await subtle.sign(ecdsa, signing, text("abc")), "abc"), true, namedCurve);
    const raw = await subtle.exportKey("raw", verifying);
    equal(raw.byteLength, 2 * SIZES[namedCurve] + 1);
    const wrong = new Uint8Array(raw.slice());
    wrong[5] ^= 1;
    await rejects(subtle.importKey("raw", wrong, ecdsa, true, ["verify"]), "DataError");

    const ecdh = { name: "ECDH", namedCurve };
    const ours = await subtle.importKey("pkcs8", bytes(made.pkcs8), ecdh, false, ["deriveBits", "deriveKey"]);
    const theirs = await subtle.importKey("spki", bytes(made.spki), ecdh, true, []);
    equal(hex(await subtle.deriveBits({ name: "ECDH", public: theirs }, ours, 256)), made.secret, namedCurve);
    equal(hex(await subtle.deriveBits({ name: "ECDH", public: theirs }, ours, 3)), (parseInt(made.secret.slice(0, 2), 16) & 0xe0).toString(16).padStart(2, "0"), "three bits");
    await rejects(subtle.deriveBits({ name: "ECDH", public: theirs }, ours, 8 * SIZES[namedCurve] + 8), "OperationError");
    await rejects(subtle.deriveBits({ name: "ECDH", public: ours }, ours, 8), "InvalidAccessError", "public");
    await rejects(subtle.deriveBits({ name: "ECDH", public: verifying }, ours, 8), "InvalidAccessError", "another");
    const derived = await subtle.deriveKey({ name: "ECDH", public: theirs }, ours, { name: "AES-GCM", length: 256 }, true, ["encrypt"]);
    equal(hex(await subtle.exportKey("raw", derived)), made.secret);
    const pair = await subtle.generateKey(ecdh, true, ["deriveBits"]);
    equal([pair.publicKey.usages, pair.privateKey.algorithm], [[], { name: "ECDH", namedCurve }]);
  }
  await rejects(subtle.generateKey({ name: "ECDSA", namedCurve: "P-255" }, true, ["sign"]), "NotSupportedError", "P-255");
  await rejects(subtle.importKey("spki", bytes(MADE["P-256"].spki), { name: "ECDSA", namedCurve: "P-384" }, true, ["verify"]), "DataError");
}
const SIZES = { "P-256": 32, "P-384": 48, "P-521": 66 };

async function curve25519() {
  const { Ed25519, X25519 } = MADE;
  await goesRound(Ed25519, { name: "Ed25519" }, ["sign"], ["verify"]);
  await goesRound(X25519, { name: "X25519" }, ["deriveBits"], []);
  const signing = await subtle.importKey("jwk", Ed25519.jwk, "Ed25519", true, ["sign"]);
  equal(base64(await subtle.sign("Ed25519", signing, text("abc"))), Ed25519.signature);
  const verifying = await subtle.importKey("spki", bytes(Ed25519.spki), "ed25519", true, ["verify"]);
  equal(await subtle.verify("Ed25519", verifying, bytes(Ed25519.signature), text("abc")), true);
  await rejects(subtle.importKey("jwk", { ...Ed25519.jwk, x: X25519.jwk.x }, "Ed25519", true, ["sign"]), "DataError");
  const ours = await subtle.importKey("jwk", X25519.jwk, "X25519", false, ["deriveBits"]);
  const other = await subtle.importKey("raw", bytes(X25519.other), "X25519", true, []);
  equal(hex(await subtle.deriveBits({ name: "X25519", public: other }, ours, 256)), X25519.secret);
  const nowhere = await subtle.importKey("raw", new Uint8Array(32), "X25519", true, []);
  await rejects(subtle.deriveBits({ name: "X25519", public: nowhere }, ours, 256), "OperationError", "agree on nothing");
}

export default suite(async () => {
  await rsa();
  await curves();
  await curve25519();
});
