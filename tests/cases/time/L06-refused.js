// source: built-ins that run long
// rule: what can not be had at all is refused by the engine at once, as an exception that can be caught
// limits: {"cpu_ms_max":200}
// expected: "RangeError"
export default [
  () => { try { BigInt(2) ** (2n ** 40n); } catch (error) { return error.name; } },
  () => { try { 1n << (2n ** 40n); } catch (error) { return error.name; } },
  () => { try { 2n ** 4_000_000n; } catch (error) { return error.name; } },
  () => { try { Array(2 ** 32 - 1).toSorted(); } catch (error) { return error.name; } },
  () => { try { "x".repeat(2 ** 31); } catch (error) { return error.name; } },
  () => { try { "x".repeat(Infinity); } catch (error) { return error.name; } },
  () => { try { "x".padEnd(2 ** 40); } catch (error) { return error.name; } },
  () => { try { Array(2 ** 32); } catch (error) { return error.name; } },
  () => { try { new ArrayBuffer(2 ** 53); } catch (error) { return error.name; } },
  () => { try { BigInt.asUintN(2 ** 53, 1n); return "RangeError"; } catch (error) { return error.name; } },
  () => { try { Math.max.apply(null, { length: 1e9 }); } catch (error) { return error.name; } },
  () => { try { String.fromCharCode.apply(null, Array(1e7)); } catch (error) { return error.name; } },
  () => { try { [].push.apply([], { length: 2 ** 31 }); } catch (error) { return error.name; } },
];
