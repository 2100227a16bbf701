@0xc3a9d1f47b2e8650;
# Coracle: sandboxed JavaScript workers as capabilities.
#
# A client calls `Gate.login`, hands worker code to `Loader.load`, asks the worker for an entrypoint and calls it like
# a local object. Every step returns a capability at once, so the whole chain may be pipelined in one round trip.
#
# Three kinds of bad news, kept apart:
#  - what the JavaScript threw is a result (`CallResults.outcome.threw`);
#  - a limit that stopped the code is a result (`CallResults.outcome.verdict`);
#  - Cap'n Proto exceptions are for the transport and the server: `failed` (do not retry: the request is wrong or was
#    refused), `overloaded` (retry later), `disconnected` (connect again), `unimplemented` (the peer is older).

interface Gate {
  # The bootstrap capability, and the only thing that a connection holds before it has logged in.

  login @0 (credentials :Credentials) -> (loader :Loader, session :Session);
  # Fails with `failed` and a text that starts with "unauthenticated" when the credentials are not accepted.
}

struct Credentials {
  union {
    none @0 :Void;
    # Rely on the transport. Accepted on loopback and Unix sockets where the server has no tokens configured.

    bearerToken @1 :Text;
  }
}

interface Session {
  # The lifetime of a login. It ends, and with it everything that came from it, when `close` is called, when this
  # capability is dropped after it has been used once, or with the connection. (A client that pipelines through `login`
  # and never touches `session` drops it without meaning to; it keeps what it has.)

  tenant @0 () -> (name :Text);
  # The tenant that pays for what this session does.

  close @1 () -> ();
  # Revokes every capability that came from the login and ends its isolates. Calls that are running end with the
  # verdict `cancelled`.
}

interface Loader {
  load @0 (code :WorkerCode) -> (worker :Worker);
  # Checks the code's shape, names, sizes and limits, and returns a worker. All problems are reported at once, in one
  # `failed` exception. What fails while the modules are evaluated is the outcome of the first call, and of `ready`.
  # Each load is a worker of its own: two loads never share module state.

  get @1 (id :Text, fingerprint :Data, env :Value, outbound :Outbound, limits :Limits, source :CodeSource)
      -> (worker :Worker);
  # The worker that is there for these arguments, with its isolate and its module state; where there is none, `source` is
  # asked for the code, once, whoever else asks for the same meanwhile. `id` and `fingerprint` have at most 1,024 bytes.
  #
  # The same are requests with the same `id` and `fingerprint`, the same `env`, `outbound` and `limits`, and the very same
  # capabilities in them, which are kept for as long as the worker is. A worker that is given no capability is shared by
  # all logins of the tenant, and is there for as long as one of them is; any other is this login's own. Calls of a shared
  # worker count for the tenant and not for the login. 1,000 workers are kept, those that were asked for last.
  #
  # The `fingerprint` stands for the code: give a hash of it, or a version. Without one, changed code is noticed only when
  # the worker is loaded again, because it had to make room or its tenant had left: as long as it is there, the source is
  # not asked.
  #
  # What fails is not kept. A source that throws, answers with more than code, or does not answer within 30 s, fails this
  # request and those that wait for it; if its client goes away, the next that waits is asked.
}

interface CodeSource {
  # Where the code of a worker comes from that is not there.

  code @0 () -> (code :WorkerCode);
  # Without `env`, `outbound` and `limits`, which are the arguments of `Loader.get`, and without tails.
}

struct WorkerCode {
  # What a worker is made of. Immutable once loaded.

  compatibilityDate @0 :Text;
  # "YYYY-MM-DD", by the Workers rules. Empty: the newest date that this server knows.

  compatibilityFlags @1 :List(Text);

  mainModule @2 :Text;
  # The name of the module whose exports are the entrypoints. It must be an ES module.

  modules @3 :List(Module);

  env @4 :Value;
  # An object; its properties are the worker's bindings.

  outbound @5 :Outbound;

  limits @6 :Limits;

  tails @7 :List(Target);
  # What is told of each invocation when it is over, by a call of `tail` with an array of events; docs/runtime.md says what
  # is in them. At most 16 with `streamingTails`.

  streamingTails @8 :List(Target);
  # What is told while it runs, by calls of `tailStream` with an array of events.
}

struct Module {
  name @0 :Text;
  # Unique among the worker's modules. Specifiers resolve against these names only.

