// HTTP objects as values, requests that leave the isolate, and requests that come in.
//
// Owns: what Headers, Request, Response and Blob are copied by, and `fetch` of entrypoints and of the outbound.
// Must never: send a request anywhere but to the import that the host keeps for it or to a stub, or use a body twice.

// Classes by the numbers that crates/guest/src/interfaces.rs has for them.
const HEADERS = 0;
const REQUEST = 1;
const RESPONSE = 2;
const BLOB = 3;

// --- values ---

// What an object of the web platform is copied by: [number, content], or undefined where it is of no such class. For
// structuredClone blobs are copied, and the others refused.
function interfaceContent(object, isClone) {
  if (isClone && (isHeaders(object) || isRequest(object) || isResponse(object))) {
    throw newDOMException("The value has an object of the web platform that can't be cloned.", "DataCloneError");
  }
  if (isHeaders(object)) return listOfTwo(HEADERS, pairsOf(headersList(object)));
  if (isRequest(object)) return listOfTwo(REQUEST, requestContent(requestParts(object)));
  if (isResponse(object)) return listOfTwo(RESPONSE, responseContent(responseParts(object)));
  if (isBlob(object)) return listOfTwo(BLOB, blobContent(blobParts(object)));
  return undefined;
}

function pairsOf(flat) {
  const pairs = newList();
  for (let index = 0; index < flat.length; index += 2) {
    pairs[pairs.length] = listOfTwo(flat[index], flat[index + 1]);
  }
  return pairs;
}

function requestContent(parts) {
  return {
    __proto__: null,
    url: parts.url,
    method: parts.method,
    headers: pairsOf(parts.headers),
    body: bodyContent(parts.body),
    redirect: parts.redirect,
  };
}

function responseContent(parts) {
  const content = {
    __proto__: null,
    status: parts.status,
    statusText: parts.statusText,
    headers: pairsOf(parts.headers),
    body: bodyContent(parts.body),
  };
  if (parts.url !== "") {
    content.url = parts.url;
    content.redirected = parts.redirected;
  }
  if (parts.ends !== undefined) content.webSocket = parts.ends;
  return content;
}

function blobContent(parts) {
  const content = { __proto__: null, type: parts.type, bytes: bufferOf(parts.bytes) };
  if (parts.name !== undefined) {
    content.name = parts.name;
    content.lastModified = parts.lastModified;
  }
  return content;
}

function bodyContent(body) {
  if (body === undefined || body === null) return null;
  return body.bytes !== undefined ? bufferOf(body.bytes) : body.stream;
}

// A buffer that holds just these bytes.
function bufferOf(bytes) {
  return TypedArrayPrototypeGetBuffer(wholeBytes(bytes));
}

const malformed = (what) => new TypeErrorConstructor("The " + what + " that was passed is malformed.");

// The object that came as this content, every part of which is a stranger's word.
function newInterface(number, content) {
  if (number === HEADERS) return newHeaders(flatOf(content, "Headers"));
  if (number === REQUEST) return requestOfContent(content);
  if (number === RESPONSE) return responseOfContent(content);
  const bytes = bytesOfBuffer(ownData(content, "bytes"));
  if (bytes === undefined) throw malformed("Blob");
  const name = ownData(content, "name");
  const lastModified = ownData(content, "lastModified");
  return newBlobOf({
    __proto__: null,
    type: textOf(content, "type", "", "Blob"),
    bytes,
    name: typeof name === "string" ? name : undefined,
    lastModified: typeof lastModified === "number" ? lastModified : 0,
  });
}

function requestOfContent(content) {
  const method = toRequestMethod(textOf(content, "method", "GET", "Request"));
  const body = bodyOf(ownData(content, "body"), "Request");
  if (body !== undefined && (method === "GET" || method === "HEAD")) throw malformed("Request");
  return newRequestOf({
    __proto__: null,
    url: toRequestUrl(textOf(content, "url", undefined, "Request")),
    method,
    headers: flatOf(ownData(content, "headers"), "Request"),
    body,
    redirect: toWord("redirect", textOf(content, "redirect", "follow", "Request")),
    signal: undefined,
  });
}

