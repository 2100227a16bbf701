// Holds: keeping an invocation open after its answer, until what it has left to do is done.
//
// Owns: which holds there are. The host knows whose each is, and forgets it when that invocation's wall time is over.
// Must never: leave a hold behind that nothing will end.

const HOLDS_MAX = 10000;

const holds = ObjectCreate(null);
let holdsCount = 0;

// Holds an invocation open until `endHold`; answers the hold's id. 0, or one that is over, stands for the one whose entry
// this is.
function holdInvocation(invocation) {
  if (holdsCount >= HOLDS_MAX) {
    throw new RangeErrorConstructor(
      "More than " + HOLDS_MAX + " promises and streams hold calls open after their answers: wait for some of them.",
    );
  }
  const id = host.startHold(invocation);
  holds[id] = true;
  holdsCount++;
  return id;
}

// Does nothing where the hold is over already, or the host has forgotten it.
function endHold(id) {
  if (forgetHold(id)) host.cancel(id);
}

function forgetHold(id) {
  if (holds[id] === undefined) return false;
  delete holds[id];
  holdsCount--;
  return true;
}

// Holds an invocation open until the promise is settled. A rejection is told on the console.
function holdUntil(invocation, promise) {
  refuseInModuleScope();
  if ((typeof promise !== "object" && typeof promise !== "function") || promise === null) return;
  settle(promise, endHold, endHoldFailed, holdInvocation(invocation));
}

function endHoldFailed(hold, error) {
  endHold(hold);
  reportUncaught(error, true);
}
