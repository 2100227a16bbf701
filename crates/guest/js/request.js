// Request (Fetch standard, without what only browsers have).
//
//   isRequest(value)
//   requestParts(request)   { url, method, headers, redirect, signal, body }: headers as a flat list, the signal as an
//                           AbortSignal or undefined, the body undefined, { bytes } or { stream, length }. Uses the body up,
//                           and throws where it was used already.
//   newRequestOf(parts)     the other way round; `isImmutable` is of the headers
//
// Owns: a request's parts. Its signal is made when it is first asked for.

const FORBIDDEN_METHODS = { __proto__: null, CONNECT: true, TRACE: true, TRACK: true };
const SIMPLE_METHODS = { __proto__: null, GET: true, HEAD: true, POST: true };
const NORMAL_METHODS = { __proto__: null, DELETE: true, GET: true, HEAD: true, OPTIONS: true, POST: true, PUT: true };

// The words that a member may be.
const REQUEST_WORDS = {
  __proto__: null,
  cache: { __proto__: null, default: true, "no-store": true, reload: true, "no-cache": true, "force-cache": true, "only-if-cached": true },
  credentials: { __proto__: null, omit: true, "same-origin": true, include: true },
  duplex: { __proto__: null, half: true },
  mode: { __proto__: null, navigate: true, "same-origin": true, "no-cors": true, cors: true },
  referrerPolicy: {
    __proto__: null,
    "": true,
    "no-referrer": true,
    "no-referrer-when-downgrade": true,
    origin: true,
    "origin-when-cross-origin": true,
    "same-origin": true,
    "strict-origin": true,
    "strict-origin-when-cross-origin": true,
    "unsafe-url": true,
  },
  redirect: { __proto__: null, follow: true, error: true, manual: true },
};

let requestState;

