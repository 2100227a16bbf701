// Connections that leave the isolate and that come in, as sockets of Workers.
//
// Owns: `connect` of entrypoints and of the outbound, and sockets: when one is open, closed, and upgraded to TLS.
// Must never: end a socket's streams before TLS has taken over, or leave `closed` pending when both of them are over.

const SECURE_TRANSPORTS = { __proto__: null, off: true, on: true, starttls: true };

const NO_TLS = "What the connection was made to can't start TLS.";

// A socket over a stream to read from and one to write to.
class Socket {
  // { readable, writable, opened, closed, secureTransport, allowHalfOpen, info, ends, known, isUpgraded }: `ends` is a promise
  // of { source, sink, startTls }, the last the handle of a stub or undefined, and `known` what it was resolved with.
  #parts;

  constructor(token, parts) {
    if (token !== INTERNAL) throw illegalConstructor();
    this.#parts = parts;
  }

  get readable() {
    return this.#parts.readable;
  }
  get writable() {
    return this.#parts.writable;
  }
  get opened() {
    return this.#parts.opened.promise;
  }
  get closed() {
    return this.#parts.closed.promise;
  }
  get secureTransport() {
    return this.#parts.secureTransport;
  }
  get upgraded() {
    return this.#parts.isUpgraded;
  }

  // What was written before is still sent.
  close() {
    const { readable, writable, closed } = this.#parts;
    markHandled(readableCancel(readableState(readable), new ErrorConstructor("The socket was closed.")));
    closeWritable(writableState(writable));
    return closed.promise;
  }

  startTls(options = undefined) {
    const parts = this.#parts;
    const hostname = toDictionary(options, "Socket.startTls: the argument").expectedServerHostname;
    const args = newList();
    args[0] = hostname === undefined ? { __proto__: null } : { __proto__: null, expectedServerHostname: toText(hostname) };
    if (parts.secureTransport !== "starttls") {
      throw new TypeErrorConstructor("The `secureTransport` socket option must be set to 'starttls' for startTls to be used.");
    }
    if (parts.isUpgraded) throw new TypeErrorConstructor("startTls can only be called once.");
    const state = writableState(parts.writable);
    if (state.state !== "writable" || isCloseQueuedOrInFlight(state)) {
      throw new TypeErrorConstructor("Socket.startTls: the socket is closed.");
    }
    if (parts.known !== undefined && parts.known.startTls === undefined) throw new TypeErrorConstructor(NO_TLS);
    parts.isUpgraded = true;
    return upgradeSocket(parts, args);
  }
}
defineInterface("Socket", Socket, true);

function closeWritable(state) {
  if (state.state === "writable" && !isCloseQueuedOrInFlight(state)) markHandled(writableClose(state));
}

// A socket at once, over what the deferred `ends` will have. `info` is what `opened` tells.
function newSocket(ends, info, secureTransport, allowHalfOpen) {
  const opened = newDeferred();
  const closed = newDeferred();
  const parts = {
    __proto__: null,
    readable: undefined,
    writable: undefined,
    opened,
    closed,
    secureTransport,
    allowHalfOpen,
    info,
    ends: ends.promise,
    known: undefined,
    isUpgraded: false,
  };
  react(
    ends.promise,
    (known) => {
      parts.known = known;
      opened.resolve({ remoteAddress: info.remoteAddress, localAddress: info.localAddress });
    },
    (error) => {
      opened.reject(error);
      closed.reject(error);
    },
  );
  // Who does not look at them has the error with the streams.
  markHandled(opened.promise);
  markHandled(closed.promise);

  let isRead = false;
  let isWritten = false;
  const onRead = () => {
    isRead = true;
    if (isWritten) closed.resolve();
  };
  const onWritten = () => {
    isWritten = true;
    if (isRead) closed.resolve();
  };
  const onEnd = (bytes) => {
    if (bytes !== undefined) return;
    onRead();
    if (!allowHalfOpen) closeWritable(writableState(parts.writable));
  };
  const within = (use, onDone) => {
    const deferred = newDeferred();
    const onValue = (value) => {
      onDone(value);
      deferred.resolve(value);
    };
    const onError = (error) => {
      closed.reject(error);
      deferred.reject(error);
    };
    react(ends.promise, (known) => react(use(known), onValue, onError), onError);
    return deferred.promise;
  };
  parts.readable = newByteStream({
    __proto__: null,
    pull: (bytesMax) => within(({ source }) => source.pull(bytesMax), onEnd),
    cancel(reason) {
      onRead();
      return within(({ source }) => source.cancel(reason), ignore);
    },
  });
  parts.writable = newSinkStream({
    __proto__: null,
    // (Nothing is written where what was written before is waited for.)
    write: (bytes) => within(({ sink }) => (byteLength(bytes) === 0 ? RESOLVED : sink.write(bytes)), ignore),
    close: () => within(({ sink }) => sink.close(), onWritten),
    abort: (reason) => within(({ sink }) => sink.abort(reason), onWritten),
  });
  return new Socket(INTERNAL, parts);
}

