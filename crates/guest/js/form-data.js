// FormData (XHR standard), and the two forms in which it travels: multipart and urlencoded.

// A form's record { entries }, each { name, value } with a string or a File for a value; undefined for what is no form.
let formState;

class FormData {
  #state;
  static {
    formState = (value) => (isObject(value) && #state in value ? value.#state : undefined);
  }

  constructor(form = undefined) {
    if (form !== undefined) throw new TypeErrorConstructor("FormData: there are no forms here to take it from.");
    this.#state = { __proto__: null, entries: newList() };
  }

  append(name, value, filename = undefined) {
    requireArguments("FormData.append", arguments.length, 2);
    const { entries } = this.#state;
    const entry = toFormEntry(name, value, filename, arguments.length, "FormData.append");
    entries[entries.length] = entry;
  }
  delete(name) {
    requireArguments("FormData.delete", arguments.length, 1);
    const state = this.#state;
    state.entries = withoutEntries(state.entries, toWellFormed(name), undefined);
  }
  get(name) {
    requireArguments("FormData.get", arguments.length, 1);
    const { entries } = this.#state;
    const text = toWellFormed(name);
    for (let index = 0; index < entries.length; index++) {
      if (entries[index].name === text) return entries[index].value;
    }
    return null;
  }
  getAll(name) {
    requireArguments("FormData.getAll", arguments.length, 1);
    const { entries } = this.#state;
    const text = toWellFormed(name);
    const values = newList();
    for (let index = 0; index < entries.length; index++) {
      if (entries[index].name === text) values[values.length] = entries[index].value;
    }
    return toArray(values);
  }
  has(name) {
    requireArguments("FormData.has", arguments.length, 1);
    const { entries } = this.#state;
    const text = toWellFormed(name);
    for (let index = 0; index < entries.length; index++) {
      if (entries[index].name === text) return true;
    }
    return false;
  }
  set(name, value, filename = undefined) {
    requireArguments("FormData.set", arguments.length, 2);
    const state = this.#state;
    const entry = toFormEntry(name, value, filename, arguments.length, "FormData.set");
    state.entries = withoutEntries(state.entries, entry.name, entry);
  }
}
defineIterable("FormData", FormData, (form, index) => {
  const state = formState(form);
  if (state === undefined) throw illegalInvocation();
  const entry = state.entries[index];
  return entry === undefined ? undefined : listOfTwo(entry.name, entry.value);
});
defineInterface("FormData", FormData);

function toFormEntry(name, value, filename, given, what) {
  const text = toWellFormed(name);
  const blob = blobState(value);
  if (blob === undefined) {
    if (given > 2) throw new TypeErrorConstructor(what + ": only a Blob can have a file name.");
    return { __proto__: null, name: text, value: toWellFormed(value) };
  }
  const isFile = blob.name !== undefined;
  if (isFile && given < 3) return { __proto__: null, name: text, value };
  const fileName = given < 3 ? "blob" : toWellFormed(filename);
  const time = isFile ? blob.lastModified : DateNow();
  return { __proto__: null, name: text, value: newFile(blob.bytes, blob.type, fileName, time) };
}

// Without those of a name; the first is replaced where there is something to put there.
function withoutEntries(entries, name, replacement) {
  const left = newList();
  let isPlaced = replacement === undefined;
  for (let index = 0; index < entries.length; index++) {
    if (entries[index].name !== name) {
      left[left.length] = entries[index];
    } else if (!isPlaced) {
      left[left.length] = replacement;
      isPlaced = true;
    }
  }
  if (!isPlaced) left[left.length] = replacement;
  return left;
}

function newBoundary() {
  let text = "----coracle-";
  for (let index = 0; index < 4; index++) {
    text += StringPrototypePadStart(NumberPrototypeToString(MathFloor(host.random() * 0x100000000), 16), 8, "0");
  }
  return text;
}

function serializeMultipart(state, boundary) {
  const pieces = newList();
  let length = 0;
  const add = (bytes) => {
    pieces[pieces.length] = bytes;
    length += byteLength(bytes);
  };
  for (let index = 0; index < state.entries.length; index++) {
    const { name, value } = state.entries[index];
    let head = "--" + boundary + '\r\nContent-Disposition: form-data; name="' + escapeFormName(withCrlf(name)) + '"';
    if (typeof value === "string") {
      add(host.encodeText(head + "\r\n\r\n" + withCrlf(value) + "\r\n"));
      continue;
    }
    const file = blobState(value);
    head += '; filename="' + escapeFormName(file.name) + '"\r\nContent-Type: ';
    head += (file.type === "" ? "application/octet-stream" : file.type) + "\r\n\r\n";
    add(host.encodeText(head));
    add(file.bytes);
    add(host.encodeText("\r\n"));
  }
  add(host.encodeText("--" + boundary + "--\r\n"));
  return joinBytes(pieces, length);
}

function escapeFormName(text) {
  return replaceEach(replaceEach(replaceEach(text, "\n", "%0A"), "\r", "%0D"), '"', "%22");
}

// Every end of line as CR LF.
function withCrlf(text) {
  if (StringPrototypeIndexOf(text, "\r") === -1 && StringPrototypeIndexOf(text, "\n") === -1) return text;
  let result = "";
  for (let index = 0; index < text.length; index++) {
    if (text[index] === "\r" && text[index + 1] === "\n") index++;
    result += text[index] === "\r" || text[index] === "\n" ? "\r\n" : text[index];
  }
  return result;
}

function replaceEach(text, mark, replacement) {
  let result = "";
  let start = 0;
  for (let at = StringPrototypeIndexOf(text, mark); at !== -1; at = StringPrototypeIndexOf(text, mark, start)) {
    result += StringPrototypeSlice(text, start, at) + replacement;
    start = at + mark.length;
  }
  return start === 0 ? text : result + StringPrototypeSlice(text, start);
}

// The form in a body of this MIME type; throws where it is none.
function parseForm(bytes, type) {
  const form = new FormData();
  const { entries } = formState(form);
  if (type?.essence === "multipart/form-data") {
    const boundary = firstPair(type.parameters, "boundary");
    const flat = boundary === undefined ? undefined : parseMultipart(bytes, boundary);
    if (flat === undefined) throw new TypeErrorConstructor("The body is no multipart/form-data.");
    for (let index = 0; index < flat.length; index += 5) {
      const content = windowOf(bytes, flat[index + 3], flat[index + 4]);
      const fileName = flat[index + 1];
      const value = fileName === undefined ? decodeForm(content) : newFile(copyBytes(content), toBlobType(flat[index + 2]), fileName, DateNow());
      entries[entries.length] = { __proto__: null, name: flat[index], value };
    }
    return form;
  }
  if (type?.essence === "application/x-www-form-urlencoded") {
    const flat = host.formParse(decodeForm(bytes));
    for (let index = 0; index < flat.length; index += 2) {
      entries[entries.length] = { __proto__: null, name: flat[index], value: flat[index + 1] };
    }
    return form;
  }
  throw new TypeErrorConstructor(
    "Unrecognized Content-Type header value. FormData can only parse the following MIME types: multipart/form-data, " +
      "application/x-www-form-urlencoded.",
  );
}

// In forms a byte order mark is text.
function decodeForm(bytes) {
  return decodeWith(newDecoderState("utf-8", false, true), bytes, false);
}

// A flat list of name, file name or undefined, type, start and end of the content; undefined where it is no such form.
function parseMultipart(bytes, boundary) {
  const buffer = TypedArrayPrototypeGetBuffer(bytes);
  return host.multipartParse(buffer, TypedArrayPrototypeGetByteOffset(bytes), byteLength(bytes), boundary);
}
