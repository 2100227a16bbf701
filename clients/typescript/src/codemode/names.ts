// Which names namespaces may have, and what tools are called: the rules of `@cloudflare/codemode`, in its words.

import type { ConnectorBinding, ResolvedProvider } from "./executor.js";

const IDENTIFIER = /^[a-zA-Z_$][a-zA-Z0-9_$]*$/;

// What the package's own sandbox calls things. Refused here too, so that what works with one executor works with the other.
const NAMESPACES_RESERVED = new Set(
  (
    "__dispatchers __connectors __logs __CODEMODE_BINARY_TAG __bytesToBase64 __base64ToBytes __encodeCodemodeValue " +
    "__decodeCodemodeValue __stringifyForCodemode __parseForCodemode WorkerEntrypoint CodeExecutor Promise setTimeout Error " +
    "console"
  ).split(" "),
);

// The words that no tool is called by: those of JavaScript, of old JavaScript, and its literals.
const WORDS_RESERVED = new Set(
  (
    "abstract arguments await boolean break byte case catch char class const continue debugger default delete do double else " +
    "enum eval export extends false final finally float for function goto if implements import in instanceof int interface " +
    "let long native new null package private protected public return short static super switch synchronized this throw " +
    "throws transient true try typeof undefined var void volatile while with yield"
  ).split(" "),
);

/** What is wrong with the names, if anything is. */
export function problemOf(providers: ResolvedProvider[], connectors: ConnectorBinding[]): string | undefined {
  const seen = new Set<string>();
  const all = [
    ...providers.map(({ name }) => ({ name, kind: "Provider" })),
    ...connectors.map(({ name }) => ({ name, kind: "Connector" })),
  ];
  for (const { name, kind } of all) {
    if (NAMESPACES_RESERVED.has(name)) return `${kind} name "${name}" is reserved`;
    if (!IDENTIFIER.test(name)) return `${kind} name "${name}" is not a valid JavaScript identifier`;
    if (seen.has(name)) {
      return kind === "Provider"
        ? `Duplicate provider name "${name}"`
        : `Duplicate name "${name}" (connector clashes with provider)`;
    }
    seen.add(name);
  }
  return undefined;
}

/** The tools of a provider by what a program calls them, or what is wrong with their names. */
export function toolsOf({
  name: provider,
  fns,
}: ResolvedProvider): Map<string, ResolvedProvider["fns"][string]> | string {
  const tools = new Map<string, ResolvedProvider["fns"][string]>();
  const owners = new Map<string, string>();
  for (const [own, tool] of Object.entries(fns)) {
    const name = toolName(own);
    const owner = owners.get(name);
    if (owner !== undefined)
      return `Tool names "${owner}" and "${own}" both sanitize to "${name}" in provider "${provider}"`;
    owners.set(name, own);
    tools.set(name, tool);
  }
  return tools;
}

function toolName(own: string): string {
  const letters = own.replace(/[-.\s]/g, "_").replace(/[^a-zA-Z0-9_$]/g, "");
  if (letters === "") return "_";
  const name = /^[0-9]/.test(letters) ? `_${letters}` : letters;
  return WORDS_RESERVED.has(name) ? `${name}_` : name;
}