function responseOfContent(content) {
  const status = ownData(content, "status") ?? 200;
  const statusText = textOf(content, "statusText", "", "Response");
  const body = bodyOf(ownData(content, "body"), "Response");
  const ends = webSocketOf(ownData(content, "webSocket"));
  const isStatus =
    ends === undefined
      ? typeof status === "number" && status >= 200 && status <= 599 && MathFloor(status) === status
      : status === 101;
  if (!isStatus || !isReason(statusText)) throw malformed("Response");
  return newResponseOf({
    __proto__: null,
    status,
    statusText,
    headers: flatOf(ownData(content, "headers"), "Response"),
    body: NULL_BODY_STATUS[status] === true ? undefined : body,
    ends,
    url: textOf(content, "url", "", "Response"),
    redirected: ownData(content, "redirected") === true,
  });
}

// The two streams of a WebSocket, if there is one.
function webSocketOf(ends) {
  if (ends === undefined || ends === null) return undefined;
  if (!isObject(ends)) throw malformed("Response");
  const readable = ownData(ends, "readable");
  const writable = ownData(ends, "writable");
  if (!isReadableStream(readable) || !isWritableStream(writable)) throw malformed("Response");
  return { __proto__: null, readable, writable };
}

function textOf(content, field, absent, what) {
  const text = ownData(content, field) ?? absent;
  if (typeof text !== "string") throw malformed(what);
  return text;
}

function flatOf(pairs, what) {
  const flat = newList();
  if (pairs === undefined) return flat;
  if (!ArrayIsArray(pairs)) throw malformed(what);
  for (let index = 0; index < pairs.length; index++) {
    const pair = ownData(pairs, index);
    if (!ArrayIsArray(pair) || pair.length !== 2) throw malformed(what);
    const name = ownData(pair, 0);
    const value = ownData(pair, 1);
    if (typeof name !== "string" || typeof value !== "string") throw malformed(what);
    flat[flat.length] = toHeaderName(name);
    flat[flat.length] = toHeaderValue(value);
  }
  return flat;
}

function bodyOf(body, what) {
  if (body === undefined || body === null) return undefined;
  if (isReadableStream(body)) return { __proto__: null, bytes: undefined, stream: body, length: undefined };
  const bytes = bytesOfBuffer(body);
  if (bytes === undefined) throw malformed(what);
  return { __proto__: null, bytes, stream: undefined, length: undefined };
}

function bytesOfBuffer(value) {
  try {
    ArrayBufferPrototypeGetByteLength(value);
  } catch {
    return undefined;
  }
  return new Uint8ArrayConstructor(value);
}

// --- requests that leave ---

function sendRequest(request) {
  return fetchFrom(outboundHook, request);
}

// Calls `fetch` of what is behind a hook; answers a promise of the Response.
function fetchFrom(hook, request) {
  const signal = requestState(request).source;
  if (signal !== undefined && signal.isAborted) return PromiseReject(signal.reason);
  const path = newList();
  path[0] = "fetch";
  const args = newList();
  args[0] = request;
  const answer = start(hook, path, false, args, false);
  const deferred = newDeferred();
  const onAborted = (reason) => {
    callBack(answer);
    deferred.reject(reason);
  };
  if (signal !== undefined) addAbortAlgorithm(signal, onAborted);
  const stopListening = () => {
    if (signal !== undefined) removeAbortAlgorithm(signal, onAborted);
  };
  react(
    answer.promise,
    (response) => {
      stopListening();
      if (isResponse(response)) {
        const state = responseState(response);
        if (state.type === "default") state.type = "basic";
        if (signal !== undefined) abortBodyWith(state.body, signal);
        deferred.resolve(response);
      } else deferred.reject(new TypeErrorConstructor("What the request was sent to did not answer with a Response."));
    },
    (error) => {
      stopListening();
      deferred.reject(ownUrlRefusal(error) ?? error);
    },
  );
  return deferred.promise;
}

// The Fetch standard has a TypeError for a URL that can't be fetched, whoever found that out.
function ownUrlRefusal(error) {
  if (!isObject(error) || ownData(error, "code") !== "url_refused") return undefined;
  const refusal = new TypeErrorConstructor(ownData(error, "message"));
  ObjectDefineProperty(refusal, "code", dataProperty("url_refused"));
  return refusal;
}

