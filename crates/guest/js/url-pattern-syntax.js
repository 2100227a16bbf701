// The patterns of a URLPattern's components (URL Pattern standard): reading one into its parts, and making of these a
// regular expression, or the pattern again in its plainest form.
//
// Owns: the grammar. A part is { type, name, prefix, value, suffix, modifier }.

const TOKEN = {
  __proto__: null,
  open: "{",
  close: "}",
  regexp: "regexp",
  name: "name",
  char: "char",
  escaped: "escaped",
  modifier: "modifier",
  asterisk: "*",
  end: "end",
  invalid: "invalid",
};
const FIXED = "fixed";
const REGEXP = "regexp";
const SEGMENT = "segment";
const FULL = "full";

const IDENTIFIER_START = /^[$_\p{ID_Start}]$/u;
const IDENTIFIER_PART = /^[$_\u200c\u200d\p{ID_Continue}]$/u;
const TO_BE_ESCAPED_IN_REGEXP = ".+*?^${}()[]|/\\";
// Two of these one after the other mean something in a class of a regular expression of kind "v", and QuickJS takes them for
// that everywhere.
const DOUBLED_IN_REGEXP = "&!#%,:;<=>@`~";
const TO_BE_ESCAPED_IN_PATTERN = "+*?:{}()\\";

function codePointAt(text, index) {
  const unit = StringPrototypeCharCodeAt(text, index);
  const isPair = unit >= 0xd800 && unit <= 0xdbff && index + 1 < text.length;
  return StringPrototypeSlice(text, index, isPair ? index + 2 : index + 1);
}

function isOf(set, character) {
  return StringPrototypeIndexOf(set, character) !== -1;
}

function isNamePart(character, isFirst) {
  return RegExpPrototypeExec(isFirst ? IDENTIFIER_START : IDENTIFIER_PART, character) !== null;
}

function escapeBy(set, text) {
  let escaped = "";
  for (let index = 0; index < text.length; index++) escaped += isOf(set, text[index]) ? "\\" + text[index] : text[index];
  return escaped;
}

function escapeForRegexp(text) {
  let escaped = "";
  for (let index = 0; index < text.length; index++) {
    const character = text[index];
    if (isOf(DOUBLED_IN_REGEXP, character)) escaped += "\\x" + NumberPrototypeToString(StringPrototypeCharCodeAt(text, index), 16);
    else escaped += isOf(TO_BE_ESCAPED_IN_REGEXP, character) ? "\\" + character : character;
  }
  return escaped;
}

// The tokens { type, index, value } of a pattern, the last of which is the end. What is none is one of its own where
// `isLenient`, else it throws.
function tokensOf(input, isLenient) {
  const tokens = newList();
  let index = 0;
  const add = (type, next, valueStart, valueEnd) => {
    tokens[tokens.length] = { __proto__: null, type, index, value: StringPrototypeSlice(input, valueStart, valueEnd) };
    index = next;
  };
  const invalid = (next, valueStart, what) => {
    if (!isLenient) throw new TypeErrorConstructor("URLPattern: " + what + ", at index " + index + ".");
    add(TOKEN.invalid, next, valueStart, next);
  };
  while (index < input.length) {
    const character = codePointAt(input, index);
    const after = index + character.length;
    if (character === "*") add(TOKEN.asterisk, after, index, after);
    else if (character === "+" || character === "?") add(TOKEN.modifier, after, index, after);
    else if (character === "{") add(TOKEN.open, after, index, after);
    else if (character === "}") add(TOKEN.close, after, index, after);
    else if (character === "\\") {
      if (after === input.length) {
        invalid(after, index, "a backslash escapes nothing");
      } else {
        const end = after + codePointAt(input, after).length;
        add(TOKEN.escaped, end, after, end);
      }
    } else if (character === ":") {
      let end = after;
      while (end < input.length) {
        const next = codePointAt(input, end);
        if (!isNamePart(next, end === after)) break;
        end += next.length;
      }
      if (end === after) invalid(end, index, "a colon without a name");
      else add(TOKEN.name, end, after, end);
    } else if (character === "(") {
      const end = groupEnd(input, after);
      if (end === undefined) invalid(after, index, "a regular expression that is none");
      else add(TOKEN.regexp, end, after, end - 1);
    } else {
      add(TOKEN.char, after, index, after);
    }
  }
  add(TOKEN.end, index, index, index);
  return tokens;
}

