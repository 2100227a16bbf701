// WebSocket (HTML standard, with `accept` of Workers), CloseEvent and ErrorEvent.
//
//   newPassedSocket(ends, protocol)   the socket of a response that came: nothing is read before it is accepted
//   takeSocketEnds(webSocket)         its { readable, writable }, to pass them on; throws where they were taken already
//
// Owns: a socket's state, the order of its events, and what waits to be sent. Each event has a turn of its own, so that
// who awaits one may listen for the next.
// Must never: send a frame after the close frame, pull while events wait, or let pongs pile up for a server that reads none.

const READY_STATES = { __proto__: null, CONNECTING: 0, OPEN: 1, CLOSING: 2, CLOSED: 3 };

// How long a server has to answer a close frame.
const CLOSE_MS_MAX = 10000;

const REASON_BYTES_MAX = 123;

class CloseEvent extends Event {
  #state;
  constructor(type, init = undefined) {
    requireArguments("CloseEvent", arguments.length, 1);
    super(type, init);
    const members = toDictionary(init, "CloseEvent: the second argument");
    const code = members.code;
    const reason = members.reason;
    this.#state = {
      __proto__: null,
      code: code === undefined ? 0 : toStatus(code),
      reason: reason === undefined ? "" : toWellFormed(reason),
      wasClean: !!members.wasClean,
    };
  }
  get wasClean() {
    return this.#state.wasClean;
  }
  get code() {
    return this.#state.code;
  }
  get reason() {
    return this.#state.reason;
  }
}
defineInterface("CloseEvent", CloseEvent);

class ErrorEvent extends Event {
  #state;
  constructor(type, init = undefined) {
    requireArguments("ErrorEvent", arguments.length, 1);
    super(type, init);
    const members = toDictionary(init, "ErrorEvent: the second argument");
    const colno = members.colno;
    const error = members.error;
    const filename = members.filename;
    const lineno = members.lineno;
    const message = members.message;
    this.#state = {
      __proto__: null,
      message: message === undefined ? "" : toText(message),
      filename: filename === undefined ? "" : toWellFormed(filename),
      lineno: lineno === undefined ? 0 : lineno >>> 0,
      colno: colno === undefined ? 0 : colno >>> 0,
      error,
    };
  }
  get message() {
    return this.#state.message;
  }
  get filename() {
    return this.#state.filename;
  }
  get lineno() {
    return this.#state.lineno;
  }
  get colno() {
    return this.#state.colno;
  }
  get error() {
    return this.#state.error;
  }
}
defineInterface("ErrorEvent", ErrorEvent);

let webSocketState;

