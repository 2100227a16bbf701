// What a suite checks with. Failures are noted and not thrown, so that one run shows them all.
let checks = 0;
const failures = [];

export function equal(actual, expected, what) {
  checks++;
  const [shown, wanted] = [show(actual), show(expected)];
  if (shown !== wanted) failures.push(`${what ?? ""}: ${shown} instead of ${wanted}`);
}

function show(value) {
  if (typeof value === "bigint" || typeof value === "symbol" || typeof value === "function") return `${typeof value} ${String(value)}`;
  if (Object.is(value, -0)) return "-0";
  if (value instanceof Uint8Array) return `bytes ${value.join(" ")}`;
  return value === undefined || (typeof value === "number" && !Number.isFinite(value)) ? String(value) : JSON.stringify(value);
}

// `run` throws an error of this name, and its message says so much.
export function throws(run, name, message = "") {
  checks++;
  try {
    run();
  } catch (error) {
    note(error, name, message, run);
    return;
  }
  failures.push(`did not throw: ${run}`);
}

export async function rejects(promise, name, message = "") {
  checks++;
  try {
    await promise;
  } catch (error) {
    note(error, name, message, "promise");
    return;
  }
  failures.push(`did not reject: ${name} ${message}`);
}

function note(error, name, message, what) {
  if (error?.name !== name || !String(error.message).includes(message)) failures.push(`${what}: threw ${error?.name}: ${error?.message}`);
}

// A worker whose only method runs the checks.
export const suite = (run) => ({
  async run(_, env, ctx) {
    try {
      await run(env, ctx);
    } catch (error) {
      failures.push(`${error?.stack ?? error}`);
    }
    return { checks, failures };
  },
});

// That a class looks as Web IDL has it: methods and accessors are enumerable, and there is a tag.
export function looksRight(name, length, members) {
  const descriptor = Object.getOwnPropertyDescriptor(globalThis, name);
  equal([descriptor.writable, descriptor.enumerable, descriptor.configurable], [true, false, true], `the global ${name}`);
  const { value } = descriptor;
  equal([value.name, value.length], [name, length], `${name}'s name and length`);
  equal(Object.getOwnPropertyDescriptor(value.prototype, Symbol.toStringTag)?.value, name, `${name}'s tag`);
  for (const member of members.split(" ").filter(Boolean)) {
    equal(Object.getOwnPropertyDescriptor(value.prototype, member)?.enumerable, true, `${name}.${member}`);
  }
}
