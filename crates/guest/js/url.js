// URL and URLSearchParams (URL standard). The Rust core parses and serialises.
//
// Owns: the link between a URL and its parameters: whichever is changed changes the other.

// Places of the parts in what the core answers: the href, then where parts begin and end in it.
const URL_SCHEME_END = 1;
const URL_USERNAME = 2;
const URL_PASSWORD = 4;
const URL_HOST = 6;
const URL_HOST_END = 7;
const URL_PORT = 8;
const URL_PORT_END = 9;
const URL_PATH = 10;
const URL_PATH_END = 11;
const URL_QUERY_END = 12;

// The href of a URL object, or undefined for what is none.
let urlHref;

class URL {
  // { parts, params }
  #state;
  static {
    urlHref = (value) => (isObject(value) && #state in value ? value.#state.parts[0] : undefined);
  }

  constructor(url, base = undefined) {
    if (url === INTERNAL) {
      this.#state = { __proto__: null, parts: base, params: undefined };
      return;
    }
    requireArguments("URL", arguments.length, 1);
    const parts = parseUrl(url, base);
    if (parts === undefined) throw new TypeErrorConstructor("Invalid URL string.");
    this.#state = { __proto__: null, parts, params: undefined };
  }

  static canParse(url, base = undefined) {
    requireArguments("URL.canParse", arguments.length, 1);
    return parseUrl(url, base) !== undefined;
  }
  static parse(url, base = undefined) {
    requireArguments("URL.parse", arguments.length, 1);
    const parts = parseUrl(url, base);
    return parts === undefined ? null : new URL(INTERNAL, parts);
  }

  get href() {
    return this.#state.parts[0];
  }
  set href(value) {
    const state = this.#state;
    const parts = host.urlParse(toWellFormed(value), undefined);
    if (parts === undefined) throw new TypeErrorConstructor("Invalid URL string.");
    state.parts = parts;
    refreshParams(state);
  }
  toString() {
    return this.#state.parts[0];
  }
  toJSON() {
    return this.#state.parts[0];
  }
  get origin() {
    return host.urlOrigin(this.#state.parts[0]);
  }
  get protocol() {
    const { parts } = this.#state;
    return StringPrototypeSlice(parts[0], 0, parts[URL_SCHEME_END]) + ":";
  }
  set protocol(value) {
    setUrlPart(this.#state, "protocol", value);
  }
  get username() {
    return urlPart(this.#state, URL_USERNAME, URL_USERNAME + 1);
  }
  set username(value) {
    setUrlPart(this.#state, "username", value);
  }
  get password() {
    return urlPart(this.#state, URL_PASSWORD, URL_PASSWORD + 1);
  }
  set password(value) {
    setUrlPart(this.#state, "password", value);
  }
  get host() {
    return urlPart(this.#state, URL_HOST, URL_PORT_END);
  }
  set host(value) {
    setUrlPart(this.#state, "host", value);
  }
  get hostname() {
    return urlPart(this.#state, URL_HOST, URL_HOST_END);
  }
  set hostname(value) {
    setUrlPart(this.#state, "hostname", value);
  }
  get port() {
    return urlPart(this.#state, URL_PORT, URL_PORT_END);
  }
  set port(value) {
    setUrlPart(this.#state, "port", value);
  }
  get pathname() {
    return urlPart(this.#state, URL_PATH, URL_PATH_END);
  }
  set pathname(value) {
    setUrlPart(this.#state, "pathname", value);
  }
  get search() {
    const text = urlPart(this.#state, URL_PATH_END, URL_QUERY_END);
    return text === "?" ? "" : text;
  }
  set search(value) {
    const state = this.#state;
    setUrlPart(state, "search", value);
    refreshParams(state);
  }
  get searchParams() {
    const state = this.#state;
    if (state.params === undefined) {
      state.params = paramsState(new URLSearchParams(INTERNAL));
      state.params.url = state;
      refreshParams(state);
    }
    return state.params.object;
  }
  get hash() {
    const { parts } = this.#state;
    const text = StringPrototypeSlice(parts[0], parts[URL_QUERY_END]);
    return text === "#" ? "" : text;
  }
  set hash(value) {
    setUrlPart(this.#state, "hash", value);
  }
}
defineInterface("URL", URL);

function parseUrl(url, base) {
  const text = toWellFormed(url);
  return host.urlParse(text, base === undefined ? undefined : toWellFormed(base));
}

function urlPart(state, start, end) {
  const { parts } = state;
  return StringPrototypeSlice(parts[0], parts[start], parts[end]);
}

function setUrlPart(state, name, value) {
  const parts = host.urlSet(state.parts[0], name, toWellFormed(value));
  if (parts !== undefined) state.parts = parts;
}

// The URL has changed.
function refreshParams(state) {
  if (state.params === undefined) return;
  const query = urlPart(state, URL_PATH_END, URL_QUERY_END);
  state.params.list = host.formParse(StringPrototypeSlice(query, 1));
}

// The parameters have changed.
function refreshUrl(params) {
  if (params.url === undefined) return;
  const query = host.formSerialize(params.list);
  const parts = host.urlSet(params.url.parts[0], "query", query);
  if (parts !== undefined) params.url.parts = parts;
}

// The state { list, url, object } of parameters, or undefined for what is none.
let paramsState;

class URLSearchParams {
  // `list` is flat: name, value, name, value …
  #state;
  static {
    paramsState = (value) => (isObject(value) && #state in value ? value.#state : undefined);
  }

  constructor(init = "") {
    this.#state = { __proto__: null, list: newList(), url: undefined, object: this };
    if (init !== INTERNAL) this.#state.list = paramsOf(init);
  }

  append(name, value) {
    requireArguments("URLSearchParams.append", arguments.length, 2);
    const state = this.#state;
    const text = toWellFormed(name);
    appendPair(state.list, text, toWellFormed(value));
    refreshUrl(state);
  }
  delete(name, value = undefined) {
    requireArguments("URLSearchParams.delete", arguments.length, 1);
    const state = this.#state;
    const text = toWellFormed(name);
    state.list = withoutPairs(state.list, text, value === undefined ? undefined : toWellFormed(value));
    refreshUrl(state);
  }
  get(name) {
    requireArguments("URLSearchParams.get", arguments.length, 1);
    return firstPair(this.#state.list, toWellFormed(name)) ?? null;
  }
  getAll(name) {
    requireArguments("URLSearchParams.getAll", arguments.length, 1);
    return allPairs(this.#state.list, toWellFormed(name));
  }
  has(name, value = undefined) {
    requireArguments("URLSearchParams.has", arguments.length, 1);
    const { list } = this.#state;
    const text = toWellFormed(name);
    if (value === undefined) return firstPair(list, text) !== undefined;
    const wanted = toWellFormed(value);
    for (let index = 0; index < list.length; index += 2) {
      if (list[index] === text && list[index + 1] === wanted) return true;
    }
    return false;
  }
  set(name, value) {
    requireArguments("URLSearchParams.set", arguments.length, 2);
    const state = this.#state;
    const text = toWellFormed(name);
    state.list = withPair(state.list, text, toWellFormed(value));
    refreshUrl(state);
  }
  sort() {
    const state = this.#state;
    state.list = sortedPairs(state.list);
    refreshUrl(state);
  }
  toString() {
    return host.formSerialize(this.#state.list);
  }
  get size() {
    return this.#state.list.length / 2;
  }
}
defineIterable("URLSearchParams", URLSearchParams, (params, index) => {
  const state = paramsState(params);
  if (state === undefined) throw illegalInvocation();
  const at = 2 * index;
  return at < state.list.length ? listOfTwo(state.list[at], state.list[at + 1]) : undefined;
});
defineInterface("URLSearchParams", URLSearchParams);

function paramsOf(init) {
  if (isObject(init)) {
    return toPairs(init, init[SymbolIterator], toWellFormed, "URLSearchParams");
  }
  const text = toWellFormed(init);
  return host.formParse(text[0] === "?" ? StringPrototypeSlice(text, 1) : text);
}

// --- flat lists of names and values ---

function appendPair(list, name, value) {
  const at = list.length;
  list[at] = name;
  list[at + 1] = value;
}

function firstPair(list, name) {
  for (let index = 0; index < list.length; index += 2) {
    if (list[index] === name) return list[index + 1];
  }
  return undefined;
}

// An array for the worker.
function allPairs(list, name) {
  const values = newList();
  for (let index = 0; index < list.length; index += 2) {
    if (list[index] === name) values[values.length] = list[index + 1];
  }
  return toArray(values);
}

function withoutPairs(list, name, value) {
  const left = newList();
  for (let index = 0; index < list.length; index += 2) {
    if (list[index] === name && (value === undefined || list[index + 1] === value)) continue;
    appendPair(left, list[index], list[index + 1]);
  }
  return left;
}

// The first of that name gets the value, the others are left out.
function withPair(list, name, value) {
  const result = newList();
  let isSet = false;
  for (let index = 0; index < list.length; index += 2) {
    if (list[index] !== name) appendPair(result, list[index], list[index + 1]);
    else if (!isSet) {
      appendPair(result, name, value);
      isSet = true;
    }
  }
  if (!isSet) appendPair(result, name, value);
  return result;
}

// By name, in the order of code units; those of one name stay in their order.
function sortedPairs(list) {
  let from = list;
  for (let width = 2; width < from.length; width *= 2) {
    const merged = newList();
    for (let start = 0; start < from.length; start += 2 * width) {
      let left = start;
      let right = MathMin(start + width, from.length);
      const leftEnd = right;
      const rightEnd = MathMin(start + 2 * width, from.length);
      while (left < leftEnd || right < rightEnd) {
        const isLeft = right >= rightEnd || (left < leftEnd && from[left] <= from[right]);
        const at = isLeft ? left : right;
        appendPair(merged, from[at], from[at + 1]);
        if (isLeft) left += 2;
        else right += 2;
      }
    }
    from = merged;
  }
  return from;
}
