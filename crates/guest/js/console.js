// makeConsole(emit, emitArguments): the `console` that user code gets.
//
// Owns: the console's methods, its format specifiers, and the state of groups, counters and timers (in
// closures, one set a console). `emit(level, text)` is given each finished message once, `emitArguments(args)` before it
// what it was made of.
// Must never: throw anything but what `emit` or the toString of a label throws, call user code beyond that and what
// `inspect` does (and the toJSON of a value for %j), or hand out `emit`.
// Whoever installs the globals calls it, once. Needs inspect.js.

const CONSOLE_DEBUG = 0;
const CONSOLE_INFO = 1;
const CONSOLE_LOG = 2;
const CONSOLE_WARN = 3;
const CONSOLE_ERROR = 4;
// Groups beyond this many are counted but indent no further: the margin is paid for on every line.
const CONSOLE_INDENTED_GROUPS_MAX = 20;
const CONSOLE_TABLE_COLUMNS_MAX = 100;
const CONSOLE_TABLE_CELL_LENGTH_MAX = 200;

// Whether somebody wants what is written as values, too.
let logArguments = false;

function setLogArguments(value) {
  logArguments = value;
}

function makeConsole(emit, emitArguments) {
  let margin = "";
  let groups = 0;
  const counts = new MapConstructor();
  const timers = new MapConstructor();

  // `compose(first, second)` returns the text, or undefined where there is nothing to say.
  function print(level, compose, first, second) {
    let text;
    try {
      text = compose(first, second);
      if (text === undefined) return;
      if (margin !== "") text = consoleIndent(text, margin);
    } catch {
      text = INSPECT_FAILED;
    }
    emit(level, text);
  }

  // The usual call is one string outside any group; it goes straight through.
  function printArguments(level, args) {
    if (logArguments && (args.length !== 1 || typeof args[0] !== "string")) emitArguments(args);
    if (args.length === 1 && margin === "") {
      const text = args[0];
      if (typeof text === "string" && text.length <= INSPECT_LENGTH_MAX) return void emit(level, text);
    }
    print(level, consoleFormat, args);
  }

  function setGroups(count) {
    groups = count;
    margin = StringPrototypeRepeat("  ", MathMin(count, CONSOLE_INDENTED_GROUPS_MAX));
  }

  function startGroup(args) {
    if (args.length > 0) printArguments(CONSOLE_LOG, args);
    setGroups(groups + 1);
  }

  function elapsed(label) {
    const start = MapPrototypeGet(timers, label);
    return start === undefined ? undefined : label + ": " + (DateNow() - start) + "ms";
  }

  // What `print` composes of labels; undefined, that is silence, where the other half of a pair speaks.
  function composeCount(value) {
    const label = consoleLabel(value);
    const count = (MapPrototypeGet(counts, label) ?? 0) + 1;
    MapPrototypeSet(counts, label, count);
    return label + ": " + count;
  }

  function composeCountReset(value) {
    const label = consoleLabel(value);
    return MapPrototypeDelete(counts, label) ? undefined : "Count for '" + label + "' does not exist";
  }

  function composeTime(value) {
    const label = consoleLabel(value);
    if (MapPrototypeHas(timers, label)) return "Timer '" + label + "' already exists";
    MapPrototypeSet(timers, label, DateNow());
    return undefined;
  }

  function composeTimeMissing(value) {
    const label = consoleLabel(value);
    return MapPrototypeHas(timers, label) ? undefined : "Timer '" + label + "' does not exist";
  }

  function composeTimeLog(value, data) {
    const text = elapsed(consoleLabel(value));
    if (text === undefined || data.length === 0) return text;
    return text + " " + consoleFormat(data);
  }

  function composeTimeEnd(value) {
    const label = consoleLabel(value);
    const text = elapsed(label);
    MapPrototypeDelete(timers, label);
    return text;
  }

  const console = {
    debug(...args) {
      printArguments(CONSOLE_DEBUG, args);
    },
    error(...args) {
      printArguments(CONSOLE_ERROR, args);
    },
    info(...args) {
      printArguments(CONSOLE_INFO, args);
    },
    log(...args) {
      printArguments(CONSOLE_LOG, args);
    },
    warn(...args) {
      printArguments(CONSOLE_WARN, args);
    },
    dir(value = undefined, options = undefined) {
      print(CONSOLE_LOG, consoleDir, value, options);
    },
    dirxml(...args) {
      printArguments(CONSOLE_LOG, args);
    },
    table(data = undefined, columns = undefined) {
      print(CONSOLE_LOG, consoleTable, data, columns);
    },
    trace(...args) {
      print(CONSOLE_LOG, consoleTrace, args);
    },
    assert(condition = undefined, ...args) {
      if (!condition) print(CONSOLE_ERROR, consoleAssertion, args);
    },
    group(...args) {
      startGroup(args);
    },
    groupCollapsed(...args) {
      startGroup(args);
    },
    // There is nothing to clear but the groups.
    clear() {
      setGroups(0);
    },
    groupEnd() {
      if (groups > 0) setGroups(groups - 1);
    },
    count(label = undefined) {
      print(CONSOLE_LOG, composeCount, toLabel(label));
    },
    countReset(label = undefined) {
      print(CONSOLE_WARN, composeCountReset, toLabel(label));
    },
    time(label = undefined) {
      print(CONSOLE_WARN, composeTime, toLabel(label));
    },
    timeLog(label = undefined, ...data) {
      const text = toLabel(label);
      print(CONSOLE_WARN, composeTimeMissing, text);
      print(CONSOLE_LOG, composeTimeLog, text, data);
    },
    timeEnd(label = undefined) {
      const text = toLabel(label);
      print(CONSOLE_WARN, composeTimeMissing, text);
      print(CONSOLE_LOG, composeTimeEnd, text);
    },
  };
  // As the standard has it: what is added to it is seen nowhere else.
  ObjectSetPrototypeOf(console, {});
  return ObjectDefineProperty(console, SymbolToStringTag, {
    __proto__: null,
    value: "console",
    configurable: true,
  });
}

