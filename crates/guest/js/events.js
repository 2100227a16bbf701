// Event, CustomEvent and EventTarget (DOM standard, without a tree: an event has one target).
//
// Owns: who listens to what. Listeners are kept in private fields, so a target costs nothing until somebody listens.
// Must never: let what a listener throws reach whoever dispatches.

const EVENT_PHASES = { __proto__: null, NONE: 0, CAPTURING_PHASE: 1, AT_TARGET: 2, BUBBLING_PHASE: 3 };

// An event's state, or undefined for what is none.
let eventState;

// Each event has it itself, where nobody can replace it.
const isTrustedProperty = { __proto__: null, get: undefined, enumerable: true, configurable: false };
{
  const accessors = {
    get isTrusted() {
      const state = eventState(this);
      if (state === undefined) throw illegalInvocation();
      return state.isTrusted;
    },
  };
  isTrustedProperty.get = ReflectGetOwnPropertyDescriptor(accessors, "isTrusted").get;
}

class Event {
  #state;
  static {
    eventState = (value) => (isObject(value) && #state in value ? value.#state : undefined);
  }

  constructor(type, init = undefined) {
    requireArguments("Event", arguments.length, 1);
    const members = toDictionary(init, "Event: the second argument");
    const text = toText(type);
    this.#state = {
      __proto__: null,
      bubbles: !!members.bubbles,
      cancelable: !!members.cancelable,
      composed: !!members.composed,
      type: text,
      target: null,
      phase: EVENT_PHASES.NONE,
      isTrusted: false,
      isCanceled: false,
      isInPassiveListener: false,
      isStopped: false,
      isStoppedAtOnce: false,
      isDispatched: false,
      timeStamp: DateNow(),
    };
    ObjectDefineProperty(this, "isTrusted", isTrustedProperty);
  }

