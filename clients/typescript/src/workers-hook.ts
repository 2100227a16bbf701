// The hook that `coracle/register` registers. Node runs it in a thread of its own.

interface Resolved {
  url: string;
  shortCircuit?: boolean;
}

const workers = new URL("./workers.js", import.meta.url).href;

export async function resolve(
  specifier: string,
  context: unknown,
  next: (specifier: string, context: unknown) => Promise<Resolved>,
): Promise<Resolved> {
  return specifier === "cloudflare:workers" ? { url: workers, shortCircuit: true } : next(specifier, context);
}