function consoleIndent(text, margin) {
  return inspectTruncate(margin + inspectReplace(text, "\n", "\n" + margin), false);
}

// A label that is an object says itself what it is called, as the standard has it.
function toLabel(label) {
  return isObject(label) ? StringConstructor(label) : label;
}

function consoleLabel(value) {
  if (value === undefined) return "default";
  return typeof value === "string" ? inspectClip(value) : consoleString(value);
}

// An argument of console.log: strings as they are.
function consoleShow(value) {
  if (typeof value === "string") return value;
  return typeof value === "object" || typeof value === "function" ? inspect(value) : inspectPrimitive(value);
}

// The same for %s, which shows one level of an object.
function consoleString(value) {
  return typeof value === "string" ? value : inspect(value, { __proto__: null, depth: 0 });
}

function consoleFormat(args) {
  if (args.length === 0) return "";
  let text = "";
  let next = 0; // the argument to show next
  if (typeof args[0] === "string") {
    const format = args[0];
    next = 1;
    let start = 0;
    let at = args.length === 1 ? -1 : StringPrototypeIndexOf(format, "%");
    while (at !== -1 && at < format.length - 1 && text.length <= INSPECT_LENGTH_MAX) {
      const letter = format[at + 1];
      let replacement;
      if (letter === "%") replacement = "%";
      else if (next < args.length) replacement = consoleSpecifier(letter, args[next]);
      if (replacement !== undefined) {
        text += StringPrototypeSlice(format, start, at) + replacement;
        start = at + 2;
        if (letter !== "%") next++;
      }
      at = StringPrototypeIndexOf(format, "%", replacement === undefined ? at + 1 : at + 2);
    }
    text += StringPrototypeSlice(format, start);
  } else {
    text = consoleShow(args[0]);
    next = 1;
  }
  for (; next < args.length && text.length <= INSPECT_LENGTH_MAX; next++) {
    text += " " + consoleShow(args[next]);
  }
  return inspectTruncate(text, false);
}

// Undefined for a letter that is no specifier.
function consoleSpecifier(letter, value) {
  switch (letter) {
    case "s":
      return consoleString(value);
    case "d":
    case "i":
    case "f":
      return consoleNumber(letter, value);
    case "j":
      return consoleJson(value);
    case "o":
    case "O":
      return inspect(value);
    case "c":
      return "";
    default:
      return undefined;
  }
}

