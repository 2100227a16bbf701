// inspect(value, options): any value as text that people can read, in the manner of Node's util.inspect.
//
// Owns: the format, and the bounds that hold whatever the value is: nesting, entries of a collection,
// length of a string, length of the whole text.
// Must never: throw, invoke a getter, or call toString, toJSON, valueOf or any inspection hook of an
// object. Only the traps of a Proxy run user code, and what they throw ends as `[inspection failed]`.
// The console and the texts of uncaught exceptions come from here.
//
// How it works: `inspectObject` fills a `part` (name, brackets, entries) by the kind of the object, then
// `inspectLayout` puts the entries on one line or on many. `run` is the state of one inspection.
// It is one file because every kind shares that state and that layout.
// Not shown: own properties of collections longer than the entry limit, non-enumerable properties, the
// state of promises and the contents of weak collections.

const INSPECT_LENGTH_MAX = 65_536;
const INSPECT_ENTRIES_MAX = 100;
const INSPECT_STRING_LENGTH_MAX = 10_000;
// Levels of nesting below the value: the default, and the most that may be asked for (it is recursion).
const INSPECT_DEPTH_DEFAULT = 4;
const INSPECT_DEPTH_MAX = 32;
const INSPECT_COLUMNS = 80;
// Properties looked at to find the entries to show: bounds holes and non-enumerable properties.
const INSPECT_PROBES_MAX = 1_000;
// Proxies can make a prototype chain endless.
const INSPECT_PROTOTYPES_MAX = 64;
const INSPECT_BUFFER_BYTES_MAX = 50;
const INSPECT_CELL_LENGTH_MAX = 16;
const INSPECT_GRID_NONE = 0;
const INSPECT_GRID_LEFT = 1;
const INSPECT_GRID_RIGHT = 2;
const INSPECT_FAILED = "[inspection failed]";
const INSPECT_TRUNCATED = "… output truncated";

// Options, in an object with a null prototype: `depth`, `columns` (Infinity for one line).
function inspect(value, options) {
  const run = {
    __proto__: null,
    depth: MathMin(options?.depth ?? INSPECT_DEPTH_DEFAULT, INSPECT_DEPTH_MAX),
    columns: options?.columns ?? INSPECT_COLUMNS,
    room: INSPECT_LENGTH_MAX, // characters left
    truncated: false,
    open: newList(), // the objects being shown, outermost first
    circular: undefined, // Map from an object that contains itself to its number
  };
  let text;
  try {
    text = inspectValue(run, value, 0, 0);
  } catch {
    return INSPECT_FAILED;
  }
  return inspectTruncate(text, run.truncated);
}

function inspectTruncate(text, truncated) {
  if (text.length <= INSPECT_LENGTH_MAX) return truncated ? text + INSPECT_TRUNCATED : text;
  return StringPrototypeSlice(text, 0, INSPECT_LENGTH_MAX) + INSPECT_TRUNCATED;
}

// `indent` is where the lines of a broken value start, `column` where the value itself does.
function inspectValue(run, value, indent, column) {
  if (value !== null && (typeof value === "object" || typeof value === "function")) {
    return inspectObject(run, value, indent, column);
  }
  return inspectSpend(run, inspectPrimitive(value));
}

// Every piece of text is counted once, where it is made. What is counted ends up in the output in the
// order of making, so that to stop when the room is used up leaves a prefix of the full output.
function inspectSpend(run, text) {
  run.room -= text.length;
  return text;
}

function inspectIsFull(run) {
  if (run.room > 0) return false;
  run.truncated = true;
  return true;
}

function inspectPrimitive(value) {
  switch (typeof value) {
    case "string":
      return inspectString(value);
    case "number":
      return ObjectIs(value, -0) ? "-0" : "" + value;
    case "bigint":
      return inspectClip("" + value) + "n";
    case "symbol":
      return inspectClip(SymbolPrototypeToString(value));
    default:
      return "" + value;
  }
}

function inspectString(string) {
  const more = string.length - INSPECT_STRING_LENGTH_MAX;
  if (more <= 0) return inspectQuote(string);
  return inspectQuote(StringPrototypeSlice(string, 0, INSPECT_STRING_LENGTH_MAX)) + inspectMoreCharacters(more);
}

