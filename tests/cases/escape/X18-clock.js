// source: side channels
// rule: no clock can be made of what runs beside
// expected: {"timers":0,"streams":0,"messages":0}
export default {
  async run(_) {
    const count = async (tick) => { let n = 0; const stop = tick(() => n++); const before = n; for (let i = 0; i < 200_000; i++); const counted = n - before; stop?.(); return counted; };
    return {
      timers: await count((tick) => { const id = setInterval(tick, 0); return () => clearInterval(id); }),
      streams: await count((tick) => { const stream = new ReadableStream({ pull(c) { tick(); c.enqueue(1); } }, { highWaterMark: 0 }); return () => stream.cancel(); }),
      messages: await count((tick) => { const { port1, port2 } = new MessageChannel(); port1.onmessage = () => { tick(); port2.postMessage(1); }; port2.postMessage(1); return () => port1.close(); }),
    };
  },
};