// Objects are NaN: to convert them would call their valueOf.
function consoleNumber(letter, value) {
  if (typeof value === "bigint" && letter !== "f") return inspectPrimitive(value);
  if (typeof value === "symbol" || typeof value === "function") return "NaN";
  if (typeof value === "object" && value !== null) return "NaN";
  if (letter === "i") return inspectPrimitive(NumberParseInt(value));
  return inspectPrimitive(letter === "f" ? NumberParseFloat(value) : +value);
}

function consoleJson(value) {
  try {
    return JSONStringify(value) ?? "undefined";
  } catch {
    return INSPECT_FAILED;
  }
}

function consoleDir(value, options) {
  let depth;
  if (typeof options === "object" && options !== null) depth = ownData(options, "depth");
  if (depth === null) depth = Infinity;
  if (typeof depth !== "number" || depth !== depth) depth = undefined;
  return inspect(value, { __proto__: null, depth });
}

function consoleAssertion(args) {
  const title = "Assertion failed";
  if (args.length === 0) return title;
  return title + (typeof args[0] === "string" ? ": " : " ") + consoleFormat(args);
}

function consoleTrace(args) {
  const stack = inspectStack(new ErrorConstructor());
  const at = StringPrototypeIndexOf(stack, "    at ");
  const title = args.length === 0 ? "Trace" : "Trace: " + consoleFormat(args);
  return at === -1 ? title : title + "\n" + StringPrototypeSlice(stack, at);
}

// A table as in Node: a row for each entry, a column for each property that any of them has. What has no
// entries is shown as by console.log.
function consoleTable(data, columns) {
  if (typeof data !== "object" || data === null) return consoleFormat([data]);
  const table = {
    __proto__: null,
    indexTitle: "(index)",
    titles: newList(),
    columns: new MapConstructor(), // from a title to its place in `titles`
    rows: newList(), // of { index, cells, value }
    hasValues: false,
    more: 0, // entries beyond the limit, which have no row
  };
  const kind = inspectPart(data, false).kind?.name;
  if (kind === "Map") consoleTableOfMap(table, data);
  else if (kind === "Set") consoleTableOfSet(table, data);
  else consoleTableOfProperties(table, data, ArrayIsArray(columns) ? consoleTitles(columns) : undefined);
  return consoleTableText(table);
}

function consoleTableOfMap(table, map) {
  table.indexTitle = "(iteration index)";
  table.more = MapPrototypeGetSize(map) - INSPECT_ENTRIES_MAX;
  const entries = MapPrototypeEntries(map);
  for (let i = 0; i < INSPECT_ENTRIES_MAX; i++) {
    const step = MapIteratorPrototypeNext(entries);
    if (step.done) return;
    const row = consoleTableRow(table, "" + i);
    consoleTableCell(table, row, "Key", consoleCell(step.value[0]));
    consoleTableValue(table, row, consoleCell(step.value[1]));
  }
}

function consoleTableOfSet(table, set) {
  table.indexTitle = "(iteration index)";
  table.more = SetPrototypeGetSize(set) - INSPECT_ENTRIES_MAX;
  const values = SetPrototypeValues(set);
  for (let i = 0; i < INSPECT_ENTRIES_MAX; i++) {
    const step = SetIteratorPrototypeNext(values);
    if (step.done) return;
    consoleTableValue(table, consoleTableRow(table, "" + i), consoleCell(step.value));
  }
}

function consoleTableOfProperties(table, data, titles) {
  const keys = consoleKeys(data);
  table.more = keys.more;
  for (let i = 0; i < keys.length; i++) {
    const row = consoleTableRow(table, consoleLine(keys[i]));
    const item = ownData(data, keys[i]);
    if (typeof item !== "object" || item === null) {
      consoleTableValue(table, row, consolePropertyCell(data, keys[i]));
      continue;
    }
    const itemKeys = titles ?? consoleKeys(item);
    for (let j = 0; j < itemKeys.length; j++) {
      consoleTableCell(table, row, consoleLine(itemKeys[j]), consolePropertyCell(item, itemKeys[j]));
    }
  }
}

function consoleTableRow(table, index) {
  const row = { __proto__: null, index, cells: newList(), value: "" };
  table.rows[table.rows.length] = row;
  return row;
}