class WebSocket extends EventTarget {
  #state;
  static {
    webSocketState = (value) => (isObject(value) && #state in value ? value.#state : undefined);
  }

  constructor(url, protocols = undefined) {
    if (url === INTERNAL) {
      super();
      this.#state = protocols;
      protocols.object = this;
      return;
    }
    requireArguments("WebSocket", arguments.length, 1);
    refuseInModuleScope();
    const text = toWellFormed(url);
    const names = toProtocols(protocols);
    const state = newSocketState(toSocketUrl(text), READY_STATES.CONNECTING);
    checkProtocols(names);
    super();
    this.#state = state;
    state.object = this;
    connectSocket(state, names);
  }

  get url() {
    return this.#state.url;
  }
  get readyState() {
    return this.#state.readyState;
  }
  get bufferedAmount() {
    return this.#state.bufferedAmount;
  }
  get extensions() {
    this.#state;
    return "";
  }
  get protocol() {
    return this.#state.protocol;
  }
  get binaryType() {
    return this.#state.binaryType;
  }
  set binaryType(value) {
    const state = this.#state;
    const text = toText(value);
    if (text === "arraybuffer" || text === "blob") state.binaryType = text;
  }

  accept() {
    const state = this.#state;
    if (state.readyState === READY_STATES.CONNECTING) {
      throw new TypeErrorConstructor("WebSocket.accept: this one accepts itself, as it was made by its constructor.");
    }
    if (state.source !== undefined) return;
    startSocket(state, takeSocketEnds(this));
    pullFrames(state);
  }

  send(data) {
    requireArguments("WebSocket.send", arguments.length, 1);
    const state = this.#state;
    let opcode = FRAME_BINARY;
    let payload;
    if (isBlob(data)) {
      payload = blobParts(data).bytes;
    } else if (isBuffer(data)) {
      payload = bytesOf(data) ?? new Uint8ArrayConstructor(0);
    } else {
      opcode = FRAME_TEXT;
      payload = encodeText(data);
    }
    if (state.readyState === READY_STATES.CONNECTING) {
      throw newDOMException("WebSocket.send: the connection is not open yet.", "InvalidStateError");
    }
    requireAccepted(state);
    state.bufferedAmount += byteLength(payload);
    if (state.readyState === READY_STATES.OPEN) pushFrame(state, opcode, payload, byteLength(payload));
  }

  close(code = undefined, reason = undefined) {
    const state = this.#state;
    const number = code === undefined ? undefined : MathFloor(+code + 0.5);
    const text = reason === undefined ? "" : toWellFormed(reason);
    if (number !== undefined && number !== 1000 && !(number >= 3000 && number <= 4999)) {
      throw newDOMException("WebSocket.close: the code is neither 1000 nor one from 3000 to 4999.", "InvalidAccessError");
    }
    const bytes = host.encodeText(text);
    if (byteLength(bytes) > REASON_BYTES_MAX) {
      throw newDOMException("WebSocket.close: the reason has more than " + REASON_BYTES_MAX + " bytes.", "SyntaxError");
    }
    if (state.readyState === READY_STATES.CONNECTING) {
      state.readyState = READY_STATES.CLOSING;
      abortSignal(state.signal, newDOMException("The WebSocket was closed before it was open.", "AbortError"));
      return;
    }
    requireAccepted(state);
    if (state.readyState !== READY_STATES.OPEN) return;
    state.readyState = READY_STATES.CLOSING;
    sendClose(state, number === undefined && text !== "" ? 1000 : number, bytes);
    state.timer = startDelay(CLOSE_MS_MAX, () => {
      loseSocket(state, new ErrorConstructor("The WebSocket server did not answer the close frame."));
    });
  }
}
defineInterface("WebSocket", WebSocket);
defineConstants(WebSocket, READY_STATES);
defineHandler(WebSocket.prototype, "open");
defineHandler(WebSocket.prototype, "message");
defineHandler(WebSocket.prototype, "error");
defineHandler(WebSocket.prototype, "close");

function newSocketState(url, readyState) {
  return {
    __proto__: null,
    object: undefined,
    url,
    origin: url === null ? "" : host.urlOrigin(url),
    protocol: "",
    readyState,
    binaryType: "arraybuffer",
    bufferedAmount: 0,
    // Of one that is not accepted: { readable, writable }.
    ends: undefined,
    // What gives the request up.
    signal: undefined,
    source: undefined,
    sink: undefined,
    reader: undefined,
    // What came and has not been told yet: functions.
    told: newQueue(),
    // What is to be sent: { frame, size }, the size being what counts as buffered. `pong` is the one that waits there.
    outgoing: newQueue(),
    pong: undefined,
    isWriting: false,
    isCloseSent: false,
    isEnding: false,
    timer: undefined,
  };
}

function newPassedSocket(ends, protocol) {
  const state = newSocketState(null, READY_STATES.OPEN);
  state.ends = ends;
  state.protocol = protocol;
  return new WebSocket(INTERNAL, state);
}

function takeSocketEnds(webSocket) {
  const state = webSocketState(webSocket);
  const { ends } = state;
  if (ends === undefined) {
    throw new TypeErrorConstructor("A WebSocket that was accepted, made by its constructor or passed on already can't be passed on or accepted.");
  }
  state.ends = undefined;
  return ends;
}

function requireAccepted(state) {
  if (state.source === undefined && state.readyState === READY_STATES.OPEN) {
    throw new TypeErrorConstructor("You must call accept() on this WebSocket before sending messages.");
  }
}

// --- making a connection ---

function toProtocols(value) {
  const names = newList();
  if (value === undefined) return names;
  const method = isObject(value) ? value[SymbolIterator] : undefined;
  if (method === undefined || method === null) {
    names[0] = toText(value);
    return names;
  }
  iterate(value, method, (item) => {
    names[names.length] = toText(item);
  });
  return names;
}

function checkProtocols(names) {
  const seen = ObjectCreate(null);
  for (let index = 0; index < names.length; index++) {
    const name = names[index];
    if (!isToken(name)) throw newDOMException("WebSocket: the protocol '" + name + "' is no token.", "SyntaxError");
    if (seen[name] === true) throw newDOMException("WebSocket: the protocol '" + name + "' is there twice.", "SyntaxError");
    seen[name] = true;
  }
}

function toSocketUrl(text) {
  const parts = host.urlParse(text, undefined);
  if (parts === undefined) throw newDOMException("WebSocket: the URL is not valid: " + text, "SyntaxError");
  let href = parts[0];
  if (StringPrototypeStartsWith(href, "http:") || StringPrototypeStartsWith(href, "https:")) href = "ws" + StringPrototypeSlice(href, 4);
  if (!StringPrototypeStartsWith(href, "ws:") && !StringPrototypeStartsWith(href, "wss:")) {
    throw newDOMException("WebSocket: the URL's scheme is not ws, wss, http or https: " + text, "SyntaxError");
  }
  if (StringPrototypeIndexOf(href, "#") !== -1) throw newDOMException("WebSocket: the URL has a fragment: " + text, "SyntaxError");
  // (No request has one.)
  if (parts[URL_USERNAME] !== parts[URL_USERNAME + 1] || parts[URL_PASSWORD] !== parts[URL_PASSWORD + 1]) {
    throw newDOMException("WebSocket: the URL has a user name or password.", "SyntaxError");
  }
  return href;
}

function connectSocket(state, names) {
  const headers = listOfTwo("Upgrade", "websocket");
  if (names.length > 0) {
    headers[2] = "Sec-WebSocket-Protocol";
    headers[3] = ArrayPrototypeJoin(names, ", ");
  }
  state.signal = newAbortSignal();
  const request = newRequestOf({
    __proto__: null,
    url: "http" + StringPrototypeSlice(state.url, 2),
    method: "GET",
    headers,
    body: undefined,
    redirect: "error",
    signal: state.signal.object,
  });
  const onError = (error) => loseSocket(state, error);
  react(sendRequest(request), (response) => openSocket(state, names, response), onError);
}

function openSocket(state, names, response) {
  const { webSocket, status, headers, body } = responseState(response);
  let ends;
  try {
    if (state.readyState !== READY_STATES.CONNECTING) throw new ErrorConstructor("The WebSocket was closed before it was open.");
    if (webSocket === null) {
      throw new TypeErrorConstructor("The WebSocket was not opened: the answer has the status " + status + " and not 101 with a WebSocket.");
    }
    ends = takeSocketEnds(webSocket);
    const protocol = webSocketState(webSocket).protocol;
    if (!isOffered(names, protocol)) {
      throw new TypeErrorConstructor("The WebSocket was not opened: the server chose the protocol '" + protocol + "', which is none of those asked for.");
    }
    if ((getHeader(headers, "sec-websocket-extensions") ?? "") !== "") {
      throw new TypeErrorConstructor("The WebSocket was not opened: the server chose an extension, and none was asked for.");
    }
    startSocket(state, ends);
    state.protocol = protocol;
  } catch (error) {
    if (body?.stream !== undefined) markHandled(readableCancel(readableState(body.stream), error));
    ends = ends ?? (webSocket === null ? undefined : webSocketState(webSocket).ends);
    if (ends !== undefined) {
      markHandled(readableCancel(readableState(ends.readable), error));
      markHandled(writableAbort(writableState(ends.writable), error));
    }
    loseSocket(state, error);
    return;
  }
  state.readyState = READY_STATES.OPEN;
  dispatchTrusted(state.object, new Event("open"));
  pullFrames(state);
}

// A server that was asked for protocols has to choose one.
function isOffered(names, protocol) {
  if (names.length === 0) return protocol === "";
  for (let index = 0; index < names.length; index++) {
    if (names[index] === protocol) return true;
  }
  return false;
}

function startSocket(state, { readable, writable }) {
  const source = takeByteSource(readable);
  state.sink = takeByteSink(writable);
  state.source = source;
  state.reader = newFrameReader((opcode, bytes) => takeFrame(state, opcode, bytes));
}

// --- what comes ---

function pullFrames(state) {
  const { source } = state;
  if (state.readyState === READY_STATES.CLOSED) return;
  const onError = (error) => loseSocket(state, error);
  react(source.pull(PULL_BYTES_MAX), (bytes) => takePiece(state, bytes), onError);
}

function takePiece(state, bytes) {
  if (state.readyState === READY_STATES.CLOSED) return;
  if (bytes === undefined) {
    endSocket(state, 1006, "", false, undefined);
    return;
  }
  let wrong;
  try {
    wrong = readFrames(state.reader, bytes);
  } catch (error) {
    wrong = listOfTwo(1011, errorText(error));
  }
  if (wrong !== undefined) {
    state.reader.isOver = true;
    queuePush(state.told, () => failSocket(state, wrong[0], wrong[1]));
  }
  tellNext(state);
}

function tellNext(state) {
  if (queueLength(state.told) > 0) {
    const tell = queueShift(state.told);
    tell();
  }
  if (queueLength(state.told) > 0) startDelay(0, () => tellNext(state));
  else if (!state.reader.isOver) pullFrames(state);
}

// A message or a control frame; answers what is wrong with it.
function takeFrame(state, opcode, bytes) {
  if (opcode === FRAME_BINARY) {
    queuePush(state.told, () => deliverData(state, bytes));
  } else if (opcode === FRAME_TEXT) {
    const text = decodeStrictly(bytes);
    if (text === undefined) return listOfTwo(1007, "A text message is not UTF-8.");
    queuePush(state.told, () => deliverData(state, text));
  } else if (opcode === FRAME_CLOSE) {
    return takeClose(state, bytes);
  } else if (opcode === FRAME_PING && !state.isCloseSent) {
    // Of pings that came meanwhile, the last is answered.
    if (state.pong !== undefined) state.pong.frame = newFrame(FRAME_PONG, bytes);
    else state.pong = pushFrame(state, FRAME_PONG, bytes, 0);
  }
  return undefined;
}

function decodeStrictly(bytes) {
  try {
    return decodeWith({ __proto__: null, encoding: "utf-8", fatal: true, ignoreBOM: true, native: undefined }, bytes, false);
  } catch {
    return undefined;
  }
}

function deliverData(state, data) {
  if (state.readyState !== READY_STATES.OPEN) return;
  let value = data;
  if (typeof data !== "string") {
    const bytes = wholeBytes(data);
    value = state.binaryType === "blob" ? newBlob(bytes, "") : TypedArrayPrototypeGetBuffer(bytes);
  }
  dispatchTrusted(state.object, new MessageEvent("message", { __proto__: null, data: value, origin: state.origin }));
}

function takeClose(state, bytes) {
  const length = byteLength(bytes);
  const code = length === 0 ? 1005 : length === 1 ? 0 : 256 * bytes[0] + bytes[1];
  if (length > 0 && !isCloseCode(code)) return protocolError("A close frame has no valid code.");
  const reason = length === 0 ? "" : decodeStrictly(windowOf(bytes, 2, length));
  if (reason === undefined) return listOfTwo(1007, "The reason of a close frame is not UTF-8.");
  state.reader.isOver = true;
  queuePush(state.told, () => {
    if (state.readyState === READY_STATES.CLOSED) return;
    sendClose(state, length === 0 ? undefined : code, new Uint8ArrayConstructor(0));
    endSocket(state, code, reason, true, undefined);
  });
  return undefined;
}

// Those that may be in a frame: of the standard, registered since, and free to use.
function isCloseCode(code) {
  return (code >= 1000 && code <= 1003) || (code >= 1007 && code <= 1014) || (code >= 3000 && code <= 4999);
}

// --- what is sent ---

// Answers what waits now, undefined where it is on its way already.
function pushFrame(state, opcode, payload, size) {
  const entry = { __proto__: null, frame: newFrame(opcode, payload), size };
  queuePush(state.outgoing, entry);
  writeFrames(state);
  return queueLength(state.outgoing) > 0 ? entry : undefined;
}

// One frame after the other, and the end after the last.
function writeFrames(state) {
  if (state.isWriting) return;
  const { sink, outgoing } = state;
  if (queueLength(outgoing) > 0) {
    const entry = queueShift(outgoing);
    if (entry === state.pong) state.pong = undefined;
    state.isWriting = true;
    writeFrame(state, entry, 0);
  } else if (state.isEnding) {
    state.isEnding = false;
    markHandled(sink.close());
  }
}

function writeFrame(state, entry, offset) {
  const { sink } = state;
  const end = MathMin(offset + PIECE_BYTES_MAX, byteLength(entry.frame));
  const onWritten = () => {
    if (end < byteLength(entry.frame)) {
      writeFrame(state, entry, end);
      return;
    }
    state.isWriting = false;
    state.bufferedAmount -= entry.size;
    writeFrames(state);
  };
  // (What came before is told before, a close frame among it.)
  const onError = (error) => {
    if (queueLength(state.told) > 0) queuePush(state.told, () => loseSocket(state, error));
    else loseSocket(state, error);
  };
  react(sink.write(windowOf(entry.frame, offset, end)), onWritten, onError);
}

function sendClose(state, code, reason) {
  if (state.isCloseSent) return;
  const length = code === undefined ? 0 : 2 + byteLength(reason);
  const payload = new Uint8ArrayConstructor(length);
  if (length > 0) {
    payload[0] = MathFloor(code / 256);
    payload[1] = code % 256;
    TypedArrayPrototypeSet(payload, reason, 2);
  }
  pushFrame(state, FRAME_CLOSE, payload, 0);
  state.isCloseSent = true;
}

// --- the end ---

// The server broke the protocol, and is told so.
function failSocket(state, code, text) {
  if (state.readyState === READY_STATES.CLOSED) return;
  sendClose(state, code, new Uint8ArrayConstructor(0));
  endSocket(state, 1006, "", false, new ErrorConstructor(text));
}

// There is no connection, or it is of no use any more.
function loseSocket(state, error) {
  const { sink } = state;
  if (state.readyState === READY_STATES.CLOSED) return;
  if (sink !== undefined) {
    state.outgoing = newQueue();
    markHandled(sink.abort(error));
  }
  // (A stream may fail with undefined.)
  endSocket(state, 1006, "", false, error ?? new ErrorConstructor("The WebSocket connection was lost."));
}

// What has not been sent yet still is.
function endSocket(state, code, reason, wasClean, error) {
  const { source } = state;
  state.readyState = READY_STATES.CLOSED;
  if (state.timer !== undefined) cancelDelay(state.timer);
  if (source !== undefined) {
    markHandled(source.cancel(error));
    state.isEnding = true;
    writeFrames(state);
  }
  if (error !== undefined) {
    dispatchTrusted(state.object, new ErrorEvent("error", { __proto__: null, message: errorText(error), error }));
  }
  dispatchTrusted(state.object, new CloseEvent("close", { __proto__: null, code, reason, wasClean }));
}

// Its message, where it has one that runs no code.
function errorText(error) {
  let text;
  try {
    text = ownData(error, "message");
  } catch {
    // It is no object, or does not want to be looked at.
  }
  return typeof text === "string" ? text : "The WebSocket connection was lost.";
}