// Resolves `ends` with what `connect` or `startTls` was answered with.
function resolveEnds(ends, value, what) {
  const readable = isObject(value) ? ownData(value, "readable") : undefined;
  const writable = isObject(value) ? ownData(value, "writable") : undefined;
  if (!isReadableStream(readable) || !isWritableStream(writable)) {
    ends.reject(new TypeErrorConstructor("What the connection was made to did not answer " + what + " with { readable, writable }."));
    return;
  }
  const startTls = handleOf(ownData(value, "startTls"));
  ends.resolve({ __proto__: null, source: takeByteSource(readable), sink: takeByteSink(writable), startTls });
}

// --- TLS ---

// The socket that takes the old one's place. First all that was written to that one is sent.
function upgradeSocket(parts, args) {
  const ends = newDeferred();
  const { writable, allowHalfOpen } = parts;
  const upgrade = ({ startTls }) => {
    const finish = () => {
      if (startTls !== undefined) dispose(startTls);
      endUpgraded(parts);
    };
    const onValue = (value) => {
      resolveEnds(ends, value, "startTls");
      finish();
    };
    const onError = (error) => {
      ends.reject(error);
      finish();
    };
    try {
      if (startTls === undefined) throw new TypeErrorConstructor(NO_TLS);
      react(start(usable(startTls), startTls.path, false, args, false).promise, onValue, onError);
    } catch (error) {
      onError(error);
    }
  };
  const written = newDeferred();
  const state = writableState(writable);
  queuePush(state.writeRequests, written);
  writableEnqueue(state.controller, new Uint8ArrayConstructor(0), 0);
  react(written.promise, () => react(parts.ends, upgrade, ends.reject), ends.reject);
  return newSocket(ends, parts.info, "on", allowHalfOpen);
}

function endUpgraded({ readable, writable, closed }) {
  const reason = new TypeErrorConstructor("The socket was upgraded to TLS: use the one that startTls() returned.");
  closed.resolve();
  markHandled(readableCancel(readableState(readable), reason));
  markHandled(writableAbort(writableState(writable), reason));
}

// --- connections that leave ---

function addressText(address) {
  if (!isObject(address)) return typeof address === "symbol" ? "" + address : StringConstructor(address);
  const { hostname, port } = address;
  return StringConstructor(hostname) + ":" + StringConstructor(port);
}

// Calls `connect` of what is behind a hook; answers a socket at once.
function connectTo(hook, address, options) {
  const path = newList();
  path[0] = "connect";
  const args = newList();
  args[0] = addressText(address);
  if (options !== undefined) args[1] = options;
  const members = toDictionary(options, "connect: the options");
  const allowHalfOpen = !!members.allowHalfOpen;
  const given = members.secureTransport;
  const secureTransport = given === undefined ? "off" : toText(given);
  if (SECURE_TRANSPORTS[secureTransport] !== true) {
    throw new TypeErrorConstructor("Unsupported value in secureTransport socket option: " + secureTransport);
  }
  const colon = StringPrototypeIndexOf(args[0], ":");
  if (colon < 0 || colon === args[0].length - 1) throw new TypeErrorConstructor("Specified address is missing port.");
  const ends = newDeferred();
  react(start(hook, path, false, args, false).promise, (value) => resolveEnds(ends, value, "connect"), ends.reject);
  return newSocket(ends, { remoteAddress: args[0], localAddress: undefined }, secureTransport, allowHalfOpen);
}

// `connect` of the module "cloudflare:sockets".
function connect(address, options) {
  refuseInModuleScope();
  return connectTo(outboundHook, address, options);
}

// --- connections that come in ---

// Calls the `connect` handler of an entrypoint with its end of a connection; the caller gets the other one.
function enterConnect(call, receiver, context) {
  const handler = handlerOf(receiver, "connect", context === undefined);
  if (handler === undefined) throw noHandler("connect");
  const inward = newIdentityState(undefined);
  const outward = newIdentityState(undefined);
  const ends = newDeferred();
  ends.resolve({
    __proto__: null,
    source: takeByteSource(inward.readable.object),
    sink: takeByteSink(outward.writable.object),
    startTls: undefined,
  });
  // (The handler may answer when all has come.)
  const socket = newSocket(ends, { remoteAddress: undefined, localAddress: argument(call, 0) }, "off", true);
  holdUntil(call.invocation, ReflectApply(handler, receiver, handlerArgs(socket, context)));
  call.done(call.state, { readable: outward.readable.object, writable: inward.writable.object });
}
