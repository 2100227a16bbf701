// URLPattern (URL Pattern standard). url-pattern-syntax.js reads the patterns of its components.
//
// Owns: which component a piece of a pattern or of a URL is, and the form that it has in a URL.

const PATTERN_COMPONENTS = ["protocol", "username", "password", "hostname", "port", "pathname", "search", "hash"];
ObjectSetPrototypeOf(PATTERN_COMPONENTS, null);
const SPECIAL_PORTS = { __proto__: null, http: "80", https: "443", ws: "80", wss: "443", ftp: "21", file: "" };
const PLAIN_OPTIONS = { __proto__: null, delimiter: "", prefix: "" };
const HOSTNAME_OPTIONS = { __proto__: null, delimiter: ".", prefix: "" };
const PATHNAME_OPTIONS = { __proto__: null, delimiter: "/", prefix: "/" };
const DUMMY_URL = "https://dummy.test/";

function invalidPattern(what) {
  return new TypeErrorConstructor("URLPattern: " + what + ".");
}

// --- the forms that components have in a URL ---

function setOnDummy(part, value, from, to) {
  const parts = host.urlSet(DUMMY_URL, part, value);
  return urlPart({ __proto__: null, parts }, from, to);
}

function withoutFirst(text, character) {
  return text[0] === character ? StringPrototypeSlice(text, 1) : text;
}

