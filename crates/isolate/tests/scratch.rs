mod support;
use coracle_value::Value;
use support::{Bench, worker};
#[test]
fn scratch() {
    let bench = Bench::new();
    let big = Value::Array((0..2000).map(|i| Value::object([("id", Value::from(i)), ("name", format!("name {i}").into()), ("tags", Value::array(["a","b"]))])).collect());
    let text = Value::from("x".repeat(100_000));
    let isolate = bench.isolate(worker(&[("main.js", "import {WorkerEntrypoint} from 'cloudflare:workers'; export default { echo(x) { return x; }, async later(x) { return x; }, log(x) { console.log('a', x) } }; export class C extends WorkerEntrypoint { echo(x) { return x; } }")]));
    for (name, arg) in [("echo", Value::from(1)), ("later", Value::from(1)), ("log", Value::from(1)), ("echo", Value::object([("a", 1), ("b", 2)])), ("echo", text), ("echo", big)] {
        let mut best = (u64::MAX, u64::MAX);
        for _ in 0..30 { let r = bench.call(isolate, name, &[arg.clone()]); best = (best.0.min(r.usage.fuel_run), best.1.min(r.usage.cpu_us)); }
        println!("{name} fuel {} cpu {} us  {}", best.0, best.1, format!("{arg:?}").chars().take(40).collect::<String>());
    }
    let r = bench.call(isolate, "echo", &[Value::from(1)]);
    println!("memory {}", r.usage.memory_peak_bytes);
    let cold: Vec<(u64,u64)> = (0..20).map(|_| { let r = bench.run_module("export default { run(x) { return x; } }", Value::from(1)); (r.usage.fuel_load, r.usage.cpu_us) }).collect();
    println!("cold fuel {:?} cpu {:?}", cold[0].0, cold.iter().map(|c| c.1).min());
}