// A body that is a stream ends with the signal, and whoever feeds it is told.
function abortBodyWith(body, signal) {
  if (body === undefined) return;
  if (body.stream === undefined) {
    addAbortAlgorithm(signal, (reason) => {
      if (body.isUsed) return;
      body.failure = { __proto__: null, reason };
      body.stream ??= newByteStream({ __proto__: null, pull: () => PromiseReject(reason), cancel: () => PromiseResolve() });
    });
    return;
  }
  const source = takeByteSource(body.stream);
  let waiting;
  let isAborted = signal.isAborted;
  const onAborted = (reason) => {
    isAborted = true;
    body.failure = { __proto__: null, reason };
    markHandled(source.cancel(reason));
    if (waiting !== undefined) waiting.reject(reason);
  };
  const stop = () => removeAbortAlgorithm(signal, onAborted);
  body.stream = newByteStream({
    __proto__: null,
    pull(bytesMax) {
      if (isAborted) return PromiseReject(signal.reason);
      const deferred = newDeferred();
      waiting = deferred;
      react(
        source.pull(bytesMax),
        (bytes) => {
          waiting = undefined;
          if (bytes === undefined) stop();
          deferred.resolve(bytes);
        },
        (error) => {
          waiting = undefined;
          stop();
          deferred.reject(error);
        },
      );
      return deferred.promise;
    },
    cancel(reason) {
      stop();
      return source.cancel(reason);
    },
  });
  addAbortAlgorithm(signal, onAborted);
}

// --- requests that come in ---

const noHandler = (name) => new ErrorConstructor("Handler does not export a " + name + "() function.");

// The signals of requests whose calls have no answer yet, by the calls' numbers: null until one is asked for.
const callSignals = ObjectCreate(null);

// Undefined where the call has its answer.
function signalOfCall(invocation) {
  if (callSignals[invocation] === null) callSignals[invocation] = newAbortSignal();
  return callSignals[invocation];
}

function forgetCallSignal(invocation) {
  delete callSignals[invocation];
}

// Nobody waits for the answer of a call any more, but others are in the isolate, which goes on.
function cancelCall(invocation) {
  const signal = callSignals[invocation];
  forgetCallSignal(invocation);
  if (signal === undefined || signal === null) return;
  abortSignal(signal, newDOMException("The request was cancelled by its caller", "AbortError"));
}

// Calls the `fetch` handler of an entrypoint: of an instance with the request, of an object with env and context too.
function enterFetch(call, receiver, context) {
  const given = argument(call, 0);
  const request = isRequest(given) ? given : new Request(given, argument(call, 1));
  noteCall(request, call.invocation);
  callSignals[call.invocation] = null;
  const handler = handlerOf(receiver, "fetch", context === undefined);
  if (handler === undefined) throw noHandler("fetch");
  settle(ReflectApply(handler, receiver, handlerArgs(request, context)), finishFetch, failCall, call);
}

// (An index that is not there is asked of what the list inherits from.)
function argument(call, index) {
  return index < call.args.length ? call.args[index] : undefined;
}

function handlerArgs(first, context) {
  const args = newList();
  args[0] = first;
  if (context !== undefined) {
    args[1] = env;
    args[2] = context;
  }
  return args;
}

function finishFetch(call, response) {
  if (isResponse(response)) {
    call.done(call.state, response);
    return;
  }
  const kind = response === null ? "null" : typeof response === "object" ? "another object" : typeof response;
  failCall(call, new TypeErrorConstructor("The fetch() handler has to return a Response or a promise of one, not " + kind + "."));
}

// The method of that name of an instance's classes, or of an object itself.
function handlerOf(receiver, name, isInstance) {
  let owner = isInstance ? ReflectGetPrototypeOf(receiver) : receiver;
  while (isInstance && owner !== null && owner !== WorkerEntrypointPrototype && !ObjectHasOwn(owner, name)) {
    owner = ReflectGetPrototypeOf(owner);
  }
  if (owner === null || owner === WorkerEntrypointPrototype || !ObjectHasOwn(owner, name)) return undefined;
  const handler = receiver[name];
  return typeof handler === "function" ? handler : undefined;
}
