// MessageChannel, MessagePort and MessageEvent (HTML standard), within one isolate: ports themselves can't be sent.
//
// Owns: which port belongs to which, and what waits for a port that was not started. A message is cloned when it is sent,
// and arrives in a turn of its own.

class MessageEvent extends Event {
  #state;
  constructor(type, init = undefined) {
    requireArguments("MessageEvent", arguments.length, 1);
    super(type, init);
    const members = toDictionary(init, "MessageEvent: the second argument");
    const { data } = members;
    const lastEventId = members.lastEventId;
    const origin = members.origin;
    const ports = members.ports;
    const source = members.source;
    this.#state = {
      __proto__: null,
      data: data === undefined ? null : data,
      lastEventId: lastEventId === undefined ? "" : toText(lastEventId),
      origin: origin === undefined ? "" : toWellFormed(origin),
      ports: toArray(ports === undefined ? newList() : toSequence(ports, "MessageEvent: ports")),
      source: source === undefined ? null : source,
    };
  }
  get data() {
    return this.#state.data;
  }
  get origin() {
    return this.#state.origin;
  }
  get lastEventId() {
    return this.#state.lastEventId;
  }
  get source() {
    return this.#state.source;
  }
  get ports() {
    return this.#state.ports;
  }
}
defineInterface("MessageEvent", MessageEvent);

let portState;

class MessagePort extends EventTarget {
  #state;
  static {
    portState = (value) => (isObject(value) && #state in value ? value.#state : undefined);
  }
  constructor(token = undefined) {
    if (token !== INTERNAL) throw illegalConstructor();
    super();
    this.#state = { __proto__: null, object: this, other: undefined, isStarted: false, waiting: newQueue() };
  }
  postMessage(message, options = undefined) {
    requireArguments("MessagePort.postMessage", arguments.length, 1);
    const state = this.#state;
    const clone = host.clone(message, toTransferred(options, "MessagePort.postMessage"));
    refuseInModuleScope();
    const { other } = state;
    if (other === undefined) return;
    queuePush(other.waiting, clone);
    if (other.isStarted) startDelay(0, () => deliverMessage(other));
  }
  start() {
    startPort(this.#state);
  }
  close() {
    const state = this.#state;
    if (state.other !== undefined) state.other.other = undefined;
    state.other = undefined;
    state.waiting = newQueue();
  }
}
defineInterface("MessagePort", MessagePort);
defineHandler(MessagePort.prototype, "message", (port) => startPort(portState(port)));
defineHandler(MessagePort.prototype, "messageerror");

function startPort(state) {
  if (state === undefined || state.isStarted) return;
  state.isStarted = true;
  const length = queueLength(state.waiting);
  for (let index = 0; index < length; index++) startDelay(0, () => deliverMessage(state));
}

function deliverMessage(state) {
  if (queueLength(state.waiting) === 0) return;
  const init = { __proto__: null, data: queueShift(state.waiting) };
  dispatchTrusted(state.object, new MessageEvent("message", init));
}

class MessageChannel {
  #first = portState(new MessagePort(INTERNAL));
  #second = portState(new MessagePort(INTERNAL));
  constructor() {
    this.#first.other = this.#second;
    this.#second.other = this.#first;
  }
  get port1() {
    return this.#first.object;
  }
  get port2() {
    return this.#second.object;
  }
}
defineInterface("MessageChannel", MessageChannel);

// The buffers that are to be detached: of a list, or of options with one.
function toTransferred(options, what) {
  if (options === undefined || options === null) return newList();
  if (!isObject(options)) throw new TypeErrorConstructor(what + ": the options are not an object.");
  const method = options[SymbolIterator];
  if (method !== undefined && method !== null) return checkTransferred(toSequence(options, what), what);
  const { transfer } = options;
  return transfer === undefined ? newList() : checkTransferred(toSequence(transfer, what + ": transfer"), what);
}

// Objects, each once.
function checkTransferred(list, what) {
  for (let i = 0; i < list.length; i++) {
    if (!isObject(list[i])) throw new TypeErrorConstructor(what + ": what is to be transferred at " + i + " is not an object.");
    for (let before = 0; before < i; before++) {
      if (list[before] === list[i]) throw newDOMException(what + ": what is to be transferred at " + i + " is at " + before + " too.", "DataCloneError");
    }
  }
  return list;
}
