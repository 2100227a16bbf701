# The parent that asks workerd. The test says where it listens, and where what a worker fetches goes.
using Workerd = import "/workerd/workerd.capnp";

const config :Workerd.Config = (
  services = [
    (name = "parent", worker = .parent),
    (name = "internet", external = (address = "127.0.0.1:1", http = ())),
  ],
  sockets = [ (name = "http", address = "127.0.0.1:0", http = (), service = "parent") ],
);

const parent :Workerd.Worker = (
  modules = [
    (name = "asked-over-http.js", esModule = embed "asked-over-http.js"),
    (name = "questions.js", esModule = embed "questions.js"),
  ],
  compatibilityDate = "2026-06-01",
  compatibilityFlags = ["nodejs_compat", "experimental", "enable_ctx_exports"],
  bindings = [
    (name = "LOADER", workerLoader = ()),
    (name = "CLOCK", service = "internet"),
    (name = "NS", durableObjectNamespace = "Counter"),
  ],
  durableObjectNamespaces = [
    (className = "Counter", uniqueKey = "counter"),
    (className = "FacetHost", uniqueKey = "facet-host", enableSql = true),
  ],
  durableObjectStorage = (inMemory = void),
  globalOutbound = "internet",
);