  body :union {
    unset @1 :Void;
    # Refused: a forgotten body is an error and not an empty module.

    esModule @2 :Text;
    commonJs @3 :Text;
    text @4 :Text;
    # Default export: the string.

    json @5 :Text;
    # Default export: the parsed value.

    data @6 :Data;
    # Default export: an ArrayBuffer.

    wasm @7 :Data;
    # Not available yet; refused by name.
  }
}

struct Outbound {
  # Where the worker's `fetch()` and `connect()` go.

  union {
    policy @0 :Void;
    # Where the policy of the session allows, which is nowhere by default: the server's configuration says what each tenant
    # has. See docs/outbound.md.

    none @1 :Void;
    # Nowhere: both throw.

    gateway @2 :Target;
    # To this object: each request is a call of its method `fetch` with the `Request`, and what that returns is the
    # `Response`; each connection a call of `connect`. See value.md.

    policyNamed @3 :Text;
    # Where the policy of the session allows, and besides the one that the server's configuration has under this name, if
    # the tenant may name it. So it can be narrower than that of the session, and is never wider.

    policyGiven @4 :Text;
    # Where the policy of the session allows, and besides these rules, in the JSON of docs/outbound.md: `{"rules": [...]}`.
    # They name no credentials and no private addresses: those are the server's to grant.
  }

  ask @5 :Target;
  # With a policy: who decides where its rules say that somebody is to be asked. Its method `ask` is called with the
  # `Request`, without its body, and returns `true` or `false`; what it throws is a no. Nobody is a no.
}

struct Limits {
  # Zero means the server's default. A limit can only lower what the server and the tenant allow; of the worker's and
  # the entrypoint's the lower one wins.

  fuelMax @0 :UInt64;
  # Wasm fuel of one invocation; about 15,000,000 a millisecond.

  cpuMsMax @1 :UInt64;
  # CPU time of one invocation in milliseconds, that of evaluating the modules for it included, waiting not counted.

  startupFuelMax @2 :UInt64;
  # Fuel for evaluating the modules.

  wallMsMax @3 :UInt64;
  # Wall time of one invocation in milliseconds, waiting counted.

  memoryBytesMax @4 :UInt64;
  # Linear memory of the isolate in bytes.

  subrequestsMax @5 :UInt64;
  # Calls out of the isolate that one invocation may start.

  subrequestsInFlightMax @6 :UInt64;
  # Of these, how many may wait at once.

  argsBytesMax @7 :UInt64;
  resultBytesMax @8 :UInt64;
  # Encoded size of the arguments with the `props`, and of the result, of one call in bytes.

  logBytesMax @9 :UInt64;
  # Console output of one invocation in bytes; what is beyond is dropped and marked.

  valueDepthMax @10 :UInt64;
  # Nesting of arguments and results.

  exportsMax @11 :UInt64;
  # Stubs that an isolate may have given out and not got back.

  subrequestMsMax @12 :UInt64;
  # Time in milliseconds that a call out of the isolate may wait for its answer; then it throws.
}

interface Worker {
  getEntrypoint @0 (name :Text, props :Value, limits :Limits) -> (entrypoint :Target);
  # The named export of the main module; empty or "default" is the default export. Whether it exists shows at the
  # first call. `props` becomes `ctx.props`.

  ready @1 () -> CallResults;
  # Evaluates the modules if that has not happened yet, and returns the outcome: `undefined`, what the top level
  # threw, or the verdict.
}

interface Target {
  # Anything that can be called.

  call @0 CallParams -> CallResults;
  # Calls the method at `path`; an empty path calls the target itself.

  get @1 (path :List(Text), resultForm :Form) -> CallResults;
  # Reads the property at `path`.
}

struct CallParams {
  path @0 :List(Text);
  args @1 :Value;
  # An array; undefined means no arguments.

  resultForm @2 :Form;
}

enum Form {
  # How a value should be encoded.

  cbor @0;
  # schema/value.md. Carries everything that structured clone carries.

  json @1;
  # JSON text, for clients that have only JSON. What JSON can't express follows JSON.stringify.
}

struct CallResults {
  outcome :union {
    value @0 :Value;
    threw @1 :Thrown;
    verdict @2 :Verdict;
  }
  pipeline @3 :Target;
  # The result as a target. After `threw` and `verdict` it answers every call with the same outcome.

  usage @4 :Usage;

  logs @5 :List(LogLine);
  # What the invocation wrote to the console, in order, also when it failed.

  logBytesDropped @6 :UInt64;
  # Bytes of console output beyond `logBytesMax`.
}

