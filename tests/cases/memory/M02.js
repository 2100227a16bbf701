// source: isolated-vm issues 186 and 137
// rule: arrays of a size that there is no memory for
// limits: {"memory_bytes_max":16777216}
// expected verdict: memory {"started":true,"limit":16777216}
export default [
  () => new Array(1024 * 1024 * 60).fill(),
  () => Array(1e9).fill(0),
  () => Array.from({ length: 1e9 }),
  () => Array.from({ length: 1e9 }, () => ({})),
  () => Array(1e8).fill().map(() => []),
  () => [...Array(1e9)],
  () => [...Array(1e9).keys()],
  () => Array.apply(null, Array(1e4)).map(() => Array(1e6).fill(0)),
  () => Object.assign([], Array(1e9).fill(1)),
  () => Array(1e8).fill(0).toSorted(),
  () => { const all = []; for (let i = 0; ; i++) all[i] = i; },
];
