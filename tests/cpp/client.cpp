// A client in C++ that knows schema/ and nothing else: it loads a worker whose `env` has an object of this program's, calls it,
// and is called back. Run by tests/cpp.rs.
//
//     client HOST:PORT

#include "coracle.capnp.h"

#include <capnp/rpc-twoparty.h>
#include <kj/async-io.h>

#include <cstdio>
#include <cstdlib>
#include <initializer_list>
#include <string>

namespace {

// Values are CBOR, as schema/value.md says; these are small enough to be written by hand.
using Bytes = std::initializer_list<kj::byte>;

void set(Value::Builder value, Bytes bytes) {
  auto data = value.initCbor(bytes.size());
  size_t index = 0;
  for (kj::byte byte : bytes) data[index++] = byte;
}

bool is(capnp::Data::Reader data, Bytes bytes) {
  return data == kj::arrayPtr(bytes.begin(), bytes.size());
}

void check(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "this does not hold: %s\n", what);
  std::exit(1);
}

// Adds its two arguments, which are below 24 and thus a byte each; refuses 0.
class Adder final : public Target::Server {
 public:
  explicit Adder(int& calls) : calls(calls) {}

  kj::Promise<void> call(CallContext context) override {
    calls++;
    auto params = context.getParams();
    check(params.getPath().size() == 0, "a function is called at the empty path");
    auto args = params.getArgs().getCbor();
    check(args.size() == 3 && args[0] == 0x82, "the arguments are an array of two");
    kj::byte left = args[1], right = args[2];
    auto outcome = context.getResults().initOutcome();
    if (left == 0) {
      auto threw = outcome.initThrew();
      threw.setName("RangeError");
      threw.setMessage("not 0");
    } else {
      set(outcome.initValue(), {static_cast<kj::byte>(left + right)});
    }
    return kj::READY_NOW;
  }

 private:
  int& calls;
};

const char SOURCE[] =
    "import { WorkerEntrypoint } from 'cloudflare:workers';\n"
    "export default class extends WorkerEntrypoint {\n"
    "  async run(a, b) { console.log('adding'); return { sum: await this.env.ADD(a, b) }; }\n"
    "}\n";

auto callRun(Target::Client entrypoint, kj::byte a, kj::byte b) {
  auto request = entrypoint.callRequest();
  request.initPath(1).set(0, "run");
  set(request.initArgs(), {0x82, a, b});
  request.setResultForm(Form::CBOR);
  return request.send();
}

}  // namespace

int main(int argc, char** argv) {
  check(argc == 2, "the address is the only argument");
  auto io = kj::setupAsyncIo();
  auto& network = io.provider->getNetwork();
  auto stream = network.parseAddress(argv[1]).wait(io.waitScope)->connect().wait(io.waitScope);
  capnp::TwoPartyClient client(*stream);

  // From here to the first answer nothing is waited for: it all goes out together.
  auto login = client.bootstrap().castAs<Gate>().loginRequest();
  login.initCredentials().setNone();
  auto loggedIn = login.send();

  int calls = 0;
  auto load = loggedIn.getLoader().loadRequest();
  auto code = load.initCode();
  code.setMainModule("main.js");
  auto module = code.initModules(1)[0];
  module.setName("main.js");
  module.initBody().setEsModule(SOURCE);
  auto env = code.initEnv();
  // { "ADD": the external 0 }
  set(env, {0xa1, 0x63, 'A', 'D', 'D', 0xd9, 0x9c, 0x40, 0x00});
  env.initExternals(1)[0].setTarget(kj::heap<Adder>(calls));
  auto loaded = load.send();

  auto getEntrypoint = loaded.getWorker().getEntrypointRequest();
  getEntrypoint.setName("default");
  auto entrypoint = getEntrypoint.send().getEntrypoint();
  auto adding = callRun(entrypoint, 2, 3);
  auto refusing = callRun(entrypoint, 0, 3);
  // A call of what the result is, before it is there: it is no function.
  auto misused = adding.getPipeline().callRequest().send();

  auto added = adding.wait(io.waitScope);
  check(added.getOutcome().isValue(), "the call comes back with a value");
  // { "sum": 5 }
  check(is(added.getOutcome().getValue().getCbor(), {0xa1, 0x63, 's', 'u', 'm', 0x05}), "it is { sum: 5 }");
  check(added.getLogs().size() == 1 && added.getLogs()[0].getMessage() == "adding", "the console's line came along");
  check(added.getUsage().getSubrequests() == 1, "one call left the sandbox");

  auto refused = refusing.wait(io.waitScope);
  check(refused.getOutcome().isThrew(), "what the callback threw comes out of the worker");
  check(refused.getOutcome().getThrew().getName() == "RangeError", "with its name");
  check(refused.getOutcome().getThrew().getMessage() == "not 0", "and its message");

  check(misused.wait(io.waitScope).getOutcome().isThrew(), "an object that is no function can't be called");
  check(calls == 2, "the callback was called twice");
  std::printf("passed\n");
  return 0;
}
