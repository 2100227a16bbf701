# One parent worker with a loader binding, on a port that the system chooses (workerd reports it on --control-fd).
using Workerd = import "/workerd/workerd.capnp";

const config :Workerd.Config = (
  services = [ (name = "parent", worker = .parent) ],
  sockets = [ (name = "http", address = "127.0.0.1:0", http = (), service = "parent") ],
);

const parent :Workerd.Worker = (
  modules = [ (name = "parent.js", esModule = embed "parent.js") ],
  compatibilityDate = "2026-06-01",
  bindings = [ (name = "LOADER", workerLoader = ()) ],
);
