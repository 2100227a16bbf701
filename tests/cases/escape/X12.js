// source: pydantic-ai issue 2332
// rule: what one run leaves behind is not there for the next one that is loaded
// expected: "absent"
export default {
  run(_) {
    const before = globalThis.left ?? "absent";
    globalThis.left = "present";
    return before;
  },
};