function inspectClip(text) {
  const more = text.length - INSPECT_STRING_LENGTH_MAX;
  if (more <= 0) return text;
  return StringPrototypeSlice(text, 0, INSPECT_STRING_LENGTH_MAX) + inspectMoreCharacters(more);
}

function inspectMoreCharacters(count) {
  return "... " + inspectCount(count, "more character");
}

function inspectMoreItems(count) {
  return "... " + inspectCount(count, "more item");
}

function inspectCount(count, noun) {
  return count + " " + noun + (count === 1 ? "" : "s");
}

// Single quotes unless the string has some. JSON.stringify escapes; on a string it calls no toJSON.
function inspectQuote(string) {
  const json = JSONStringify(string);
  if (StringPrototypeIndexOf(string, "'") !== -1) return json;
  if (json.length === string.length + 2) return "'" + string + "'"; // nothing was escaped
  return "'" + inspectReplace(StringPrototypeSlice(json, 1, -1), '\\"', '"') + "'";
}

function inspectReplace(text, from, to) {
  let at = StringPrototypeIndexOf(text, from);
  if (at === -1) return text;
  let result = "";
  let start = 0;
  while (at !== -1) {
    result += StringPrototypeSlice(text, start, at) + to;
    start = at + from.length;
    at = StringPrototypeIndexOf(text, from, start);
  }
  return result + StringPrototypeSlice(text, start);
}

// Finds what an identifier can't have, so that the usual key matches nothing and costs no match array.
const inspectNotIdentifier = /^[^A-Za-z_$]|[^\w$]/;

function inspectKey(key) {
  if (typeof key === "symbol") return "[" + inspectClip(SymbolPrototypeToString(key)) + "]";
  if (key === "" || key.length > INSPECT_STRING_LENGTH_MAX) return inspectString(key);
  return RegExpPrototypeExec(inspectNotIdentifier, key) === null ? key : inspectQuote(key);
}

function inspectObject(run, value, indent, column) {
  const open = run.open;
  const level = open.length;
  for (let i = 0; i < level; i++) {
    if (open[i] === value) return inspectSpend(run, "[Circular *" + inspectCircularNumber(run, value) + "]");
  }
  open[level] = value;
  let text;
  try {
    const part = inspectPart(value, level > run.depth);
    inspectFill(run, value, part, indent);
    text = inspectLayout(run, part, indent, column);
  } catch {
    text = inspectSpend(run, INSPECT_FAILED);
  }
  open.length = level;
  if (run.circular === undefined || !MapPrototypeHas(run.circular, value)) return text;
  return "<ref *" + MapPrototypeGet(run.circular, value) + "> " + text;
}

function inspectCircularNumber(run, value) {
  run.circular ??= new MapConstructor();
  const known = MapPrototypeGet(run.circular, value);
  if (known !== undefined) return known;
  const number = MapPrototypeGetSize(run.circular) + 1;
  MapPrototypeSet(run.circular, value, number);
  return number;
}

// The known kinds of objects: Map from a prototype to { name, read, write }. `read(value)` returns what
// `write(run, value, part, indent, content)` shows; undefined or a throw means that the object only
// inherits from the prototype. A kind without `read` is shown by its properties.
const inspectKinds = new MapConstructor();

function inspectKind(prototype, name, read, write) {
  MapPrototypeSet(inspectKinds, prototype, { __proto__: null, name, read, write });
}

