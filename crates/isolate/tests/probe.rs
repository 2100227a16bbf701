#![allow(missing_docs, clippy::unwrap_used)]
#[path = "support/lab.rs"]
mod lab;
mod support;
use coracle_value::Value;
use lab::*;
#[test]
fn probe() {
    let lab = Lab::new();
    for n in [100, 1000, 2000, 4000, 10000, 100000] {
        for src in [
            "let a = []; for (let i = 0; i < x; i++) a = [a]; try { return JSON.stringify(a).length } catch (e) { return e.name }",
        ] {
            let isolate = lab.source(&format!("export default {{ async f(x) {{ {src} }} }}"));
            let r = lab.call(isolate, "f", Value::from(n));
            println!(
                "{n} {src} {} {} {}",
                r.usage.fuel_run,
                r.usage.fuel_run / n as u64,
                format!("{:?}", r.outcome)
                    .chars()
                    .take(100)
                    .collect::<String>()
            );
            lab.end(isolate);
            lab.run();
        }
    }
}