function consoleTableCell(table, row, title, text) {
  let column = MapPrototypeGet(table.columns, title);
  if (column === undefined) {
    column = table.titles.length;
    if (column === CONSOLE_TABLE_COLUMNS_MAX) return;
    table.titles[column] = title;
    MapPrototypeSet(table.columns, title, column);
  }
  row.cells[column] = text;
}

function consoleTableValue(table, row, text) {
  row.value = text;
  table.hasValues = true;
}

// The names of the own enumerable properties, of arrays the indices only; `more` counts what is left out.
function consoleKeys(object) {
  const keys = newList();
  keys.more = 0;
  const isTypedArray = TypedArrayPrototypeGetToStringTag(object) !== undefined;
  if (isTypedArray || ArrayIsArray(object)) {
    const length = isTypedArray ? TypedArrayPrototypeGetLength(object) : inspectArrayLength(object);
    for (let i = 0; i < length && i < INSPECT_ENTRIES_MAX; i++) keys[i] = "" + i;
    keys.more = length - keys.length;
    return keys;
  }
  const all = ReflectOwnKeys(object);
  for (let i = 0; i < all.length; i++) {
    if (i === INSPECT_PROBES_MAX || keys.length === INSPECT_ENTRIES_MAX) {
      keys.more = all.length - i;
      break;
    }
    if (typeof all[i] !== "string") continue;
    if (ReflectGetOwnPropertyDescriptor(object, all[i])?.enumerable) keys[keys.length] = all[i];
  }
  return keys;
}

// The columns that the caller asks for.
function consoleTitles(columns) {
  const titles = newList();
  const length = inspectArrayLength(columns);
  for (let i = 0; i < length && i < INSPECT_ENTRIES_MAX; i++) titles[i] = consoleLabel(ownData(columns, i));
  return titles;
}

function consolePropertyCell(object, key) {
  const property = ReflectGetOwnPropertyDescriptor(object, key);
  if (property === undefined) return "";
  return ObjectHasOwn(property, "value") ? consoleCell(property.value) : "[Getter]";
}

function consoleCell(value) {
  return consoleLine(inspect(value, { __proto__: null, depth: 0, columns: Infinity }));
}

// As much of a text as a cell holds: one line of bounded length.
function consoleLine(text) {
  const end = StringPrototypeIndexOf(text, "\n");
  const length = MathMin(end === -1 ? text.length : end, CONSOLE_TABLE_CELL_LENGTH_MAX);
  return length === text.length ? text : StringPrototypeSlice(text, 0, length) + "…";
}

function consoleTableText(table) {
  // Column 0 is the index, the last one the values of rows that are no objects.
  const { rows, titles, hasValues } = table;
  const count = titles.length + (hasValues ? 2 : 1);
  const header = { __proto__: null, index: table.indexTitle, cells: titles, value: "Values" };
  const widths = newList();
  for (let column = 0; column < count; column++) {
    let width = consoleTableAt(header, column, titles.length).length;
    for (let i = 0; i < rows.length; i++) {
      width = MathMax(width, consoleTableAt(rows[i], column, titles.length).length);
    }
    widths[column] = width;
  }
  let text = consoleTableRule(widths, "┌", "┬", "┐\n");
  text += consoleTableLine(header, widths, titles.length);
  text += consoleTableRule(widths, "├", "┼", "┤\n");
  for (let i = 0; i < rows.length && text.length <= INSPECT_LENGTH_MAX; i++) {
    text += consoleTableLine(rows[i], widths, titles.length);
  }
  text += consoleTableRule(widths, "└", "┴", "┘");
  if (table.more > 0) text += "\n" + inspectMoreItems(table.more);
  return inspectTruncate(text, false);
}

function consoleTableAt(row, column, titles) {
  if (column === 0) return row.index;
  return (column <= titles ? row.cells[column - 1] : row.value) ?? "";
}

function consoleTableLine(row, widths, titles) {
  let line = "│";
  for (let i = 0; i < widths.length; i++) {
    line += " " + StringPrototypePadEnd(consoleTableAt(row, i, titles), widths[i]) + " │";
  }
  return line + "\n";
}

function consoleTableRule(widths, left, middle, right) {
  let rule = left;
  for (let i = 0; i < widths.length; i++) {
    rule += (i === 0 ? "" : middle) + StringPrototypeRepeat("─", widths[i] + 2);
  }
  return rule + right;
}