  get type() {
    return this.#state.type;
  }
  get target() {
    return this.#state.target;
  }
  get srcElement() {
    return this.#state.target;
  }
  get currentTarget() {
    const state = this.#state;
    return state.isDispatched ? state.target : null;
  }
  composedPath() {
    const state = this.#state;
    return state.isDispatched ? [state.target] : [];
  }
  get eventPhase() {
    return this.#state.phase;
  }
  stopPropagation() {
    this.#state.isStopped = true;
  }
  get cancelBubble() {
    return this.#state.isStopped;
  }
  set cancelBubble(value) {
    const state = this.#state;
    if (value) state.isStopped = true;
  }
  stopImmediatePropagation() {
    const state = this.#state;
    state.isStopped = true;
    state.isStoppedAtOnce = true;
  }
  get bubbles() {
    return this.#state.bubbles;
  }
  get cancelable() {
    return this.#state.cancelable;
  }
  get returnValue() {
    return !this.#state.isCanceled;
  }
  set returnValue(value) {
    const state = this.#state;
    if (!value) cancelEvent(state);
  }
  preventDefault() {
    cancelEvent(this.#state);
  }
  get defaultPrevented() {
    return this.#state.isCanceled;
  }
  get composed() {
    return this.#state.composed;
  }
  get timeStamp() {
    return this.#state.timeStamp;
  }
  initEvent(type, bubbles = false, cancelable = false) {
    requireArguments("initEvent", arguments.length, 1);
    const state = this.#state;
    const text = toText(type);
    if (state.isDispatched) return;
    state.type = text;
    state.bubbles = !!bubbles;
    state.cancelable = !!cancelable;
    state.isStopped = false;
    state.isStoppedAtOnce = false;
    state.isCanceled = false;
    state.isTrusted = false;
    state.target = null;
  }
}
defineInterface("Event", Event);
defineConstants(Event, EVENT_PHASES);

function cancelEvent(state) {
  if (state.cancelable && !state.isInPassiveListener) state.isCanceled = true;
}

class CustomEvent extends Event {
  #detail;
  constructor(type, init = undefined) {
    requireArguments("CustomEvent", arguments.length, 1);
    super(type, init);
    const members = toDictionary(init, "CustomEvent: the second argument");
    const detail = members.detail;
    this.#detail = detail === undefined ? null : detail;
  }
  get detail() {
    return this.#detail;
  }
}
defineInterface("CustomEvent", CustomEvent);

// A target's listeners by type, or undefined for what is no target.
let listenersOf;

class EventTarget {
  // By type a list of { type, callback, capture, once, passive, isRemoved, handler }.
  #listeners = ObjectCreate(null);
  static {
    listenersOf = (value) => (isObject(value) && #listeners in value ? value.#listeners : undefined);
  }

  constructor() {}

  addEventListener(type, callback, options = undefined) {
    requireArguments("addEventListener", arguments.length, 2);
    const listeners = this.#listeners;
    const isDictionary = isObject(options);
    const capture = isDictionary ? !!options.capture : !!options;
    const once = isDictionary && !!options.once;
    const passive = isDictionary && !!options.passive;
    const signal = isDictionary ? options.signal : undefined;
    const text = toText(type);
    const signalled = signal === undefined ? undefined : signalState(signal);
    if (signal !== undefined && signalled === undefined) {
      throw new TypeErrorConstructor("addEventListener: the signal is not an AbortSignal.");
    }
    if (callback === null || callback === undefined) return;
    if (!isObject(callback)) {
      throw new TypeErrorConstructor("addEventListener: the listener is neither a function nor an object.");
    }
    if (signalled?.isAborted || findListener(listeners, text, callback, capture) !== undefined) return;
    const listener = { __proto__: null, type: text, callback, capture, once, passive, isRemoved: false, handler: undefined };
    addListener(listeners, listener);
    if (signalled !== undefined) addAbortAlgorithm(signalled, () => removeListener(listeners, listener));
  }

  removeEventListener(type, callback, options = undefined) {
    requireArguments("removeEventListener", arguments.length, 2);
    const listeners = this.#listeners;
    const capture = isObject(options) ? !!options.capture : !!options;
    const listener = findListener(listeners, toText(type), callback, capture);
    if (listener !== undefined) removeListener(listeners, listener);
  }

  dispatchEvent(event) {
    requireArguments("dispatchEvent", arguments.length, 1);
    const listeners = this.#listeners;
    const state = eventState(event);
    if (state === undefined) throw new TypeErrorConstructor("dispatchEvent: the argument is not an Event.");
    if (state.isDispatched) throw newDOMException("The event is being dispatched already.", "InvalidStateError");
    state.isTrusted = false;
    return dispatch(this, listeners, event, state);
  }
}
defineInterface("EventTarget", EventTarget);

function addListener(listeners, listener) {
  const list = listeners[listener.type] ?? newList();
  listeners[listener.type] = list;
  list[list.length] = listener;
}

function findListener(listeners, type, callback, capture) {
  const list = listeners[type];
  if (list === undefined) return undefined;
  for (let index = 0; index < list.length; index++) {
    const listener = list[index];
    if (listener.callback === callback && listener.capture === capture && listener.handler === undefined) return listener;
  }
  return undefined;
}

// In a new list, because the old one may be walked through at the moment.
function removeListener(listeners, listener) {
  if (listener.isRemoved) return;
  listener.isRemoved = true;
  const list = listeners[listener.type];
  const left = newList();
  for (let index = 0; index < list.length; index++) {
    if (list[index] !== listener) left[left.length] = list[index];
  }
  listeners[listener.type] = left;
}

function dispatch(target, listeners, event, state) {
  state.isDispatched = true;
  state.target = target;
  state.phase = EVENT_PHASES.AT_TARGET;
  const list = listeners[state.type];
  if (list !== undefined) {
    callListeners(listeners, list, list.length, true, target, event, state);
    if (!state.isStopped) callListeners(listeners, list, list.length, false, target, event, state);
  }
  state.phase = EVENT_PHASES.NONE;
  state.isDispatched = false;
  state.isStopped = false;
  state.isStoppedAtOnce = false;
  return !state.isCanceled;
}

// `length`: listeners that are added meanwhile are not called.
function callListeners(listeners, list, length, capture, target, event, state) {
  for (let index = 0; index < length; index++) {
    const listener = list[index];
    if (listener.isRemoved || listener.capture !== capture) continue;
    if (listener.once) removeListener(listeners, listener);
    state.isInPassiveListener = listener.passive;
    try {
      callListener(listener, target, event, state);
    } catch (error) {
      reportUncaught(error, false);
    }
    state.isInPassiveListener = false;
    if (state.isStoppedAtOnce) return;
  }
}

function callListener(listener, target, event, state) {
  const { callback, handler } = listener;
  if (handler !== undefined) {
    if (typeof handler.value === "function" && ReflectApply(handler.value, target, [event]) === false) cancelEvent(state);
  } else if (typeof callback === "function") {
    ReflectApply(callback, target, [event]);
  } else {
    const method = callback.handleEvent;
    if (typeof method !== "function") throw new TypeErrorConstructor("The listener has no method handleEvent.");
    ReflectApply(method, callback, [event]);
  }
}

// Dispatches an event of ours at a target of ours.
function dispatchTrusted(target, event) {
  const listeners = listenersOf(target);
  const state = eventState(event);
  if (listeners === undefined || state === undefined) return;
  state.isTrusted = true;
  dispatch(target, listeners, event, state);
}

function hasListeners(target, type) {
  const list = listenersOf(target)?.[type];
  return list !== undefined && list.length > 0;
}

// An `onabort` and the like: a listener whose place is that of the first function that was set. `onSet(target)` is called
// whenever it is set.
function defineHandler(prototype, type, onSet = ignore) {
  const holders = new WeakMapConstructor();
  const accessors = {
    get handler() {
      if (listenersOf(this) === undefined) throw illegalInvocation();
      return WeakMapPrototypeGet(holders, this)?.value ?? null;
    },
    set handler(value) {
      const listeners = listenersOf(this);
      if (listeners === undefined) throw illegalInvocation();
      onSet(this);
      let holder = WeakMapPrototypeGet(holders, this);
      if (holder === undefined) {
        if (!isObject(value)) return;
        holder = { __proto__: null, value: null, listener: undefined };
        WeakMapPrototypeSet(holders, this, holder);
      }
      holder.value = isObject(value) ? value : null;
      if (holder.value === null) {
        if (holder.listener !== undefined) removeListener(listeners, holder.listener);
        holder.listener = undefined;
      } else if (holder.listener === undefined) {
        const listener = { __proto__: null, type, callback: undefined, capture: false, once: false, passive: false };
        listener.isRemoved = false;
        listener.handler = holder;
        holder.listener = listener;
        addListener(listeners, listener);
      }
    },
  };
  const { get, set } = ReflectGetOwnPropertyDescriptor(accessors, "handler");
  const name = "on" + type;
  ObjectDefineProperty(get, "name", { __proto__: null, value: "get " + name });
  ObjectDefineProperty(set, "name", { __proto__: null, value: "set " + name });
  ObjectDefineProperty(prototype, name, { __proto__: null, get, set, enumerable: true, configurable: true });
}
