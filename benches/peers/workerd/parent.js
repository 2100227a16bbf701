// The parent worker inside workerd: loads and calls what the driver uploaded, and measures nothing. (Its clock has steps
// of 1 ms; the driver times from outside.) Work is done before the answer is written; nothing is kept from `load()`.

/** The jobs of the current phase, `{ id, source, argument }` each. Uploading replaces them. */
let jobs = [];

function code(source, limits) {
  return {
    compatibilityDate: "2026-06-01",
    mainModule: "main.js",
    modules: { "main.js": source },
    globalOutbound: null,
    limits,
  };
}

/** A sandbox never used before, for one call. */
function cold(loader, { source, argument, limits }) {
  return loader.load(code(source, limits)).getEntrypoint().run(argument);
}

/** The entrypoint of a sandbox that lives until the process ends. */
function named(loader, { id, source }) {
  return loader.get(id, () => code(source)).getEntrypoint();
}

const ROUTES = {
  async "PUT /jobs"({ request }) {
    jobs = await request.json();
    return jobs.length;
  },
  async "GET /empty"() {
    return null;
  },
  async "GET /cold"({ loader, first }) {
    return cold(loader, jobs[first]);
  },
  async "GET /cold-batch"({ loader, first, count }) {
    const answers = [];
    for (const job of jobs.slice(first, first + count)) answers.push(await cold(loader, job));
    return answers;
  },
  async "GET /tools"({ loader, first }) {
    return loader.load(code(jobs[first].source)).getEntrypoint().run(() => 1);
  },
  async "GET /named"({ loader, first }) {
    return named(loader, jobs[first]).run(jobs[first].argument);
  },
  async "GET /warm-batch"({ loader, first, count }) {
    const entrypoint = named(loader, jobs[first]);
    let answer;
    for (let call = 0; call < count; call++) answer = await entrypoint.run(jobs[first].argument);
    return answer;
  },
};

export default {
  async fetch(request, env) {
    const url = new URL(request.url);
    const route = ROUTES[`${request.method} ${url.pathname}`];
    if (route === undefined) return new Response("no such route", { status: 404 });
    const first = Number(url.searchParams.get("first"));
    const count = Number(url.searchParams.get("count"));
    return Response.json(await route({ request, loader: env.LOADER, first, count }));
  },
};
