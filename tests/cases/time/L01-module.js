// source: open-compute issue 67
// rule: modules that never end do not start, and nothing of the call has run
// limits: {"startup_fuel_max":300000000}
// expected verdict: startup {"started":false,"subrequests_sent":0}
for (;;);
export default { run(_) { return "never"; } };
