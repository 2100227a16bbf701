// Making code from strings, refused as in Workers.
//
// Owns: the refusing `eval` and the four refusing function constructors. The engine's own stay inside it,
// where module compilation needs them, and can't be reached from any object.
// Must never: leave a path from a worker's values to the engine's constructors.

{
  const refuse = () => {
    throw new EvalErrorConstructor("Code generation from strings disallowed for this context");
  };
  // Each constructor shares its prototype object with the one that it replaces, so that instanceof goes on working.
  const replace = (prototype, name, parent) => {
    const constructor = {
      [name]: function () {
        refuse();
      },
    }[name];
    ObjectDefineProperty(constructor, "prototype", { __proto__: null, value: prototype, writable: false });
    ObjectDefineProperty(constructor, "length", { __proto__: null, value: 1, configurable: true });
    if (parent !== undefined) ObjectSetPrototypeOf(constructor, parent);
    ObjectDefineProperty(prototype, "constructor", {
      __proto__: null,
      value: constructor,
      writable: parent === undefined,
      configurable: true,
    });
    return constructor;
  };
  const functionConstructor = replace(Function.prototype, "Function");
  replace(ReflectGetPrototypeOf(async function () {}), "AsyncFunction", functionConstructor);
  replace(ReflectGetPrototypeOf(function* () {}), "GeneratorFunction", functionConstructor);
  replace(ReflectGetPrototypeOf(async function* () {}), "AsyncGeneratorFunction", functionConstructor);
  const functions = {
    eval(_source) {
      refuse();
    },
  };
  const define = (name, value) =>
    ObjectDefineProperty(globalObject, name, { __proto__: null, value, writable: true, configurable: true });
  define("Function", functionConstructor);
  define("eval", functions.eval);
}