// What there is to know from the prototypes: the nearest constructor's name, the tag, the kind. From a
// known prototype on, names come from the table and not from properties that anybody can replace.
function inspectPart(value, tooDeep) {
  let name = null;
  let tag = inspectTag(value);
  let kind;
  let prototype = ReflectGetPrototypeOf(value);
  for (let i = 0; prototype !== null && i < INSPECT_PROTOTYPES_MAX; i++) {
    kind = MapPrototypeGet(inspectKinds, prototype);
    if (kind !== undefined) break;
    name ??= inspectConstructorName(prototype);
    if (tag === "") tag = inspectTag(prototype);
    prototype = ReflectGetPrototypeOf(prototype);
  }
  name ??= kind === undefined ? null : kind.name;
  return {
    __proto__: null,
    kind,
    name,
    tag: tag === name ? "" : tag,
    tooDeep,
    hidden: false, // it has entries, but lies too deep to show them
    base: "", // stands for the object; entries only follow it
    prefix: "", // stands before the brackets
    opening: "{",
    closing: "}",
    entries: newList(),
    grid: INSPECT_GRID_NONE, // how short entries are put in columns, one of INSPECT_GRID_*
    hasRest: false, // the last entry tells how many are left out
  };
}

function inspectConstructorName(prototype) {
  const constructor = ownData(prototype, "constructor");
  const name = typeof constructor === "function" ? inspectFunctionName(constructor) : "";
  return name === "" ? null : name;
}

function inspectFunctionName(value) {
  const name = ownData(value, "name");
  return typeof name === "string" ? inspectClip(name) : "";
}

function inspectTag(object) {
  const tag = ownData(object, SymbolToStringTag);
  return typeof tag === "string" ? inspectClip(tag) : "";
}

function inspectFill(run, value, part, indent) {
  if (typeof value === "function") return inspectFunction(run, value, part, indent);
  if (ArrayIsArray(value)) return inspectArray(run, value, part, indent);
  const kind = part.kind;
  if (kind?.read !== undefined) {
    let content;
    try {
      content = kind.read(value);
    } catch {
      // Not of the kind.
    }
    if (content !== undefined) return kind.write(run, value, part, indent, content);
  }
  part.prefix = inspectPrefix(part, "Object", "");
  inspectFields(run, value, part, indent);
}

function inspectPrefix(part, plain, size) {
  const tag = part.tag === "" ? "" : "[" + part.tag + "] ";
  if (part.name === null) return "[" + plain + size + ": null prototype] " + tag;
  return part.name === plain && tag === "" ? "" : part.name + size + " " + tag;
}

// For kinds that always show their name.
function inspectNamed(part, size) {
  part.prefix = part.name + size + (part.tag === "" ? " " : " [" + part.tag + "] ");
}

function inspectBase(part, text) {
  part.base = part.name === part.kind.name ? text : part.name + " " + text;
}

// True where the entries are not to be looked at; the object is then shown by its name.
function inspectIsHidden(part) {
  if (part.tooDeep) part.hidden = true;
  return part.tooDeep;
}

function inspectAdd(part, text) {
  part.entries[part.entries.length] = text;
}

function inspectAddRest(part, count) {
  inspectAdd(part, inspectMoreItems(count));
  part.hasRest = true;
}

function inspectIsIndex(key) {
  return typeof key === "string" && "" + (key >>> 0) === key;
}

// The own enumerable properties, but for the keys that `skip` says are shown already.
function inspectFields(run, value, part, indent, skip) {
  const keys = ReflectOwnKeys(value);
  let shown = 0;
  for (let i = 0; i < keys.length; i++) {
    const key = keys[i];
    if (skip?.(key)) continue;
    if (shown === INSPECT_ENTRIES_MAX || i === INSPECT_PROBES_MAX) {
      return inspectAddRest(part, keys.length - i);
    }
    const property = ReflectGetOwnPropertyDescriptor(value, key);
    if (property === undefined || !property.enumerable) continue;
    if (inspectIsHidden(part) || inspectIsFull(run)) return;
    inspectField(run, part, indent, inspectKey(key), property);
    shown++;
  }
}

function inspectField(run, part, indent, name, property) {
  inspectSpend(run, name);
  inspectAdd(part, name + ": " + inspectProperty(run, property, indent + 2, indent + name.length + 4));
}

function inspectProperty(run, property, indent, column) {
  if (ObjectHasOwn(property, "value")) return inspectValue(run, property.value, indent, column);
  if (property.set === undefined) return inspectSpend(run, "[Getter]");
  return inspectSpend(run, property.get === undefined ? "[Setter]" : "[Getter/Setter]");
}

