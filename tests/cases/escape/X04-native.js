// source: vm2 GHSA-x6m4-chr9-cg97
// rule: a stack names the worker's own modules only
// open: a DOMException that the engine makes has the frames of the prelude in its stack
// expected: []
export default { run(_) { try { return atob("\u1234"); } catch (error) { return error.stack.match(/coracle:\w+/g) ?? []; } } };
