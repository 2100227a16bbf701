import { equal, looksRight, rejects, suite, throws } from "./check.js";

export default suite(async () => {
  looksRight("Event", 1, "type target currentTarget eventPhase bubbles cancelable defaultPrevented composed timeStamp preventDefault composedPath");
  looksRight("CustomEvent", 1, "detail");
  looksRight("EventTarget", 0, "addEventListener removeEventListener dispatchEvent");
  looksRight("AbortController", 0, "signal abort");
  looksRight("AbortSignal", 0, "aborted reason throwIfAborted onabort");

  // Events.
  throws(() => new Event(), "TypeError", "1 argument");
  throws(() => Event("x"), "TypeError");
  const event = new Event("x", { cancelable: true });
  equal([event.type, event.bubbles, event.cancelable, event.composed, event.target, event.isTrusted, event.eventPhase], ["x", false, true, false, null, false, 0]);
  equal([Event.AT_TARGET, event.BUBBLING_PHASE], [2, 3]);
  equal(Object.hasOwn(event, "isTrusted"), true);
  event.preventDefault();
  equal([event.defaultPrevented, event.returnValue], [true, false]);
  equal(new CustomEvent("x", { detail: { a: 1 } }).detail, { a: 1 });
  equal(new CustomEvent("x").detail, null);
  throws(() => Object.getOwnPropertyDescriptor(Event.prototype, "type").get.call({}), "TypeError");

  // Listeners.
  const target = new EventTarget();
  const seen = [];
  const listener = (it) => seen.push(["bubble", it.target === target, it.currentTarget === target, it.eventPhase]);
  target.addEventListener("x", listener);
  target.addEventListener("x", listener); // the same one counts once
  target.addEventListener("x", { handleEvent(it) { seen.push([this !== undefined, it.type]); } });
  target.addEventListener("x", () => seen.push("capture"), true);
  target.addEventListener("x", () => seen.push("once"), { once: true });
  equal(target.dispatchEvent(new Event("x")), true);
  equal(seen.splice(0), ["capture", ["bubble", true, true, 2], [true, "x"], "once"], "in order");
  target.removeEventListener("x", listener);
  target.dispatchEvent(new Event("x"));
  equal(seen.splice(0), ["capture", [true, "x"]], "what was removed is not called");
  target.addEventListener("y", (it) => it.preventDefault(), { passive: true });
  equal(target.dispatchEvent(new Event("y", { cancelable: true })), true, "passive");
  target.addEventListener("y", (it) => it.preventDefault());
  equal(target.dispatchEvent(new Event("y", { cancelable: true })), false);
  target.addEventListener("z", (it) => it.stopImmediatePropagation());
  target.addEventListener("z", () => seen.push("never"));
  target.addEventListener("t", () => { throw new Error("of a listener"); });
  target.addEventListener("t", () => seen.push("goes on"));
  target.dispatchEvent(new Event("z"));
  target.dispatchEvent(new Event("t"));
  equal(seen.splice(0), ["goes on"], "what a listener throws is nobody else's");
  target.addEventListener("again", (it) => target.dispatchEvent(it));
  target.dispatchEvent(new Event("again"));
  throws(() => target.dispatchEvent({}), "TypeError");
  throws(() => target.addEventListener("x", 5), "TypeError");
  equal(target.addEventListener("x", null), undefined);
  const stop = new AbortController();
  target.addEventListener("w", () => seen.push("w"), { signal: stop.signal });
  target.dispatchEvent(new Event("w"));
  stop.abort();
  target.dispatchEvent(new Event("w"));
  equal(seen.splice(0), ["w"], "a signal takes a listener away");

  // Signals.
  throws(() => new AbortSignal(), "TypeError", "Illegal constructor");
  const controller = new AbortController();
  const { signal } = controller;
  equal([signal === controller.signal, signal.aborted, signal.reason, signal.onabort, signal instanceof EventTarget], [true, false, undefined, null, true]);
  signal.onabort = function (it) { seen.push(["on", this === signal, it.isTrusted, it.type]); };
  signal.addEventListener("abort", () => seen.push("listener"));
  equal(signal.throwIfAborted(), undefined);
  controller.abort();
  controller.abort("again");
  equal(seen.splice(0), [["on", true, true, "abort"], "listener"]);
  equal([signal.aborted, signal.reason.name, signal.reason instanceof DOMException], [true, "AbortError", true]);
  throws(() => signal.throwIfAborted(), "AbortError");
  const withReason = AbortSignal.abort(5);
  equal([withReason.aborted, withReason.reason], [true, 5]);
  equal(AbortSignal.abort().reason.name, "AbortError");

  const [one, two] = [new AbortController(), new AbortController()];
  const any = AbortSignal.any([one.signal, two.signal]);
  const nested = AbortSignal.any([any]);
  for (const [name, it] of [["one", one.signal], ["any", any], ["nested", nested]]) it.onabort = () => seen.push([name, any.aborted, nested.aborted]);
  one.abort("why");
  two.abort("too late");
  equal(seen.splice(0), [["one", true, true], ["any", true, true], ["nested", true, true]], "dependents have aborted before anybody is told");
  equal([any.reason, nested.reason], ["why", "why"]);
  equal(AbortSignal.any([]).aborted, false);
  equal(AbortSignal.any([AbortSignal.abort(1), one.signal]).reason, 1);
  throws(() => AbortSignal.any([{}]), "TypeError");
  throws(() => AbortSignal.any(5), "TypeError");

  const timeout = AbortSignal.timeout(1);
  await new Promise((go) => timeout.addEventListener("abort", go));
  equal([timeout.reason.name, timeout.reason.message], ["TimeoutError", "The operation was aborted due to timeout"]);
  throws(() => AbortSignal.timeout(-1), "TypeError");
  throws(() => AbortSignal.timeout(Infinity), "TypeError");

  // scheduler.wait
  equal(await scheduler.wait(1), undefined);
  const waiting = new AbortController();
  const wait = scheduler.wait(100_000, { signal: waiting.signal });
  waiting.abort();
  await rejects(wait, "AbortError");
  await rejects(scheduler.wait(1, { signal: AbortSignal.abort() }), "AbortError");
  await rejects(scheduler.wait(1, { signal: {} }), "TypeError", "not an AbortSignal");
  throws(() => new Scheduler(), "TypeError");
});
