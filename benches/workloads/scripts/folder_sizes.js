// Walks a nested tree: sizes, depth and the largest file of each folder, by recursion and a generator.
function* files(node, path = "") {
  const here = path + "/" + node.name;
  if (node.children === undefined) {
    yield { path: here, bytes: node.bytes };
    return;
  }
  for (const child of node.children) yield* files(child, here);
}

function size(node) {
  return node.children === undefined ? node.bytes : node.children.reduce((sum, child) => sum + size(child), 0);
}

function depth(node) {
  return node.children === undefined ? 0 : 1 + Math.max(0, ...node.children.map(depth));
}

export default {
  async run(root) {
    let largest = null;
    for (const file of files(root)) {
      if (largest === null || file.bytes > largest.bytes) largest = file;
    }
    const folders = root.children
      .filter(({ children }) => children !== undefined)
      .map((folder) => ({ name: folder.name, bytes: size(folder), depth: depth(folder) }));
    return { bytes: size(root), depth: depth(root), largest, folders };
  },
};
