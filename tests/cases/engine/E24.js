// source: clocks that measure code
// rule: time stands still while code runs, and goes on over a wait
// expected: {"still":[0,0,0,0],"moved":true,"monotonic":true}
const spin = () => { for (let i = 0; i < 300_000; i++); };
export default {
  async run(_x, env) {
    const date = Date.now(), performed = performance.now(), made = new Date().getTime(), stamp = new Event("x").timeStamp;
    spin();
    const still = [Date.now() - date, performance.now() - performed, new Date().getTime() - made, new Event("x").timeStamp - stamp];
    await Promise.resolve();
    const inJobs = Date.now() - date;
    await env.delay(20);
    const now = Date.now();
    return { still, moved: inJobs === 0 && now - date >= 15, monotonic: Date.now() >= now };
  },
};
