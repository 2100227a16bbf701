// source: open-compute issue 67
// rule: a module that waits for ever in jobs of its own does not start
// limits: {"startup_fuel_max":300000000}
// expected verdict: startup {"started":false,"subrequests_sent":0}
for (;;) await 0;
export default { run(_) { return "never"; } };