class Request {
  // { url, method, headers, headersObject, body, redirect, signal, source, call, cache, credentials, mode, integrity, keepalive,
  // referrer, referrerPolicy }: `headers` is a record, `signal` what a worker has seen, `source` the record of the signal on
  // which it depends, `call` the number of the call that it came in with.
  #state;
  static {
    requestState = (value) => (isObject(value) && #state in value ? value.#state : undefined);
  }

  constructor(input, init = undefined) {
    if (input === INTERNAL) {
      this.#state = init;
      return;
    }
    requireArguments("Request", arguments.length, 1);
    this.#state = toRequestState(input, init);
  }

  get url() {
    return this.#state.url;
  }
  get method() {
    return this.#state.method;
  }
  get headers() {
    const state = this.#state;
    return state.headersObject;
  }
  get redirect() {
    return this.#state.redirect;
  }
  get signal() {
    const state = this.#state;
    if (state.signal === undefined) {
      const sources = newList();
      const source = sourceOf(state);
      if (source !== undefined) sources[0] = source;
      state.signal = newDependentSignal(sources).object;
    }
    return state.signal;
  }
  get cache() {
    return this.#state.cache;
  }
  get credentials() {
    return this.#state.credentials;
  }
  get mode() {
    return this.#state.mode;
  }
  get integrity() {
    return this.#state.integrity;
  }
  get keepalive() {
    return this.#state.keepalive;
  }
  get referrer() {
    return this.#state.referrer;
  }
  get referrerPolicy() {
    return this.#state.referrerPolicy;
  }
  get destination() {
    this.#state;
    return "";
  }
  get duplex() {
    this.#state;
    return "half";
  }
  get cf() {
    return this.#state.cf;
  }

  clone() {
    const state = this.#state;
    const clone = copyRequestState(state);
    clone.body = cloneBody(state.body);
    setRequestHeaders(clone, state.headers);
    headersState(clone.headersObject).isImmutable = state.headers.isImmutable;
    return new Request(INTERNAL, clone);
  }
}
defineBodyMembers(Request, (value) => requestState(value));
defineInterface("Request", Request);

function newRequestState(url) {
  return {
    __proto__: null,
    url,
    method: "GET",
    headers: undefined,
    headersObject: undefined,
    body: undefined,
    redirect: "follow",
    signal: undefined,
    source: undefined,
    call: undefined,
    cache: "default",
    credentials: "same-origin",
    mode: "cors",
    integrity: "",
    keepalive: false,
    referrer: "about:client",
    referrerPolicy: "",
    cf: undefined,
  };
}

// A request that came in aborts with its call.
function noteCall(request, invocation) {
  requestState(request).call = invocation;
}

function sourceOf(state) {
  if (state.source === undefined && state.call !== undefined) state.source = signalOfCall(state.call);
  return state.source;
}

// All but headers and body, and a signal that depends on the original's.
function copyRequestState(state) {
  const copy = newRequestState(state.url);
  copy.method = state.method;
  copy.redirect = state.redirect;
  copy.source = state.signal === undefined ? sourceOf(state) : signalState(state.signal);
  copy.cache = state.cache;
  copy.credentials = state.credentials;
  copy.mode = state.mode;
  copy.integrity = state.integrity;
  copy.keepalive = state.keepalive;
  copy.referrer = state.referrer;
  copy.referrerPolicy = state.referrerPolicy;
  copy.cf = state.cf;
  return copy;
}

function setRequestHeaders(state, other) {
  state.headersObject = new Headers(INTERNAL);
  state.headers = headersState(state.headersObject);
  if (other !== undefined) copyHeaders(state.headers, other);
}

function toRequestState(input, init) {
  const original = requestState(input);
  const state = original === undefined ? newRequestState(toRequestUrl(input)) : copyRequestState(original);
  const members = toDictionary(init, "Request: the second argument");
  const { body } = members;
  readWord(state, members, "cache");
  if ("cf" in members && members.cf !== undefined) state.cf = members.cf;
  readWord(state, members, "credentials");
  const duplex = members.duplex;
  if (duplex !== undefined) toWord("duplex", duplex);
  const { headers } = members;
  const given = headers === undefined ? undefined : newHeadersState();
  if (given !== undefined) fillHeaders(given, headers);
  const integrity = members.integrity;
  if (integrity !== undefined) state.integrity = toText(integrity);
  const keepalive = members.keepalive;
  if (keepalive !== undefined) state.keepalive = !!keepalive;
  const method = members.method;
  if (method !== undefined) state.method = toRequestMethod(method);
  readWord(state, members, "mode");
  if (state.mode === "navigate" && members.mode !== undefined) throw new TypeErrorConstructor('Request: the mode can\'t be "navigate".');
  readWord(state, members, "redirect");
  const referrer = members.referrer;
  if (referrer !== undefined) state.referrer = toReferrer(referrer);
  readWord(state, members, "referrerPolicy");
  const { signal } = members;
  // (null is none, also where the original has one.)
  if (signal !== undefined) state.source = toSignal(signal, "Request");
  if (members.window !== undefined && members.window !== null) throw new TypeErrorConstructor("Request: the window can only be null.");
  if (state.cache === "only-if-cached" && state.mode !== "same-origin") {
    throw new TypeErrorConstructor('Request: the cache is "only-if-cached" for the mode "same-origin" alone.');
  }
  if (state.mode === "no-cors" && SIMPLE_METHODS[state.method] !== true) {
    throw new TypeErrorConstructor('Request: in the mode "no-cors" the method is GET, HEAD or POST, and not ' + state.method + ".");
  }
  setRequestHeaders(state, given ?? original?.headers);

  const hasBody = body !== undefined && body !== null;
  const isWithout = state.method === "GET" || state.method === "HEAD";
  if (isWithout && (hasBody || (original !== undefined && original.body !== undefined))) {
    throw new TypeErrorConstructor("Request with a GET or HEAD method cannot have a body.");
  }
  if (hasBody) {
    state.body = extractBody(body);
    if (state.keepalive && state.body.stream !== undefined) throw new TypeErrorConstructor("Request: a stream can't be kept alive.");
    setBodyType(state);
  } else if (original !== undefined) {
    state.body = moveBody(original.body);
  }
  return state;
}

// The Content-Type that a body brings, unless there is one.
function setBodyType(state) {
  const { type } = state.body;
  if (type !== undefined && !hasHeader(state.headers, "content-type")) addHeader(state.headers, "Content-Type", type);
}

function toRequestUrl(input) {
  const text = toWellFormed(input);
  const parts = host.urlParse(text, undefined);
  if (parts === undefined) throw new TypeErrorConstructor("Invalid URL: " + text);
  if (parts[URL_USERNAME] !== parts[URL_USERNAME + 1] || parts[URL_PASSWORD] !== parts[URL_PASSWORD + 1]) {
    throw new TypeErrorConstructor("Request: the URL has a user name or password: " + text);
  }
  return parts[0];
}

// Ports of other protocols, that the Fetch standard keeps requests from.
const BAD_PORTS =
  " 1 7 9 11 13 15 17 19 20 21 22 23 25 37 42 43 53 69 77 79 87 95 101 102 103 104 109 110 111 113 115 117 119 123 135 137 139 143 " +
  "161 179 389 427 465 512 513 514 515 526 530 531 532 540 548 554 556 563 587 601 636 989 990 993 995 1719 1720 1723 2049 3659 " +
  "4045 4190 5060 5061 6000 6566 6665 6666 6667 6668 6669 6679 6697 10080 ";

function refuseBadPort(url) {
  const parts = host.urlParse(url, undefined);
  const port = urlPart({ __proto__: null, parts }, URL_PORT, URL_PORT_END);
  const isHttp = StringPrototypeStartsWith(url, "http:") || StringPrototypeStartsWith(url, "https:");
  if (isHttp && port !== "" && isOf(BAD_PORTS, " " + port + " ")) throw new TypeErrorConstructor("Requests to port " + port + " are refused: it is that of another protocol.");
}

function toReferrer(value) {
  const text = toWellFormed(value);
  if (text === "" || text === "about:client") return text;
  const parts = host.urlParse(text, undefined);
  if (parts === undefined) throw new TypeErrorConstructor("Request: the referrer is no URL: " + text);
  return parts[0];
}

function toRequestMethod(value) {
  const method = toByteString(value);
  const upper = StringPrototypeToUpperCase(method);
  if (!isToken(method) || FORBIDDEN_METHODS[upper] === true) throw new TypeErrorConstructor("Invalid HTTP method string: " + method);
  return NORMAL_METHODS[upper] === true ? upper : method;
}

function readWord(state, members, name) {
  const value = members[name];
  if (value !== undefined) state[name] = toWord(name, value);
}

function toWord(name, value) {
  const word = toText(value);
  if (REQUEST_WORDS[name][word] !== true) throw new TypeErrorConstructor("Request: " + name + " can't be " + word + ".");
  return word;
}

function isRequest(value) {
  return requestState(value) !== undefined;
}

function requestParts(request) {
  const state = requestState(request);
  const { url, method, redirect, source } = state;
  const body = bodyParts(state.body);
  const signal = state.signal ?? source?.object;
  return { __proto__: null, url, method, headers: headersFlat(state.headers), redirect, signal, body };
}

function newRequestOf(parts) {
  const state = newRequestState(parts.url);
  state.method = parts.method;
  state.redirect = parts.redirect ?? "follow";
  state.source = parts.signal === undefined ? undefined : signalState(parts.signal);
  state.headersObject = newHeaders(parts.headers, parts.isImmutable);
  state.headers = headersState(state.headersObject);
  state.body = bodyOfParts(parts.body);
  return new Request(INTERNAL, state);
}
