// What all streams have in common (Streams standard): queues, strategies, and how what a worker gave is called.
//
// Owns: ByteLengthQueuingStrategy and CountQueuingStrategy.
//
// A stream, reader, writer or controller is a record here, with a null prototype; the object that a worker has of it keeps
// it in a private field, and the record's `object` leads back. What the standard does with promises of its own is done
// with `react`, so nothing of the worker's is asked; what the worker's functions return is awaited by `promiseOf`.

// --- queues: first in, first out ---

function newQueue() {
  return { __proto__: null, items: newList(), head: 0 };
}

function queueLength(queue) {
  return queue.items.length - queue.head;
}

function queuePush(queue, item) {
  queue.items[queue.items.length] = item;
}

function queueFirst(queue) {
  return queue.items[queue.head];
}

function queueShift(queue) {
  const { items, head } = queue;
  const item = items[head];
  items[head] = undefined;
  queue.head = head + 1;
  if (queue.head === items.length) {
    queue.items = newList();
    queue.head = 0;
  } else if (queue.head >= 64 && 2 * queue.head >= items.length) {
    const left = newList();
    for (let index = queue.head; index < items.length; index++) left[left.length] = items[index];
    queue.items = left;
    queue.head = 0;
  }
  return item;
}

// The items, which the queue no longer has.
function queueTake(queue) {
  const taken = newList();
  for (let index = queue.head; index < queue.items.length; index++) taken[taken.length] = queue.items[index];
  queue.items = newList();
  queue.head = 0;
  return taken;
}

// --- queues with sizes: those of controllers, which have `queue` and `queueSize` ---

function enqueueWithSize(controller, value, size) {
  if (!(size >= 0) || size === Infinity) {
    throw new RangeErrorConstructor("The size of a chunk is not a finite number from 0 on.");
  }
  queuePush(controller.queue, { __proto__: null, value, size });
  controller.queueSize += size;
}

function dequeue(controller) {
  const { value, size } = queueShift(controller.queue);
  controller.queueSize -= size;
  // Numbers of uneven size don't add up to nothing.
  if (controller.queueSize < 0) controller.queueSize = 0;
  return value;
}

function resetQueue(controller) {
  controller.queue = newQueue();
  controller.queueSize = 0;
}

// --- what a worker gave ---

// A function of the worker's that is called with `self` as `this`. What it returns or throws becomes a promise.
function callForPromise(method, self, args) {
  try {
    return promiseOf(ReflectApply(method, self, args));
  } catch (error) {
    return PromiseReject(error);
  }
}

const RESOLVED = PromiseResolve(undefined);

// The member of a source, sink or transformer, which is a function or not there.
function toMethod(object, name, what) {
  const method = object[name];
  if (method === undefined) return undefined;
  if (typeof method !== "function") throw new TypeErrorConstructor(what + ": " + name + " is not a function.");
  return method;
}

// The strategy { highWaterMark, size }, both of them undefined where it says nothing.
function toStrategy(value, what) {
  const members = toDictionary(value, what + ": the strategy");
  const highWaterMark = members.highWaterMark;
  return {
    __proto__: null,
    highWaterMark: highWaterMark === undefined ? undefined : +highWaterMark,
    size: toMethod(members, "size", what + ": the strategy"),
  };
}

function highWaterMarkOf(strategy, otherwise) {
  const { highWaterMark } = strategy;
  if (highWaterMark === undefined) return otherwise;
  if (!(highWaterMark >= 0)) throw new RangeErrorConstructor("A high water mark is a number from 0 on.");
  return highWaterMark;
}

function sizeOf(strategy) {
  const { size } = strategy;
  return size === undefined ? undefined : (chunk) => +ReflectApply(size, undefined, [chunk]);
}

// --- strategies ---

const strategySizes = {
  byteLength: {
    size(chunk) {
      return chunk.byteLength;
    },
  }.size,
  count: {
    size() {
      return 1;
    },
  }.size,
};

class ByteLengthQueuingStrategy {
  #highWaterMark;
  constructor(init) {
    this.#highWaterMark = toHighWaterMark(init, arguments.length, "ByteLengthQueuingStrategy");
  }
  get highWaterMark() {
    return this.#highWaterMark;
  }
  get size() {
    this.#highWaterMark;
    return strategySizes.byteLength;
  }
}
defineInterface("ByteLengthQueuingStrategy", ByteLengthQueuingStrategy);

class CountQueuingStrategy {
  #highWaterMark;
  constructor(init) {
    this.#highWaterMark = toHighWaterMark(init, arguments.length, "CountQueuingStrategy");
  }
  get highWaterMark() {
    return this.#highWaterMark;
  }
  get size() {
    this.#highWaterMark;
    return strategySizes.count;
  }
}
defineInterface("CountQueuingStrategy", CountQueuingStrategy);

function toHighWaterMark(init, given, what) {
  requireArguments(what, given, 1);
  const { highWaterMark } = toDictionary(init, what + ": the argument");
  if (highWaterMark === undefined) throw new TypeErrorConstructor(what + ": highWaterMark is required.");
  return +highWaterMark;
}