function inspectArray(run, value, part, indent) {
  const length = inspectArrayLength(value);
  part.prefix = inspectPrefix(part, "Array", "(" + length + ")");
  part.opening = "[";
  part.closing = "]";
  part.grid = INSPECT_GRID_LEFT;
  if (length > 0 && inspectIsHidden(part)) return;
  inspectItems(run, value, part, indent, length);
  if (length <= INSPECT_ENTRIES_MAX) inspectFields(run, value, part, indent, inspectIsIndex);
}

function inspectArrayLength(array) {
  const length = ownData(array, "length");
  return typeof length === "number" ? length : 0; // a trap can say anything
}

function inspectItems(run, value, part, indent, length) {
  const entries = part.entries;
  let holes = 0;
  let numbers = 0;
  let i = 0;
  for (; i < length && i < INSPECT_PROBES_MAX && entries.length < INSPECT_ENTRIES_MAX; i++) {
    const property = ReflectGetOwnPropertyDescriptor(value, i);
    if (property === undefined) {
      holes++;
      continue;
    }
    if (inspectIsFull(run)) return;
    if (holes > 0) inspectAdd(part, inspectHoles(holes));
    holes = 0;
    if (ObjectHasOwn(property, "value") && typeof property.value === "number") numbers++;
    inspectAdd(part, inspectProperty(run, property, indent + 2, indent + 2));
  }
  if (holes > 0) inspectAdd(part, inspectHoles(holes));
  if (numbers === entries.length) part.grid = INSPECT_GRID_RIGHT;
  if (i < length) inspectAddRest(part, length - i);
}

function inspectHoles(count) {
  return "<" + inspectCount(count, "empty item") + ">";
}

function inspectFunction(run, value, part, indent) {
  const name = inspectFunctionName(value);
  if (inspectIsClass(value)) {
    const parent = ReflectGetPrototypeOf(value);
    const parentName = typeof parent === "function" ? inspectFunctionName(parent) : "";
    const heritage = parentName === "" ? "" : " extends " + parentName;
    part.base = "[class " + (name === "" ? "(anonymous)" : name) + heritage + "]";
  } else {
    const kind = part.kind === undefined ? "Function (null prototype)" : part.kind.name;
    part.base = "[" + kind + (name === "" ? " (anonymous)" : ": " + name) + "]";
  }
  inspectFields(run, value, part, indent);
}

// Classes and built-in constructors alone have a `prototype` that can't be replaced; only then is it
// worth making a string of the source.
function inspectIsClass(value) {
  const property = ReflectGetOwnPropertyDescriptor(value, "prototype");
  if (property === undefined || !ObjectHasOwn(property, "value") || property.writable) return false;
  return StringPrototypeStartsWith(FunctionPrototypeToString(value), "class");
}

function inspectMap(run, value, part, indent, size) {
  inspectNamed(part, "(" + size + ")");
  if (size > 0 && inspectIsHidden(part)) return;
  const entries = MapPrototypeEntries(value);
  for (let i = 0; i < size; i++) {
    if (i === INSPECT_ENTRIES_MAX) return inspectAddRest(part, size - i);
    const step = MapIteratorPrototypeNext(entries);
    if (step.done || inspectIsFull(run)) break;
    const key = inspectValue(run, step.value[0], indent + 2, indent + 2);
    inspectAdd(part, key + " => " + inspectValue(run, step.value[1], indent + 2, indent + key.length + 6));
  }
  inspectFields(run, value, part, indent);
}

function inspectSet(run, value, part, indent, size) {
  inspectNamed(part, "(" + size + ")");
  if (size > 0 && inspectIsHidden(part)) return;
  const values = SetPrototypeValues(value);
  for (let i = 0; i < size; i++) {
    if (i === INSPECT_ENTRIES_MAX) return inspectAddRest(part, size - i);
    const step = SetIteratorPrototypeNext(values);
    if (step.done || inspectIsFull(run)) break;
    inspectAdd(part, inspectValue(run, step.value, indent + 2, indent + 2));
  }
  inspectFields(run, value, part, indent);
}