const FORMS = {
  __proto__: null,
  protocol(value) {
    if (value === "") return value;
    const parts = host.urlParse(value + "://dummy.test", undefined);
    if (parts === undefined) throw invalidPattern("there is no protocol " + value);
    return StringPrototypeSlice(parts[0], 0, parts[URL_SCHEME_END]);
  },
  username(value) {
    return value === "" ? value : setOnDummy("username", value, URL_USERNAME, URL_USERNAME + 1);
  },
  password(value) {
    return value === "" ? value : setOnDummy("password", value, URL_PASSWORD, URL_PASSWORD + 1);
  },
  hostname(value) {
    if (value === "") return value;
    const hostname = setOnDummy("hostname", value, URL_HOST, URL_HOST_END);
    const isUnset = hostname === "dummy.test" && StringPrototypeToLowerCase(value) !== hostname;
    const isWrong = value[0] !== "[" && RegExpPrototypeExec(/[#%/:<>?@[\\\]^|]/, value) !== null;
    if (isUnset || isWrong) throw invalidPattern("there is no host " + value);
    return hostname;
  },
  address(value) {
    if (RegExpPrototypeExec(/^[0-9a-fA-F:[\]]*$/, value) === null) throw invalidPattern("there is no address " + value);
    return StringPrototypeToLowerCase(value);
  },
  port(value, protocol) {
    if (value === "") return value;
    const scheme = SPECIAL_PORTS[protocol] === undefined || protocol === "file" ? "dummy" : protocol;
    // (Any port but the one that is set, so that it shows where none is.)
    const parts = host.urlSet(scheme + "://dummy.test:1/", "port", value);
    const port = urlPart({ __proto__: null, parts }, URL_PORT, URL_PORT_END);
    if (port === "1" && value !== "1") throw invalidPattern("there is no port " + value);
    return port;
  },
  pathname(value) {
    if (value === "") return value;
    // What is no whole path must not become one.
    const isWhole = value[0] === "/";
    const path = setOnDummy("pathname", isWhole ? value : "/-" + value, URL_PATH, URL_PATH_END);
    return isWhole ? path : StringPrototypeSlice(path, 2);
  },
  opaque(value) {
    if (value === "") return value;
    const parts = host.urlParse("data:" + value, undefined);
    return parts === undefined ? value : urlPart({ __proto__: null, parts }, URL_PATH, URL_PATH_END);
  },
  search(value) {
    return value === "" ? value : withoutFirst(setOnDummy("search", value, URL_PATH_END, URL_QUERY_END), "?");
  },
  hash(value) {
    if (value === "") return value;
    const parts = host.urlSet(DUMMY_URL, "hash", value);
    return withoutFirst(StringPrototypeSlice(parts[0], parts[URL_QUERY_END]), "#");
  },
};

// --- an init: the components that were given ---

// Of what the worker gave, as Web IDL reads it.
function toInit(value) {
  const init = ObjectCreate(null);
  const names = ["baseURL", "hash", "hostname", "password", "pathname", "port", "protocol", "search", "username"];
  for (let index = 0; index < names.length; index++) {
    const member = value[names[index]];
    if (member !== undefined) init[names[index]] = toWellFormed(member);
  }
  return init;
}

function hasNone(init, upTo) {
  for (let index = 0; index < PATTERN_COMPONENTS.length; index++) {
    const name = PATTERN_COMPONENTS[index];
    if (name !== "username" && name !== "password" && init[name] !== undefined) return false;
    if (name === upTo) return true;
  }
  return true;
}

// The components of a URL's parts.
function componentsOf(parts) {
  const state = { __proto__: null, parts };
  return {
    __proto__: null,
    protocol: StringPrototypeSlice(parts[0], 0, parts[URL_SCHEME_END]),
    username: urlPart(state, URL_USERNAME, URL_USERNAME + 1),
    password: urlPart(state, URL_PASSWORD, URL_PASSWORD + 1),
    hostname: urlPart(state, URL_HOST, URL_HOST_END),
    port: urlPart(state, URL_PORT, URL_PORT_END),
    pathname: urlPart(state, URL_PATH, URL_PATH_END),
    search: withoutFirst(urlPart(state, URL_PATH_END, URL_QUERY_END), "?"),
    hash: withoutFirst(StringPrototypeSlice(parts[0], parts[URL_QUERY_END]), "#"),
  };
}

function isWholePath(path, isPattern) {
  return path[0] === "/" || (isPattern && (StringPrototypeStartsWith(path, "\\/") || StringPrototypeStartsWith(path, "{/")));
}

// The init with what it inherits of its base. Of a URL's components, with the forms that they have in one.
function completeInit(init, isPattern) {
  const result = ObjectCreate(null);
  let base;
  if (init.baseURL !== undefined) {
    const parts = host.urlParse(init.baseURL, undefined);
    if (parts === undefined) throw invalidPattern("the base is no URL");
    base = componentsOf(parts);
    for (let index = 0; index < PATTERN_COMPONENTS.length; index++) {
      const name = PATTERN_COMPONENTS[index];
      const isOfUser = name === "username" || name === "password";
      const isInherited = isOfUser ? !isPattern && hasNone(init, "port") && init.username === undefined && (name === "username" || init.password === undefined) : hasNone(init, name);
      if (isInherited) result[name] = isPattern ? escapeBy(TO_BE_ESCAPED_IN_PATTERN, base[name]) : base[name];
    }
  }
  for (let index = 0; index < PATTERN_COMPONENTS.length; index++) {
    const name = PATTERN_COMPONENTS[index];
    let value = init[name];
    if (value === undefined) {
      if (!isPattern) result[name] ??= "";
      continue;
    }
    if (name === "protocol" && StringPrototypeEndsWith(value, ":")) value = StringPrototypeSlice(value, 0, value.length - 1);
    else if (name === "search") value = withoutFirst(value, "?");
    else if (name === "hash") value = withoutFirst(value, "#");
    else if (name === "pathname" && base !== undefined && base.pathname[0] === "/" && !isWholePath(value, isPattern)) {
      const folder = StringPrototypeSlice(base.pathname, 0, StringPrototypeLastIndexOf(base.pathname, "/") + 1);
      value = (isPattern ? escapeBy(TO_BE_ESCAPED_IN_PATTERN, folder) : folder) + value;
    }
    if (!isPattern) {
      const { protocol } = result;
      const isOpaque = name === "pathname" && protocol !== "" && SPECIAL_PORTS[protocol] === undefined;
      const form = FORMS[isOpaque ? "opaque" : name];
      value = form(value, protocol);
    }
    result[name] = value;
  }
  return result;
}

// --- a pattern as one text ---

// Splits it into components, as the URL parser would a URL.
function initOfText(input) {
  const tokens = tokensOf(input, true);
  const last = tokens.length - 1;
  const init = ObjectCreate(null);
  let state = "init";
  let at = 0;
  let start = 0;
  let step = 1;
  let groups = 0;
  let brackets = 0;
  let isSpecial = false;
  const tokenAt = (index) => tokens[index < 0 || index > last ? last : index];
  const isPlain = (index, character) => {
    const { type, value } = tokenAt(index);
    return value === character && (type === TOKEN.char || type === TOKEN.escaped || type === TOKEN.invalid);
  };
  const isSearch = () => {
    if (isPlain(at, "?")) return true;
    if (tokens[at].value !== "?") return false;
    if (at === 0) return true;
    const { type } = tokens[at - 1];
    return type !== TOKEN.name && type !== TOKEN.regexp && type !== TOKEN.close && type !== TOKEN.asterisk;
  };
  const text = () => StringPrototypeSlice(input, tokenAt(start).index, tokens[at].index);
  const rewind = (next) => {
    at = start;
    step = 0;
    state = next;
  };
  const isBefore = (one, other) => ORDER[one] < ORDER[other];
  const change = (next, skip) => {
    if (state !== "init" && state !== "authority") init[state] = text();
    if (state !== "init" && next !== "done") {
      if (isBefore(state, "hostname") && isBefore("hostname", next)) init.hostname ??= "";
      if (isBefore(state, "pathname") && isBefore("pathname", next)) init.pathname ??= isSpecial ? "/" : "";
      if (isBefore(state, "search") && isBefore("search", next)) init.search ??= "";
    }
    state = next;
    at += skip;
    start = at;
    step = 0;
  };
  // Whether what ends the part in front of `name` stands here.
  const changeAtEnd = (name) => {
    if (name === "pathname" && isPlain(at, "/")) change("pathname", 0);
    else if (isBefore(name, "hash") && isSearch()) change("search", 1);
    else if (isPlain(at, "#")) change("hash", 1);
  };
  for (; at <= last; at += step) {
    step = 1;
    const { type } = tokens[at];
    if (type === TOKEN.end) {
      if (state === "init") {
        rewind("init");
        if (isPlain(at, "#")) change("hash", 1);
        else if (isSearch()) change("search", 1);
        else change("pathname", 0);
      } else if (state === "authority") {
        rewind("hostname");
      } else {
        change("done", 0);
        break;
      }
      continue;
    }
    if (type === TOKEN.open) {
      groups++;
      continue;
    }
    if (groups > 0) {
      if (type !== TOKEN.close) continue;
      groups--;
    }
    if (state === "init") {
      if (isPlain(at, ":")) rewind("protocol");
    } else if (state === "protocol") {
      if (!isPlain(at, ":")) continue;
      isSpecial = isSpecialProtocol(newComponent(text(), PLAIN_OPTIONS, FORMS.protocol, ""));
      const hasSlashes = isPlain(at + 1, "/") && isPlain(at + 2, "/");
      change(hasSlashes || isSpecial ? "authority" : "pathname", hasSlashes ? 3 : 1);
    } else if (state === "authority") {
      if (isPlain(at, "@")) rewind("username");
      else if (isPlain(at, "/") || isSearch() || isPlain(at, "#")) rewind("hostname");
    } else if (state === "username") {
      if (isPlain(at, ":")) change("password", 1);
      else if (isPlain(at, "@")) change("hostname", 1);
    } else if (state === "password") {
      if (isPlain(at, "@")) change("hostname", 1);
    } else if (state === "hostname") {
      if (isPlain(at, "[")) brackets++;
      else if (isPlain(at, "]")) brackets--;
      else if (isPlain(at, ":") && brackets === 0) change("port", 1);
      else changeAtEnd("pathname");
    } else if (state === "port") {
      changeAtEnd("pathname");
    } else if (state === "pathname") {
      changeAtEnd("search");
    } else if (state === "search") {
      changeAtEnd("hash");
    }
  }
  if (init.hostname !== undefined) init.port ??= "";
  return init;
}
const ORDER = { __proto__: null, protocol: 0, authority: 1, username: 2, password: 3, hostname: 4, port: 5, pathname: 6, search: 7, hash: 8 };

// --- components ---

function newComponent(pattern, options, form, flags) {
  const parts = partsOf(pattern, options, form);
  const { source, names } = regexpOf(parts, options);
  let hasGroups = false;
  for (let index = 0; index < parts.length; index++) hasGroups ||= parts[index].type === REGEXP;
  let regexp;
  try {
    regexp = new RegExpConstructor(source, "v" + flags);
  } catch {
    throw invalidPattern(pattern + " has a regular expression that is none");
  }
  return { __proto__: null, pattern: patternOf(parts, options), regexp, names, hasGroups };
}

function isSpecialProtocol(component) {
  const names = ObjectKeys(SPECIAL_PORTS);
  for (let index = 0; index < names.length; index++) {
    if (RegExpPrototypeExec(component.regexp, names[index]) !== null) return true;
  }
  return false;
}

function newPatternState(init, ignoresCase) {
  const given = completeInit(init, true);
  for (let index = 0; index < PATTERN_COMPONENTS.length; index++) given[PATTERN_COMPONENTS[index]] ??= "*";
  if (given.port !== "" && SPECIAL_PORTS[given.protocol] === given.port) given.port = "";
  const state = ObjectCreate(null);
  const flags = ignoresCase ? "i" : "";
  const { hostname } = given;
  const isAddress = hostname.length >= 2 && (hostname[0] === "[" || StringPrototypeStartsWith(hostname, "{[") || StringPrototypeStartsWith(hostname, "\\["));
  state.protocol = newComponent(given.protocol, PLAIN_OPTIONS, FORMS.protocol, "");
  state.username = newComponent(given.username, PLAIN_OPTIONS, FORMS.username, "");
  state.password = newComponent(given.password, PLAIN_OPTIONS, FORMS.password, "");
  state.hostname = newComponent(hostname, HOSTNAME_OPTIONS, isAddress ? FORMS.address : FORMS.hostname, "");
  state.port = newComponent(given.port, PLAIN_OPTIONS, FORMS.port, "");
  state.pathname = isSpecialProtocol(state.protocol)
    ? newComponent(given.pathname, PATHNAME_OPTIONS, FORMS.pathname, flags)
    : newComponent(given.pathname, PLAIN_OPTIONS, FORMS.opaque, flags);
  state.search = newComponent(given.search, PLAIN_OPTIONS, FORMS.search, flags);
  state.hash = newComponent(given.hash, PLAIN_OPTIONS, FORMS.hash, flags);
  return state;
}

// The components of what is matched, or undefined where it is no URL.
function componentsOfInput(input, base) {
  if (isObject(input)) {
    if (base !== undefined) throw invalidPattern("an object has its base as baseURL, and not beside it");
    const init = toInit(input);
    try {
      return completeInit(init, false);
    } catch {
      return undefined;
    }
  }
  const parts = host.urlParse(input, base);
  return parts === undefined ? undefined : componentsOf(parts);
}

function toInput(input) {
  if (input === undefined || input === null) return {};
  return isObject(input) ? input : toWellFormed(input);
}

class URLPattern {
  #components;

  constructor(input = undefined, baseOrOptions = undefined, options = undefined) {
    const hasBase = arguments.length > 2 || (baseOrOptions !== undefined && baseOrOptions !== null && !isObject(baseOrOptions));
    const base = hasBase ? toWellFormed(baseOrOptions) : undefined;
    const ignoresCase = !!toDictionary(hasBase ? options : baseOrOptions, "URLPattern: the options").ignoreCase;
    const given = toInput(input);
    let init;
    if (typeof given === "string") {
      init = initOfText(given);
      if (base === undefined && init.protocol === undefined) throw invalidPattern(given + " has no protocol, and there is no base");
      init.baseURL = base;
    } else {
      if (base !== undefined) throw invalidPattern("an object has its base as baseURL, and not beside it");
      init = toInit(given);
    }
    this.#components = newPatternState(init, ignoresCase);
  }

  test(input = undefined, baseURL = undefined) {
    return matchPattern(this.#components, toInput(input), baseURL === undefined ? undefined : toWellFormed(baseURL)) !== undefined;
  }

  exec(input = undefined, baseURL = undefined) {
    const given = toInput(input);
    const base = baseURL === undefined ? undefined : toWellFormed(baseURL);
    const matches = matchPattern(this.#components, given, base);
    if (matches === undefined) return null;
    const result = {};
    const inputs = newList();
    inputs[0] = given;
    if (base !== undefined) inputs[1] = base;
    ObjectDefineProperty(result, "inputs", dataProperty(toArray(inputs)));
    for (let index = 0; index < PATTERN_COMPONENTS.length; index++) {
      const name = PATTERN_COMPONENTS[index];
      ObjectDefineProperty(result, name, dataProperty(matches[name]));
    }
    return result;
  }

  get protocol() {
    return this.#components.protocol.pattern;
  }
  get username() {
    return this.#components.username.pattern;
  }
  get password() {
    return this.#components.password.pattern;
  }
  get hostname() {
    return this.#components.hostname.pattern;
  }
  get port() {
    return this.#components.port.pattern;
  }
  get pathname() {
    return this.#components.pathname.pattern;
  }
  get search() {
    return this.#components.search.pattern;
  }
  get hash() {
    return this.#components.hash.pattern;
  }
  get hasRegExpGroups() {
    for (let index = 0; index < PATTERN_COMPONENTS.length; index++) {
      if (this.#components[PATTERN_COMPONENTS[index]].hasGroups) return true;
    }
    return false;
  }
}
defineInterface("URLPattern", URLPattern);

// { input, groups } by component, or undefined.
function matchPattern(components, input, base) {
  const given = componentsOfInput(input, base);
  if (given === undefined) return undefined;
  const matches = ObjectCreate(null);
  for (let index = 0; index < PATTERN_COMPONENTS.length; index++) {
    const name = PATTERN_COMPONENTS[index];
    const { regexp, names } = components[name];
    const found = RegExpPrototypeExec(regexp, given[name]);
    if (found === null) return undefined;
    const groups = {};
    for (let group = 0; group < names.length; group++) ObjectDefineProperty(groups, names[group], dataProperty(found[group + 1]));
    const match = {};
    ObjectDefineProperty(match, "input", dataProperty(given[name]));
    ObjectDefineProperty(match, "groups", dataProperty(groups));
    matches[name] = match;
  }
  return matches;
}
