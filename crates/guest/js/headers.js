// Headers (Fetch standard).
//
//   isHeaders(value)
//   headersList(headers)                a flat list: name, value, name, value …, names as they were written
//   newHeaders(flatList, isImmutable)
//
// Owns: the list of a Headers object, in private. Of one that is immutable nothing can be changed; requests and responses
// that come in have such. There are no forbidden names: those rules protect users of browsers from pages.

let headersState;

class Headers {
  // { entries, isImmutable, sorted }: entries are { name, key, value }, with the name in lower case for a key, and `sorted` is
  // what an iterator shows, or undefined.
  #state;
  static {
    headersState = (value) => (isObject(value) && #state in value ? value.#state : undefined);
  }

  constructor(init = undefined) {
    this.#state = newHeadersState();
    if (init !== undefined && init !== INTERNAL) fillHeaders(this.#state, init);
  }

  append(name, value) {
    requireArguments("Headers.append", arguments.length, 2);
    const state = this.#state;
    const text = toHeaderName(name);
    appendHeader(state, text, toHeaderValue(value));
  }
  delete(name) {
    requireArguments("Headers.delete", arguments.length, 1);
    const state = this.#state;
    const key = StringPrototypeToLowerCase(toHeaderName(name));
    checkMutable(state);
    removeHeader(state, key);
  }
  get(name) {
    requireArguments("Headers.get", arguments.length, 1);
    const state = this.#state;
    return getHeader(state, StringPrototypeToLowerCase(toHeaderName(name)));
  }
  // Workers' older way to read several Set-Cookie headers.
  getAll(name) {
    requireArguments("Headers.getAll", arguments.length, 1);
    const state = this.#state;
    if (StringPrototypeToLowerCase(toHeaderName(name)) !== "set-cookie") {
      throw new TypeErrorConstructor('getAll() can only be used with the header name "Set-Cookie".');
    }
    return cookiesOf(state);
  }
  getSetCookie() {
    return cookiesOf(this.#state);
  }
  has(name) {
    requireArguments("Headers.has", arguments.length, 1);
    const state = this.#state;
    return hasHeader(state, StringPrototypeToLowerCase(toHeaderName(name)));
  }
  set(name, value) {
    requireArguments("Headers.set", arguments.length, 2);
    const state = this.#state;
    const text = toHeaderName(name);
    const normal = toHeaderValue(value);
    checkMutable(state);
    setHeader(state, text, normal);
  }
}
defineIterable("Headers", Headers, (headers, index) => {
  const state = headersState(headers);
  if (state === undefined) throw illegalInvocation();
  state.sorted = state.sorted ?? sortedHeaders(state);
  const at = 2 * index;
  return at < state.sorted.length ? listOfTwo(state.sorted[at], state.sorted[at + 1]) : undefined;
});
defineInterface("Headers", Headers);
const HeadersPrototypeEntries = Headers.prototype.entries;

function newHeadersState() {
  return { __proto__: null, entries: newList(), isImmutable: false, sorted: undefined };
}

function isHeaders(value) {
  return headersState(value) !== undefined;
}

function headersList(headers) {
  return headersFlat(headersState(headers));
}

function headersFlat(state) {
  const flat = newList();
  const { entries } = state;
  for (let index = 0; index < entries.length; index++) appendPair(flat, entries[index].name, entries[index].value);
  return flat;
}

function newHeaders(flatList, isImmutable) {
  const headers = new Headers(INTERNAL);
  const state = headersState(headers);
  for (let index = 0; index < flatList.length; index += 2) addHeader(state, flatList[index], flatList[index + 1]);
  state.isImmutable = isImmutable === true;
  return headers;
}

function fillHeaders(state, init) {
  fillHeadersFrom(state, toHeadersList(init));
}

// What Web IDL makes of the argument: names and values in turn, which nobody has checked yet.
function toHeadersList(init) {
  if (!isObject(init)) throw new TypeErrorConstructor("Headers: the argument is neither a list of pairs nor an object.");
  const method = init[SymbolIterator];
  const other = headersState(init);
  if (other !== undefined && method === HeadersPrototypeEntries) return headersFlat(other);
  return toPairs(init, method, toByteString, "Headers");
}

function fillHeadersFrom(state, flat) {
  for (let index = 0; index < flat.length; index += 2) {
    appendHeader(state, toHeaderName(flat[index]), toHeaderValue(flat[index + 1]));
  }
}

function copyHeaders(state, other) {
  const { entries } = other;
  for (let index = 0; index < entries.length; index++) addHeader(state, entries[index].name, entries[index].value);
}

function checkMutable(state) {
  if (state.isImmutable) throw new TypeErrorConstructor("Can't modify immutable headers.");
}

// Calls of user code come before this, so the list can't change while it is changed.
function appendHeader(state, name, value) {
  checkMutable(state);
  addHeader(state, name, value);
}

function addHeader(state, name, value) {
  const { entries } = state;
  entries[entries.length] = { __proto__: null, name, key: StringPrototypeToLowerCase(name), value };
  state.sorted = undefined;
}

function setHeader(state, name, value) {
  const key = StringPrototypeToLowerCase(name);
  const left = newList();
  let isSet = false;
  for (let index = 0; index < state.entries.length; index++) {
    const entry = state.entries[index];
    if (entry.key !== key) {
      left[left.length] = entry;
    } else if (!isSet) {
      left[left.length] = { __proto__: null, name: entry.name, key, value };
      isSet = true;
    }
  }
  state.entries = left;
  state.sorted = undefined;
  if (!isSet) addHeader(state, name, value);
}

function removeHeader(state, key) {
  const left = newList();
  for (let index = 0; index < state.entries.length; index++) {
    if (state.entries[index].key !== key) left[left.length] = state.entries[index];
  }
  state.entries = left;
  state.sorted = undefined;
}

function hasHeader(state, key) {
  const { entries } = state;
  for (let index = 0; index < entries.length; index++) {
    if (entries[index].key === key) return true;
  }
  return false;
}

// All values of a name as one, or null.
function getHeader(state, key) {
  const { entries } = state;
  let value = null;
  for (let index = 0; index < entries.length; index++) {
    if (entries[index].key === key) value = value === null ? entries[index].value : value + ", " + entries[index].value;
  }
  return value;
}

function cookiesOf(state) {
  const cookies = newList();
  const { entries } = state;
  for (let index = 0; index < entries.length; index++) {
    if (entries[index].key === "set-cookie") cookies[cookies.length] = entries[index].value;
  }
  return toArray(cookies);
}

// Names in lower case and in order, values of a name as one, but for cookies.
function sortedHeaders(state) {
  const flat = newList();
  for (let index = 0; index < state.entries.length; index++) appendPair(flat, state.entries[index].key, state.entries[index].value);
  const sorted = sortedPairs(flat);
  const combined = newList();
  for (let index = 0; index < sorted.length; index += 2) {
    const name = sorted[index];
    const last = combined.length - 2;
    if (last >= 0 && combined[last] === name && name !== "set-cookie") combined[last + 1] += ", " + sorted[index + 1];
    else appendPair(combined, name, sorted[index + 1]);
  }
  return combined;
}

function toHeaderName(value) {
  const name = toByteString(value);
  if (!isToken(name)) throw new TypeErrorConstructor("Invalid header name.");
  return name;
}

// Without white space around it.
function toHeaderValue(value) {
  const text = trimHttp(toByteString(value));
  for (let index = 0; index < text.length; index++) {
    const unit = StringPrototypeCharCodeAt(text, index);
    if (unit === 0 || unit === 10 || unit === 13) throw new TypeErrorConstructor("Invalid header value.");
  }
  return text;
}