// Promises and weak collections: nothing inside can be shown without changing it.
function inspectOpaque(run, value, part, indent) {
  inspectNamed(part, "");
  inspectFields(run, value, part, indent);
  if (part.entries.length === 0) part.base = part.prefix + "{…}";
}

function inspectDate(run, value, part, indent, time) {
  inspectBase(part, time === time ? DatePrototypeToISOString(value) : "Invalid Date");
  inspectFields(run, value, part, indent);
}

function inspectRegExp(run, value, part, indent, source) {
  const flags =
    (RegExpPrototypeGetHasIndices(value) ? "d" : "") +
    (RegExpPrototypeGetGlobal(value) ? "g" : "") +
    (RegExpPrototypeGetIgnoreCase(value) ? "i" : "") +
    (RegExpPrototypeGetMultiline(value) ? "m" : "") +
    (RegExpPrototypeGetDotAll(value) ? "s" : "") +
    (RegExpPrototypeGetUnicode(value) ? "u" : "") +
    (RegExpPrototypeGetUnicodeSets(value) ? "v" : "") +
    (RegExpPrototypeGetSticky(value) ? "y" : "");
  inspectBase(part, "/" + inspectClip(source) + "/" + flags);
  inspectFields(run, value, part, indent);
}

function inspectBoxed(run, value, part, indent, primitive) {
  inspectBase(part, "[" + part.kind.name + ": " + inspectPrimitive(primitive) + "]");
  const isString = typeof primitive === "string";
  if (isString && primitive.length > INSPECT_ENTRIES_MAX) return;
  inspectFields(run, value, part, indent, isString ? inspectIsIndex : undefined);
}

function inspectTypedArray(run, value, part, indent) {
  const length = TypedArrayPrototypeGetLength(value);
  inspectNamed(part, "(" + length + ")");
  part.opening = "[";
  part.closing = "]";
  part.grid = INSPECT_GRID_RIGHT;
  if (length > 0 && inspectIsHidden(part)) return;
  const shown = MathMin(length, INSPECT_ENTRIES_MAX);
  for (let i = 0; i < shown; i++) {
    if (inspectIsFull(run)) return;
    inspectAdd(part, inspectSpend(run, inspectPrimitive(value[i])));
  }
  if (shown < length) return inspectAddRest(part, length - shown);
  inspectFields(run, value, part, indent, inspectIsIndex);
}

function inspectArrayBuffer(run, value, part, indent, size) {
  inspectNamed(part, "");
  if (inspectIsHidden(part)) return;
  let text = "";
  if (size > 0) {
    const digits = "0123456789abcdef";
    const shown = MathMin(size, INSPECT_BUFFER_BYTES_MAX);
    const bytes = new Uint8ArrayConstructor(value, 0, shown);
    for (let i = 0; i < shown; i++) text += (i === 0 ? "" : " ") + digits[bytes[i] >> 4] + digits[bytes[i] & 15];
    if (shown < size) text += " ... " + inspectCount(size - shown, "more byte");
  }
  inspectAdd(part, inspectSpend(run, "[Uint8Contents]: <" + text + ">"));
  inspectAdd(part, "byteLength: " + size);
  inspectFields(run, value, part, indent);
}

function inspectDataView(run, value, part, indent, size) {
  inspectNamed(part, "");
  if (inspectIsHidden(part)) return;
  inspectAdd(part, "byteLength: " + size);
  inspectAdd(part, "byteOffset: " + DataViewPrototypeGetByteOffset(value));
  const buffer = { __proto__: null, value: DataViewPrototypeGetBuffer(value) };
  inspectField(run, part, indent, "buffer", buffer);
  inspectFields(run, value, part, indent);
}

// For kinds of other files whose state is not in properties: `read` returns the fields to show, in an
// object with a null prototype.
function inspectView(run, value, part, indent, fields) {
  inspectNamed(part, "");
  inspectFields(run, fields, part, indent);
}

// `header` has the name and message of the error.
function inspectError(run, value, part, indent, header) {
  const text = inspectErrorText(value, part, header);
  part.base = indent === 0 ? text : inspectReplace(text, "\n", "\n" + StringPrototypeRepeat(" ", indent));
  inspectFields(run, value, part, indent, inspectIsErrorKey);
  inspectHiddenField(run, value, part, indent, "cause");
  inspectHiddenField(run, value, part, indent, "errors");
}

