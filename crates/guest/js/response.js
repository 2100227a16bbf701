// Response (Fetch standard, with what Workers add).
//
//   isResponse(value)
//   responseParts(response)   { status, statusText, headers, body, url, redirected, ends }: headers as a flat list, the body
//                             undefined, { bytes } or { stream, length }, the ends those of its WebSocket or undefined. Uses
//                             body and socket up, and throws where one was used.
//   newResponseOf(parts)      the other way round; `isImmutable` is of the headers
//
// Owns: a response's parts.

const NULL_BODY_STATUS = { __proto__: null, 101: true, 204: true, 205: true, 304: true };
const REDIRECT_STATUS = { __proto__: null, 301: true, 302: true, 303: true, 307: true, 308: true };

let responseState;

class Response {
  // { type, url, redirected, status, statusText, headers, headersObject, body, webSocket }: `headers` is a
  // record, `webSocket` an object or null.
  #state;
  static {
    responseState = (value) => (isObject(value) && #state in value ? value.#state : undefined);
  }

  constructor(body = null, init = undefined) {
    if (body === INTERNAL) {
      this.#state = init;
      return;
    }
    refuseInModuleScope();
    this.#state = toResponseState(init);
    setResponseBody(this.#state, body === null || body === undefined ? undefined : extractBody(body));
  }

  static error() {
    refuseInModuleScope();
    const state = newResponseState(0, "");
    state.type = "error";
    state.headers.isImmutable = true;
    return new Response(INTERNAL, state);
  }

  static json(data, init = undefined) {
    refuseInModuleScope();
    requireArguments("Response.json", arguments.length, 1);
    const text = JSONStringify(data);
    if (text === undefined) throw new TypeErrorConstructor("Response.json: the value has no JSON.");
    const state = toResponseState(init);
    setResponseBody(state, bytesBody(encodeText(text), "application/json"));
    return new Response(INTERNAL, state);
  }

  static redirect(url, status = 302) {
    refuseInModuleScope();
    requireArguments("Response.redirect", arguments.length, 1);
    const text = toWellFormed(url);
    const parts = host.urlParse(text, undefined);
    if (parts === undefined) throw new TypeErrorConstructor("Invalid URL: " + text);
    const code = toStatus(status);
    if (REDIRECT_STATUS[code] !== true) {
      throw new RangeErrorConstructor(code + " is not a redirect status code.");
    }
    const state = newResponseState(code, "");
    addHeader(state.headers, "Location", parts[0]);
    state.headers.isImmutable = true;
    return new Response(INTERNAL, state);
  }

  get type() {
    return this.#state.type;
  }
  get url() {
    return this.#state.url;
  }
  get redirected() {
    return this.#state.redirected;
  }
  get status() {
    return this.#state.status;
  }
  get ok() {
    const { status } = this.#state;
    return status >= 200 && status <= 299;
  }
  get statusText() {
    return this.#state.statusText;
  }
  get headers() {
    return this.#state.headersObject;
  }
  get webSocket() {
    return this.#state.webSocket;
  }
  get cf() {
    return this.#state.cf;
  }

  clone() {
    const state = this.#state;
    if (state.webSocket !== null) throw new TypeErrorConstructor("Response.clone: a response with a WebSocket can't be cloned.");
    const body = cloneBody(state.body);
    const clone = newResponseState(state.status, state.statusText);
    clone.type = state.type;
    clone.url = state.url;
    clone.redirected = state.redirected;
    clone.cf = state.cf;
    copyHeaders(clone.headers, state.headers);
    clone.headers.isImmutable = state.headers.isImmutable;
    clone.body = body;
    return new Response(INTERNAL, clone);
  }
}
defineBodyMembers(Response, (value) => responseState(value));
defineInterface("Response", Response);

function newResponseState(status, statusText) {
  const headersObject = new Headers(INTERNAL);
  return {
    __proto__: null,
    type: "default",
    url: "",
    redirected: false,
    status,
    statusText,
    headers: headersState(headersObject),
    headersObject,
    body: undefined,
    webSocket: null,
    cf: undefined,
  };
}

function toResponseState(init) {
  // All members are read and converted before any is judged.
  const members = toDictionary(init, "Response: the second argument");
  const { cf, headers } = members;
  const flat = headers === undefined ? undefined : toHeadersList(headers);
  const { status } = members;
  const code = status === undefined ? 200 : toStatus(status);
  const { statusText } = members;
  const reason = statusText === undefined ? "" : toByteString(statusText);
  const webSocket = members.webSocket ?? null;
  if (webSocket === null && (code < 200 || code > 599)) {
    throw new RangeErrorConstructor("Responses may only be constructed with status codes in the range 200 to 599, inclusive.");
  }
  if (!isReason(reason)) throw new TypeErrorConstructor("Invalid statusText");
  const state = newResponseState(code, reason);
  if (webSocket !== null) {
    if (webSocketState(webSocket) === undefined) throw new TypeErrorConstructor("Response: webSocket is not a WebSocket.");
    if (code !== 101) throw new RangeErrorConstructor("Responses with a WebSocket must have status code 101.");
    state.webSocket = webSocket;
  }
  state.cf = cf;
  if (flat !== undefined) fillHeadersFrom(state.headers, flat);
  return state;
}

function setResponseBody(state, body) {
  if (body === undefined) return;
  if (NULL_BODY_STATUS[state.status] === true) {
    throw new TypeErrorConstructor("Response with null body status (101, 204, 205, or 304) cannot have a body.");
  }
  state.body = body;
  setBodyType(state);
}

// An unsigned short, as Web IDL makes it.
function toStatus(value) {
  const number = MathTrunc(+value);
  if (!(number > -Infinity && number < Infinity)) return 0;
  return ((number % 65536) + 65536) % 65536;
}

function isReason(text) {
  for (let index = 0; index < text.length; index++) {
    const unit = StringPrototypeCharCodeAt(text, index);
    if (unit !== 9 && (unit < 32 || unit === 127)) return false;
  }
  return true;
}

function isResponse(value) {
  return responseState(value) !== undefined;
}

function responseParts(response) {
  const state = responseState(response);
  const { status, statusText, url, redirected, webSocket } = state;
  const ends = webSocket === null ? undefined : takeSocketEnds(webSocket);
  const body = bodyParts(state.body);
  return { __proto__: null, status, statusText, headers: headersFlat(state.headers), body, url, redirected, ends };
}

function newResponseOf(parts) {
  const state = newResponseState(parts.status, parts.statusText ?? "");
  state.headersObject = newHeaders(parts.headers, parts.isImmutable);
  state.headers = headersState(state.headersObject);
  state.url = parts.url ?? "";
  state.redirected = parts.redirected === true;
  state.body = bodyOfParts(parts.body);
  if (parts.ends !== undefined) {
    state.webSocket = newPassedSocket(parts.ends, getHeader(state.headers, "sec-websocket-protocol") ?? "");
  }
  return new Response(INTERNAL, state);
}