struct Value {
  # A structured-clone value: bytes, and the table of what the bytes refer to by index.

  union {
    undefined @0 :Void;
    cbor @1 :Data;
    json @2 :Text;
  }
  externals @3 :List(External);
}

struct External {
  # Something that is passed by reference. Each entry is a reference of its own, and is let go of by itself. At most 10,000
  # in one value. Whatever its kind, all that can be done with it is to call it; value.md says what the methods of streams are.

  union {
    invalid @0 :Void;
    # The default, so that a forgotten external is an error.

    target @1 :Target;
    # A function (called with an empty path), an object with methods, or an entrypoint. What the receiver gives back to
    # whom it came from is known there and called directly.

    source @2 :Target;
    # A byte stream to be read: a ReadableStream for the worker.

    sink @3 :Target;
    # A byte stream to be written: a WritableStream for the worker.

    loader @4 :Loader;
    # The loader that the client got when it logged in; any other is refused. In `env` only. For the worker it is what
    # Workers call a worker loader binding: `env.LOADER.load(code)` and `env.LOADER.get(id, callback)`. The workers that it
    # loads belong to the same session, have no limit that is higher than its own, and end with the isolate that loaded
    # them.
  }
}

struct Thrown {
  # What the JavaScript threw.

  name @0 :Text;
  # "TypeError", or the `name` of the thrown object; "Error" where a primitive was thrown.

  message @1 :Text;
  stack @2 :Text;
  # Frames of the worker's own modules, innermost first, one a line: "    at inner (main.js:3:9)".

  module @3 :Text;
  line @4 :UInt32;
  column @5 :UInt32;
  # The innermost frame in the worker's source, both counted from 1. An empty module and zeros where unknown.

  value @6 :Value;
  # The thrown value itself, in CBOR; undefined where it can't be cloned.

  duringLoad @7 :Bool;
  # Thrown while the modules were evaluated: the method was not called.
}

struct Verdict {
  # What stopped an invocation. A worker can't forge one.

  kind @0 :VerdictKind;
  limitName @1 :Text;
  # The limit that was exceeded, in the spelling of docs/limits.md; empty where none was. It is a field of `Limits`
  # ("memory_bytes_max") or one that can't be asked for: "timers_max", which is fixed, "pool_memory_bytes_max", which
  # the server sets for all isolates together, and "tenant_memory_bytes_max", which it sets for those of a tenant.

  used @2 :UInt64;
  limit @3 :UInt64;
  # In the unit of the limit's name. `used` may exceed `limit` by the slack that docs/limits.md states.

  message @4 :Text;
  # A sentence that says what happened and what can be done.

  started @5 :Bool;
  # Whether any code of the invocation ran. If false it is safe to retry.

  subrequestsSent @6 :UInt32;
  # Calls that had left the isolate before it was stopped.
}

enum VerdictKind {
  fuel @0;
  cpu @1;
  startup @2;
  wall @3;
  memory @4;
  stack @5;
  subrequests @6;
  argsSize @7;
  resultSize @8;
  valueDepth @9;
  hung @10;
  # Nothing was left that could have settled the call.

  cancelled @11;
  isolateLost @12;
  # Another invocation of the same isolate was stopped, and the isolate with it.

  isolateEvicted @13;
  trap @14;
  # The engine broke. The isolate is gone; please report it.

  exports @15;
  timers @16;
}

struct Usage {
  # What one invocation cost.

  fuelLoad @0 :UInt64;
  # Spent on evaluating the modules for this call; 0 when the isolate was already there.

  fuelRun @1 :UInt64;
  fuelSchedule @2 :UInt32;
  # Version of the price list that `fuel` figures were made with.

  cpuMicros @3 :UInt64;
  wallMicros @4 :UInt64;
  memoryPeakBytes @5 :UInt64;
  # The isolate's linear memory.

  memoryDenied @6 :UInt32;
  # Growths of memory that were refused.

  subrequests @7 :UInt32;
  bytesIn @8 :UInt64;
  bytesOut @9 :UInt64;
  # Encoded arguments and result.

  isolateReused @10 :Bool;
  # Whether the isolate had served an invocation before.
}

struct LogLine {
  level @0 :LogLevel;
  message @1 :Text;
  timestampMs @2 :Float64;
  # The worker's clock, milliseconds since the epoch.
}

enum LogLevel { debug @0; info @1; log @2; warn @3; error @4; }
