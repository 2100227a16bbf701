// How arguments and results of tools are written: as JSON, with bytes in it.
//
// Tools are written for what JSON makes of values, and for bytes, which models hand from one tool to the next.

/** The property that marks bytes, which are in base64 in `data`. */
export const BYTES = "$coracle.bytes";

/** As JSON. @throws {TypeError} for what JSON hasn't: cycles and bigints. */
export function encode(value: unknown): string | undefined {
  // A Buffer has a `toJSON`, so what was there before that is looked at.
  return JSON.stringify(value, function (this: Record<string, unknown>, key, now: unknown) {
    const bytes = bytesOf(this[key]);
    if (bytes === undefined) return now;
    return { [BYTES]: this[key] instanceof ArrayBuffer ? "ArrayBuffer" : "Uint8Array", data: toBase64(bytes) };
  });
}

export function decode(json: string): unknown {
  return JSON.parse(json, (_, value: unknown) => {
    if (typeof value !== "object" || value === null || !Object.hasOwn(value, BYTES)) return value;
    const { [BYTES]: kind, data } = value as { [BYTES]: unknown; data?: unknown };
    if (typeof data !== "string") return value;
    const bytes = Uint8Array.from(atob(data), (character) => character.charCodeAt(0));
    return kind === "ArrayBuffer" ? bytes.buffer : bytes;
  });
}

function bytesOf(value: unknown): Uint8Array | undefined {
  if (value instanceof ArrayBuffer) return new Uint8Array(value);
  if (ArrayBuffer.isView(value)) return new Uint8Array(value.buffer, value.byteOffset, value.byteLength);
  return undefined;
}

function toBase64(bytes: Uint8Array): string {
  let text = "";
  for (const byte of bytes) text += String.fromCharCode(byte);
  return btoa(text);
}
