// source: vm2 issue 548
// rule: what a worker does to its prototypes is its own affair
// expected: {"answered":"still here"}
export default {
  async run(_) {
    const promise = Promise.resolve("still here");
    Object.setPrototypeOf(Object.getPrototypeOf(promise), null);
    ({}).__proto__ = null;
    const answered = await promise;
    Object.setPrototypeOf(Promise.prototype, Object.prototype);
    return { answered };
  },
};