function inspectIsErrorKey(key) {
  return key === "name" || key === "message" || key === "stack";
}

// The stack is only frames in QuickJS, headed by name and message in V8, and anything where the user set
// it. Without frames the text stands in brackets.
function inspectErrorText(error, part, header) {
  let name = typeof header.name === "string" ? header.name : "Error";
  if (name === "Error") name = part.name;
  const message = typeof header.message === "string" ? header.message : "";
  const title = name === "" || message === "" ? name + message : name + ": " + message;
  const stack = inspectStack(error);
  const frames = StringPrototypeIndexOf(stack, "    at ");
  if (frames === -1) return "[" + inspectClip(stack === "" ? title : stack) + "]";
  const isHeaded = frames > 0 && StringPrototypeIndexOf(stack, message) !== -1;
  return inspectClip(isHeaded ? stack : title + "\n" + stack);
}

function inspectStack(error) {
  let stack = ownData(error, "stack");
  if (stack === undefined) stack = stackFrames(error);
  if (typeof stack !== "string") return "";
  // Some stacks are properties that the engine has set.
  if (StringPrototypeIndexOf(stack, "(coracle:prelude:") !== -1) stack = host.cleanStack(stack, newList());
  return stack[stack.length - 1] === "\n" ? StringPrototypeSlice(stack, 0, -1) : stack;
}

// A property that errors have without showing it.
function inspectHiddenField(run, value, part, indent, key) {
  const property = ReflectGetOwnPropertyDescriptor(value, key);
  if (property === undefined || property.enumerable) return;
  if (inspectIsHidden(part) || inspectIsFull(run)) return;
  inspectField(run, part, indent, "[" + key + "]", property);
}

// The value that `object.key` would have if it is a data property, own or inherited.
function inspectInherited(object, key) {
  for (let i = 0; object !== null && i < INSPECT_PROTOTYPES_MAX; i++) {
    const property = ReflectGetOwnPropertyDescriptor(object, key);
    if (property !== undefined) return ObjectHasOwn(property, "value") ? property.value : undefined;
    object = ReflectGetPrototypeOf(object);
  }
  return undefined;
}

function inspectLayout(run, part, indent, column) {
  const { base, entries } = part;
  if (part.hidden) {
    return inspectSpend(run, base === "" ? "[" + (part.name ?? "Object: null prototype") + "]" : base);
  }
  if (entries.length === 0) return inspectSpend(run, base === "" ? part.prefix + part.opening + part.closing : base);
  const head = base === "" ? part.prefix + part.opening : base + " " + part.opening;
  inspectSpend(run, head);
  // The head, the spaces within the brackets, the closing one and, where it is nested, a comma.
  const line = inspectLine(entries, run.columns - column - head.length - 3 - (indent > 0 ? 1 : 0));
  if (line !== undefined && StringPrototypeIndexOf(head, "\n") === -1) {
    return head + " " + line + " " + part.closing;
  }
  const lines = part.grid === INSPECT_GRID_NONE ? entries : inspectGrid(part, run.columns - indent - 2);
  const margin = "\n" + StringPrototypeRepeat(" ", indent);
  return head + margin + "  " + ArrayPrototypeJoin(lines, "," + margin + "  ") + margin + part.closing;
}

// The entries on one line, or undefined where that is wider than `columns` or some have lines themselves.
function inspectLine(entries, columns) {
  let length = -2;
  for (let i = 0; i < entries.length; i++) {
    length += entries[i].length + 2;
    if (length > columns) return undefined;
  }
  const line = ArrayPrototypeJoin(entries, ", ");
  return StringPrototypeIndexOf(line, "\n") === -1 ? line : undefined;
}