// Where the group ends that begins at `start`, behind its parenthesis. Undefined where it is none that may stand here.
function groupEnd(input, start) {
  let depth = 1;
  let index = start;
  while (index < input.length) {
    const character = codePointAt(input, index);
    if (StringPrototypeCharCodeAt(character, 0) > 127 || (index === start && character === "?")) return undefined;
    index += 1;
    if (character === "\\") {
      if (index === input.length || StringPrototypeCharCodeAt(input, index) > 127) return undefined;
      index++;
    } else if (character === ")") {
      depth--;
      if (depth === 0) return index === start + 1 ? undefined : index;
    } else if (character === "(") {
      depth++;
      // Capturing groups inside would count among the results.
      if (index === input.length || input[index] !== "?") return undefined;
    }
  }
  return undefined;
}

// The parts of a pattern. `options` is { delimiter, prefix }, characters or nothing; `encode` puts fixed text into the form
// that it has in a URL.
function partsOf(input, options, encode) {
  const tokens = tokensOf(input, false);
  const segment = segmentWildcard(options);
  const parts = newList();
  let at = 0;
  let pending = "";
  let nextName = 0;
  const take = (type) => (tokens[at].type === type ? tokens[at++] : undefined);
  const takeCharacter = () => take(TOKEN.char) ?? take(TOKEN.escaped);
  const takeText = () => {
    let text = "";
    for (let token = takeCharacter(); token !== undefined; token = takeCharacter()) text += token.value;
    return text;
  };
  const takeRequired = (type) => {
    const token = take(type);
    if (token === undefined) throw new TypeErrorConstructor("URLPattern: index " + tokens[at].index + " of " + input + " has something else than what has to stand there.");
  };
  const takeModifier = () => (take(TOKEN.modifier) ?? take(TOKEN.asterisk))?.value ?? "";
  const takeWildcardOrRegexp = (name) => {
    const token = take(TOKEN.regexp);
    return token === undefined && name === undefined ? take(TOKEN.asterisk) : token;
  };
  const addPart = (type, name, prefix, value, suffix, modifier) => {
    parts[parts.length] = { __proto__: null, type, name, prefix, value, suffix, modifier };
  };
  const addPending = () => {
    if (pending === "") return;
    addPart(FIXED, "", "", encode(pending), "", "");
    pending = "";
  };
  const add = (prefix, name, token, suffix, modifier) => {
    if (name === undefined && token === undefined && modifier === "") {
      pending += prefix;
      return;
    }
    addPending();
    if (name === undefined && token === undefined) {
      if (prefix !== "") addPart(FIXED, "", "", encode(prefix), "", modifier);
      return;
    }
    let type = REGEXP;
    let value = token === undefined ? segment : token.type === TOKEN.asterisk ? ".*" : token.value;
    if (value === segment) {
      type = SEGMENT;
      value = "";
    } else if (value === ".*") {
      type = FULL;
      value = "";
    }
    const given = name?.value ?? NumberPrototypeToString(nextName++);
    for (let index = 0; index < parts.length; index++) {
      if (parts[index].name === given) throw new TypeErrorConstructor("URLPattern: two groups of " + input + " have the name " + given + ".");
    }
    addPart(type, given, encode(prefix), value, encode(suffix), modifier);
  };
  while (at < tokens.length) {
    const character = take(TOKEN.char);
    const name = take(TOKEN.name);
    const token = takeWildcardOrRegexp(name);
    if (name !== undefined || token !== undefined) {
      let prefix = character?.value ?? "";
      if (prefix !== "" && prefix !== options.prefix) {
        pending += prefix;
        prefix = "";
      }
      addPending();
      add(prefix, name, token, "", takeModifier());
      continue;
    }
    const fixed = character ?? take(TOKEN.escaped);
    if (fixed !== undefined) {
      pending += fixed.value;
      continue;
    }
    if (take(TOKEN.open) !== undefined) {
      const prefix = takeText();
      const groupName = take(TOKEN.name);
      const groupToken = takeWildcardOrRegexp(groupName);
      const suffix = takeText();
      takeRequired(TOKEN.close);
      add(prefix, groupName, groupToken, suffix, takeModifier());
      continue;
    }
    addPending();
    takeRequired(TOKEN.end);
  }
  return parts;
}

