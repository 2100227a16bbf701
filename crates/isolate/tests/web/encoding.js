import { equal, looksRight, suite, throws } from "./check.js";

const bytes = (...list) => new Uint8Array(list);

export default suite(() => {
  looksRight("TextEncoder", 0, "encoding encode encodeInto");
  looksRight("TextDecoder", 0, "encoding fatal ignoreBOM decode");

  const encoder = new TextEncoder();
  equal(encoder.encoding, "utf-8");
  equal(encoder.encode("a\u00e9\u20ac\u{1f600}"), bytes(97, 195, 169, 226, 130, 172, 240, 159, 152, 128));
  equal(encoder.encode(), bytes());
  equal(encoder.encode("\ud800x\udc00"), bytes(239, 191, 189, 120, 239, 191, 189), "lone surrogates");
  equal(encoder.encode("\0"), bytes(0));
  equal(encoder.encode(5), bytes(53));
  throws(() => encoder.encode(Symbol()), "TypeError");
  throws(() => TextEncoder.prototype.encode.call({}, "x"), "TypeError");

  const into = new Uint8Array(5);
  equal(encoder.encodeInto("a\u20ac\u20ac", into), { read: 2, written: 4 }, "no part of a character");
  equal(into, bytes(97, 226, 130, 172, 0));
  equal(encoder.encodeInto("\u{1f600}", new Uint8Array(3)), { read: 0, written: 0 });
  equal(encoder.encodeInto("\u{1f600}b", new Uint8Array(9).subarray(2)), { read: 3, written: 5 });
  equal(encoder.encodeInto("abc", new Uint8Array(0)), { read: 0, written: 0 });
  throws(() => encoder.encodeInto("a", new Uint16Array(1)), "TypeError");
  throws(() => encoder.encodeInto("a", new ArrayBuffer(1)), "TypeError");

  const decode = (list, label, options) => new TextDecoder(label, options).decode(list);
  equal(decode(bytes(97, 195, 169)), "a\u00e9");
  equal(decode(bytes(0xef, 0xbb, 0xbf, 97)), "a", "the mark is dropped");
  equal(decode(bytes(0xef, 0xbb, 0xbf, 97), "utf-8", { ignoreBOM: true }), "\ufeffa");
  equal(decode(bytes(97, 0xff, 98)), "a\ufffdb");
  equal(decode(bytes(0xf0, 0x9f, 0x98)), "\ufffd", "cut short");
  throws(() => decode(bytes(0xff), "utf-8", { fatal: true }), "TypeError", "not valid utf-8");
  equal(decode(bytes(97, 98).buffer), "ab");
  equal(decode(new DataView(bytes(97, 98, 99).buffer, 1)), "bc");
  equal(decode(new Uint16Array([0x6161])), "aa");
  equal(decode(undefined), "");
  throws(() => decode("text"), "TypeError");
  throws(() => decode({}), "TypeError");
  const detached = new ArrayBuffer(4);
  structuredClone(detached, { transfer: [detached] });
  equal(decode(detached), "");

  for (const [label, name] of [["utf8", "utf-8"], [" UTF-8\n", "utf-8"], ["ascii", "windows-1252"], ["latin1", "windows-1252"], ["utf-16", "utf-16le"], ["sjis", "shift_jis"], ["gb2312", "gbk"], ["x-user-defined", "x-user-defined"], ["iso-8859-16", "iso-8859-16"], ["koi", "koi8-r"]]) {
    equal(new TextDecoder(label).encoding, name, label);
  }
  for (const label of ["utf-7", "replacement", "hz-gb-2312", "", "utf-8\0"]) throws(() => new TextDecoder(label), "RangeError");
  equal(decode(bytes(0x80, 0xe9), "windows-1252"), "\u20ac\u00e9");
  equal(decode(bytes(0x61, 0, 0xac, 0x20), "utf-16le"), "a\u20ac");
  equal(decode(bytes(0xfe, 0xff, 0, 0x61), "utf-16be"), "a");
  equal(decode(bytes(0x82, 0xa0), "shift_jis"), "\u3042");
  equal(decode(bytes(0x1b, 0x24, 0x42, 0x24, 0x22), "iso-2022-jp"), "\u3042");

  const stream = new TextDecoder();
  equal(stream.decode(bytes(0xf0, 0x9f), { stream: true }), "");
  equal(stream.decode(bytes(0x98, 0x80), { stream: true }), "\u{1f600}");
  equal(stream.decode(bytes(0xe2), { stream: true }), "");
  equal(stream.decode(), "\ufffd");
  equal(stream.decode(bytes(0xef, 0xbb), { stream: true }) + stream.decode(bytes(0xbf, 97)), "a", "a mark in two pieces");
  const fatal = new TextDecoder("utf-8", { fatal: true });
  equal([fatal.fatal, fatal.ignoreBOM], [true, false]);
  equal(fatal.decode(bytes(0xe2, 0x82), { stream: true }), "");
  throws(() => fatal.decode(), "TypeError");
  equal(fatal.decode(bytes(97)), "a", "it starts anew after an error");
  equal(decode(encoder.encode("x".repeat(200_000) + "\u20ac")).length, 200_001);
});
