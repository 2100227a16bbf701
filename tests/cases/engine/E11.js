// source: quickjs-ng issues 1626 to 1628
// rule: a trap of a proxy that breaks the rules is a TypeError
// expected: "TypeError"
export default [
  ...[
    () => Object.keys(new Proxy({}, { ownKeys: () => 1 })),
    () => Object.keys(new Proxy({}, { ownKeys: () => [1] })),
    () => Object.keys(new Proxy({}, { ownKeys: () => ["a", "a"] })),
    () => Reflect.ownKeys(new Proxy(Object.freeze({ a: 1 }), { ownKeys: () => [] })),
    () => Reflect.ownKeys(new Proxy(Object.preventExtensions({}), { ownKeys: () => ["a"] })),
    () => new Proxy(Object.freeze({ a: 1 }), { get: () => 2 }).a,
    () => { "use strict"; new Proxy(Object.freeze({ a: 1 }), { set: () => true }).a = 2; },
    () => { "use strict"; new Proxy({}, { set: () => false }).a = 2; },
    () => "a" in new Proxy(Object.freeze({ a: 1 }), { has: () => false }),
    () => { "use strict"; delete new Proxy(Object.freeze({ a: 1 }), { deleteProperty: () => true }).a; },
    () => Object.getPrototypeOf(new Proxy({}, { getPrototypeOf: () => 1 })),
    () => Object.getPrototypeOf(new Proxy(Object.preventExtensions({}), { getPrototypeOf: () => null })),
    () => Object.setPrototypeOf(new Proxy({}, { setPrototypeOf: () => false }), null),
    () => Object.isExtensible(new Proxy({}, { isExtensible: () => false })),
    () => Object.preventExtensions(new Proxy({}, { preventExtensions: () => true })),
    () => Object.getOwnPropertyDescriptor(new Proxy({}, { getOwnPropertyDescriptor: () => 1 }), "a"),
    () => Object.getOwnPropertyDescriptor(new Proxy({}, { getOwnPropertyDescriptor: () => ({ configurable: false, value: 1 }) }), "a"),
    () => Object.getOwnPropertyDescriptor(new Proxy(Object.freeze({ a: 1 }), { getOwnPropertyDescriptor: () => undefined }), "a"),
    () => Object.defineProperty(new Proxy({}, { defineProperty: () => false }), "a", {}),
    () => Object.defineProperty(new Proxy({}, { defineProperty: () => true }), "a", { configurable: false }),
    () => new (new Proxy(class {}, { construct: () => 1 }))(),
    () => { const { proxy, revoke } = Proxy.revocable({}, {}); revoke(); proxy.a; },
    () => { const { proxy, revoke } = Proxy.revocable({}, { get() { revoke(); return 1; } }); proxy.a; proxy.a; },
    () => { const { proxy, revoke } = Proxy.revocable([], {}); revoke(); Array.isArray(proxy); },
    () => new Proxy({}, { get: 1 }).a,
    () => new Proxy({}, null),
  ].map((attempt) => () => { try { attempt(); return "nothing was thrown"; } catch (error) { return error.name; } }),
];
