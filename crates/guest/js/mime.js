// MIME types (MIME Sniffing standard), and the small grammar of HTTP that they are made of.
//
// A MIME type is { essence, parameters }: "text/html", and a flat list of names and values.

const TOKEN_MARKS = { __proto__: null };
{
  const marks = "!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
  for (let index = 0; index < marks.length; index++) TOKEN_MARKS[marks[index]] = true;
}

function isToken(text) {
  if (text.length === 0) return false;
  for (let index = 0; index < text.length; index++) {
    if (TOKEN_MARKS[text[index]] !== true) return false;
  }
  return true;
}

function isHttpSpace(text, index) {
  const mark = text[index];
  return mark === " " || mark === "\t" || mark === "\n" || mark === "\r";
}

function trimHttp(text) {
  let start = 0;
  let end = text.length;
  while (start < end && isHttpSpace(text, start)) start++;
  while (end > start && isHttpSpace(text, end - 1)) end--;
  return start === 0 && end === text.length ? text : StringPrototypeSlice(text, start, end);
}

// Undefined for what is no MIME type.
function parseMimeType(given) {
  const text = trimHttp(given);
  const slash = StringPrototypeIndexOf(text, "/");
  if (slash === -1 || !isToken(StringPrototypeSlice(text, 0, slash))) return undefined;
  let at = StringPrototypeIndexOf(text, ";", slash);
  if (at === -1) at = text.length;
  const subtype = trimHttp(StringPrototypeSlice(text, slash + 1, at));
  if (!isToken(subtype)) return undefined;
  const essence = StringPrototypeToLowerCase(StringPrototypeSlice(text, 0, slash + 1) + subtype);
  const parameters = newList();
  while (at < text.length) {
    at++; // the semicolon
    while (at < text.length && isHttpSpace(text, at)) at++;
    const nameStart = at;
    while (at < text.length && text[at] !== ";" && text[at] !== "=") at++;
    const name = StringPrototypeToLowerCase(StringPrototypeSlice(text, nameStart, at));
    if (at >= text.length) break;
    if (text[at] === ";") continue;
    at++;
    let value;
    if (text[at] === '"') {
      const quoted = parseQuoted(text, at);
      ({ value } = quoted);
      at = StringPrototypeIndexOf(text, ";", quoted.end);
      if (at === -1) at = text.length;
    } else {
      const valueStart = at;
      at = StringPrototypeIndexOf(text, ";", at);
      if (at === -1) at = text.length;
      value = trimHttp(StringPrototypeSlice(text, valueStart, at));
      if (value === "") continue;
    }
    if (isToken(name) && isQuotable(value) && firstPair(parameters, name) === undefined) appendPair(parameters, name, value);
  }
  return { __proto__: null, essence, parameters };
}

// The text in quotes that begins at `start`, and where it ends.
function parseQuoted(text, start) {
  let value = "";
  let at = start + 1;
  while (at < text.length && text[at] !== '"') {
    if (text[at] === "\\" && at + 1 < text.length) at++;
    value += text[at];
    at++;
  }
  return { __proto__: null, value, end: at };
}

function isQuotable(value) {
  for (let index = 0; index < value.length; index++) {
    const unit = StringPrototypeCharCodeAt(value, index);
    if (unit !== 9 && (unit < 32 || unit === 127 || unit > 255)) return false;
  }
  return true;
}

function serializeMimeType(type) {
  const { essence, parameters } = type;
  let text = essence;
  for (let index = 0; index < parameters.length; index += 2) {
    const value = parameters[index + 1];
    text += ";" + parameters[index] + "=";
    text += isToken(value) ? value : '"' + escapeQuoted(value) + '"';
  }
  return text;
}

function escapeQuoted(value) {
  let text = "";
  for (let index = 0; index < value.length; index++) {
    if (value[index] === '"' || value[index] === "\\") text += "\\";
    text += value[index];
  }
  return text;
}

// The MIME type that headers tell, or undefined: of several the last that is one, with the charset of those before it.
function mimeTypeOf(headers) {
  const value = getHeader(headers, "content-type");
  if (value === null) return undefined;
  let found;
  let charset;
  let essence;
  const parts = splitList(value);
  for (let index = 0; index < parts.length; index++) {
    const type = parseMimeType(parts[index]);
    if (type === undefined || type.essence === "*/*") continue;
    found = type;
    if (type.essence !== essence) {
      charset = firstPair(type.parameters, "charset");
      ({ essence } = type);
    } else if (firstPair(type.parameters, "charset") === undefined && charset !== undefined) {
      appendPair(type.parameters, "charset", charset);
    }
  }
  return found;
}

// What commas separate, but for those in quotes.
function splitList(text) {
  const parts = newList();
  let start = 0;
  for (let at = 0; at < text.length; at++) {
    if (text[at] === '"') {
      at = parseQuoted(text, at).end;
    } else if (text[at] === ",") {
      parts[parts.length] = StringPrototypeSlice(text, start, at);
      start = at + 1;
    }
  }
  parts[parts.length] = StringPrototypeSlice(text, start);
  return parts;
}
