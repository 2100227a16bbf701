// CommonJS modules: `module`, `exports` and `require`, as in Node.
//
// Owns: which modules have been evaluated. One that threw is forgotten, so that the next `require` tries again.
// `host.compileCommonJs(name)` compiles a module's source; `host.require(importer, specifier)` finds modules of any
// kind, and calls requireCommonJs for those of this one.

const commonJsModules = ObjectCreate(null);

function requireCommonJs(name) {
  const known = commonJsModules[name];
  // Also for a module that is still being evaluated: a cycle sees what is exported so far.
  if (known !== undefined) return known.exports;
  const evaluate = host.compileCommonJs(name);
  const exports = {};
  const module = { exports };
  const args = newList();
  args[0] = exports;
  args[1] = makeRequire(name);
  args[2] = module;
  args[3] = "/" + name;
  args[4] = "/" + folderOf(name);
  commonJsModules[name] = module;
  try {
    ReflectApply(evaluate, exports, args);
  } catch (error) {
    delete commonJsModules[name];
    throw error;
  }
  return module.exports;
}

function makeRequire(importer) {
  const functions = {
    require(specifier) {
      if (typeof specifier !== "string") {
        throw new TypeErrorConstructor("require: the name of a module is a string, not " + inspect(specifier) + ".");
      }
      return host.require(importer, specifier);
    },
  };
  return functions.require;
}

function folderOf(name) {
  let end = name.length;
  while (end > 0 && name[end - 1] !== "/") end--;
  return end === 0 ? "" : StringPrototypeSlice(name, 0, end - 1);
}