// Short entries of arrays, as many on a line as fit, in columns. Others come back as they are.
function inspectGrid({ entries, grid, hasRest }, columns) {
  const count = hasRest ? entries.length - 1 : entries.length; // the rest gets a line of its own
  let width = 0;
  for (let i = 0; i < count; i++) {
    if (entries[i].length > INSPECT_CELL_LENGTH_MAX) return entries;
    width = MathMax(width, entries[i].length);
  }
  const perLine = MathFloor(columns / (width + 2));
  if (perLine < 2) return entries;
  const lines = newList();
  let line = "";
  for (let i = 0; i < count; i++) {
    const isLineEnd = i === count - 1 || (i + 1) % perLine === 0;
    const cell = isLineEnd ? entries[i] : entries[i] + ", ";
    const cellWidth = isLineEnd ? width : width + 2;
    if (grid === INSPECT_GRID_RIGHT) line += StringPrototypePadStart(cell, cellWidth);
    else line += isLineEnd ? cell : StringPrototypePadEnd(cell, cellWidth);
    if (!isLineEnd) continue;
    lines[lines.length] = line;
    line = "";
  }
  if (hasRest) lines[lines.length] = entries[count];
  return lines;
}

{
  const always = () => true;
  const errorHeader = (error) => ({
    __proto__: null,
    name: inspectInherited(error, "name"),
    message: inspectInherited(error, "message"),
  });
  inspectKind(ObjectPrototype, "Object");
  inspectKind(Function.prototype, "Function");
  inspectKind(ReflectGetPrototypeOf(async () => {}), "AsyncFunction");
  inspectKind(ReflectGetPrototypeOf(function* () {}), "GeneratorFunction");
  inspectKind(ReflectGetPrototypeOf(async function* () {}), "AsyncGeneratorFunction");
  inspectKind(Array.prototype, "Array");
  inspectKind(Map.prototype, "Map", MapPrototypeGetSize, inspectMap);
  inspectKind(Set.prototype, "Set", SetPrototypeGetSize, inspectSet);
  inspectKind(WeakMap.prototype, "WeakMap", always, inspectOpaque);
  inspectKind(WeakSet.prototype, "WeakSet", always, inspectOpaque);
  inspectKind(WeakRef.prototype, "WeakRef", always, inspectOpaque);
  inspectKind(Promise.prototype, "Promise", always, inspectOpaque);
  inspectKind(Date.prototype, "Date", DatePrototypeGetTime, inspectDate);
  inspectKind(RegExp.prototype, "RegExp", RegExpPrototypeGetSource, inspectRegExp);
  inspectKind(Error.prototype, "Error", errorHeader, inspectError);
  inspectKind(String.prototype, "String", StringPrototypeValueOf, inspectBoxed);
  inspectKind(Number.prototype, "Number", NumberPrototypeValueOf, inspectBoxed);
  inspectKind(Boolean.prototype, "Boolean", BooleanPrototypeValueOf, inspectBoxed);
  inspectKind(BigInt.prototype, "BigInt", BigIntPrototypeValueOf, inspectBoxed);
  inspectKind(Symbol.prototype, "Symbol", SymbolPrototypeValueOf, inspectBoxed);
  const typedArrays = [
    "BigInt64Array", "BigUint64Array", "Float16Array", "Float32Array", "Float64Array", "Int8Array",
    "Int16Array", "Int32Array", "Uint8Array", "Uint8ClampedArray", "Uint16Array", "Uint32Array",
  ];
  for (let i = 0; i < typedArrays.length; i++) {
    const prototype = globalThis[typedArrays[i]]?.prototype; // older engines have no Float16Array
    if (prototype === undefined) continue;
    inspectKind(prototype, typedArrays[i], TypedArrayPrototypeGetToStringTag, inspectTypedArray);
  }
  inspectKind(ArrayBuffer.prototype, "ArrayBuffer", ArrayBufferPrototypeGetByteLength, inspectArrayBuffer);
  inspectKind(DataView.prototype, "DataView", DataViewPrototypeGetByteLength, inspectDataView);
  const getName = uncurryGetter(DOMException.prototype, "name");
  const getMessage = uncurryGetter(DOMException.prototype, "message");
  const read = (error) => ({ __proto__: null, name: getName(error), message: getMessage(error) });
  inspectKind(DOMException.prototype, "DOMException", read, inspectError);
}
