// How a behaviour of an executor of `@cloudflare/codemode` is told.

import assert from "node:assert/strict";
import type { Executor } from "@cloudflare/codemode";

export type Make = (options: object) => Executor;

export interface Behaviour {
  name: string;
  holds(make: Make): Promise<void>;
  /** Where an executor differs: why, and what it does instead. */
  differences?: {
    [executor in "DynamicWorkerExecutor" | "CoracleExecutor"]?: { because: string; instead(make: Make): Promise<void> };
  };
}

export const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

export type Tools = Record<string, (...args: any[]) => Promise<unknown>>;

/** Runs a program that has these tools. */
export const run = (make: Make, code: string, tools: Tools = {}, options: object = {}) =>
  make(options).execute(code, [{ name: "codemode", fns: tools }]);

/** A program that comes to this result. */
export const results = (
  name: string,
  code: string,
  expected: unknown,
  tools: Tools = {},
  options: object = {},
): Behaviour => ({
  name,
  async holds(make) {
    const { result, error } = await run(make, code, tools, options);
    assert.equal(error, undefined);
    assert.deepEqual(result instanceof Uint8Array ? new Uint8Array(result) : result, expected);
  },
});

/** A program that fails in these words. */
export const fails = (
  name: string,
  code: string,
  expected: string | RegExp,
  tools: Tools = {},
  options: object = {},
): Behaviour => ({
  name,
  async holds(make) {
    const { result, error } = await run(make, code, tools, options);
    assert.equal(result, undefined);
    if (typeof expected === "string") assert.equal(error, expected);
    else assert.match(error ?? "", expected);
  },
});

/** Names that are refused in these words, before anything runs. */
export const refuses = (name: string, providers: object[], connectors: object[], expected: string): Behaviour => ({
  name,
  async holds(make) {
    const answer = await make({}).execute("async () => 1", providers as any, { connectors } as any);
    assert.deepEqual(answer, { result: undefined, error: expected });
  },
});