function segmentWildcard(options) {
  return "[^" + escapeBy(TO_BE_ESCAPED_IN_REGEXP, options.delimiter) + "]+?";
}

// { source, names }: the names of its groups, in order.
function regexpOf(parts, options) {
  let source = "^";
  const names = newList();
  const escape = escapeForRegexp;
  for (let index = 0; index < parts.length; index++) {
    const { type, name, prefix, value, suffix, modifier } = parts[index];
    if (type === FIXED) {
      source += modifier === "" ? escape(value) : "(?:" + escape(value) + ")" + modifier;
      continue;
    }
    names[names.length] = name;
    // (A negation of nothing is not what every engine takes it for.)
    const wildcard = options.delimiter === "" ? "[\\s\\S]+?" : segmentWildcard(options);
    const inner = type === SEGMENT ? wildcard : type === FULL ? ".*" : value;
    if (prefix === "" && suffix === "") {
      source += modifier === "" || modifier === "?" ? "(" + inner + ")" + modifier : "((?:" + inner + ")" + modifier + ")";
    } else if (modifier === "" || modifier === "?") {
      source += "(?:" + escape(prefix) + "(" + inner + ")" + escape(suffix) + ")" + modifier;
    } else {
      const repeated = "(?:" + inner + ")(?:" + escape(suffix) + escape(prefix) + "(?:" + inner + "))*";
      source += "(?:" + escape(prefix) + "(" + repeated + ")" + escape(suffix) + ")" + (modifier === "*" ? "?" : "");
    }
  }
  return { __proto__: null, source: source + "$", names };
}

// The pattern, in its plainest form.
function patternOf(parts, options) {
  let pattern = "";
  const escape = (text) => escapeBy(TO_BE_ESCAPED_IN_PATTERN, text);
  const segment = segmentWildcard(options);
  for (let index = 0; index < parts.length; index++) {
    const { type, name, prefix, value, suffix, modifier } = parts[index];
    const previous = parts[index - 1];
    const next = parts[index + 1];
    if (type === FIXED) {
      pattern += modifier === "" ? escape(value) : "{" + escape(value) + "}" + modifier;
      continue;
    }
    const isNamed = !isOf("0123456789", name[0]);
    let needsGroup = suffix !== "" || (prefix !== "" && prefix !== options.prefix);
    if (!needsGroup && isNamed && type === SEGMENT && modifier === "" && next !== undefined && next.prefix === "" && next.suffix === "") {
      const following = next.type === FIXED ? (next.value === "" ? "" : codePointAt(next.value, 0)) : undefined;
      needsGroup = following === undefined ? isOf("0123456789", next.name[0]) : following !== "" && isNamePart(following, false);
    }
    if (!needsGroup && prefix === "" && previous?.type === FIXED && previous.value !== "") {
      needsGroup = options.prefix !== "" && StringPrototypeEndsWith(previous.value, options.prefix);
    }
    if (needsGroup) pattern += "{";
    pattern += escape(prefix);
    if (isNamed) pattern += ":" + name;
    if (type === REGEXP) {
      pattern += "(" + value + ")";
    } else if (type === SEGMENT && !isNamed) {
      pattern += "(" + segment + ")";
    } else if (type === FULL) {
      const isPlain = previous === undefined || previous.type === FIXED || previous.modifier !== "" || needsGroup || prefix !== "";
      pattern += !isNamed && isPlain ? "*" : "(.*)";
    }
    if (type === SEGMENT && isNamed && suffix !== "" && isNamePart(codePointAt(suffix, 0), false)) pattern += "\\";
    pattern += escape(suffix);
    if (needsGroup) pattern += "}";
    pattern += modifier;
  }
  return pattern;
}
