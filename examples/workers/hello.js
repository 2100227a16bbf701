// The smallest worker: an object whose methods can be called.
//
//   coracle run examples/workers/hello.js
//   coracle run examples/workers/hello.js --args '["world"]'

export default {
  run(name) {
    console.log("saying hello");
    return `Hello, ${name ?? "you"}!`;
  },
};
