// The order in which to build packages, or the cycle that forbids one.
export default {
  async run(edges) {
    const needs = new Map();
    const neededBy = new Map();
    const touch = (name) => {
      if (!needs.has(name)) needs.set(name, new Set());
      if (!neededBy.has(name)) neededBy.set(name, new Set());
    };
    for (const [name, dependency] of edges) {
      touch(name);
      touch(dependency);
      needs.get(name).add(dependency);
      neededBy.get(dependency).add(name);
    }

    const ready = [...needs].filter(([, wanted]) => wanted.size === 0).map(([name]) => name);
    const order = [];
    while (ready.length > 0) {
      const name = ready.sort().shift();
      order.push(name);
      for (const waiting of neededBy.get(name)) {
        const wanted = needs.get(waiting);
        wanted.delete(name);
        if (wanted.size === 0) ready.push(waiting);
      }
    }
    const stuck = [...needs.keys()].filter((name) => !order.includes(name));
    return stuck.length > 0 ? { order: null, stuck: stuck.sort() } : { order, stuck: [] };
  },
};
