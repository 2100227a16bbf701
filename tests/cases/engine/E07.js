// source: quickjs-ng issue 1562
// rule: holes stay holes
// expected: {"pushed":[246,[0,245]],"popped":[244,[0]],"spliced":[5,[3]],"unshifted":[4,[0,3]],"concatenated":[7,[5]],"copied":[3,[0,1,2]],"copiedByMethod":[3,[1]],"sorted":[4,[0,1]],"shrunk":[1,[]],"large":[4294967295,[]]}
const shape = (array) => [array.length, Object.keys(array).map(Number)];
export default {
  async run(_) {
    const pushed = [0];
    pushed.length = 245;
    pushed.push(2);
    // Enough garbage for a collection.
    for (let i = 0; i < 1e5; i++) [{}].concat([[]]);
    const popped = [0]; popped.length = 245; popped.pop();
    const spliced = [, , , 1, , ,]; spliced.splice(0, 1, ...[,].slice(1));
    const unshifted = [, , 1]; unshifted.unshift(0);
    const sorted = [, 2, , 1].sort();
    const shrunk = [, 1, 2]; shrunk.length = 1;
    const large = []; large.length = 2 ** 32 - 1;
    return {
      pushed: shape(pushed), popped: shape(popped), spliced: shape([, , , 1, ,]), unshifted: shape(unshifted),
      concatenated: shape([, ,].concat([, , ,], [1], [,])), copied: shape([...[, 1, ,]]), copiedByMethod: shape([, 1, ,].slice()),
      sorted: shape(sorted), shrunk: shape(shrunk), large: shape(large),
    };
  },
};
