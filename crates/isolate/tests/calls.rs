//! Calls into an isolate: what comes back, and what state is kept.

use crate::support::{Bench, value, worker};
use coracle_value::Value;

#[test]
fn a_method_of_a_plain_object_gets_its_argument_and_answers() {
    let bench = Bench::new();
    let isolate = bench.isolate(worker(&[(
        "main.js",
        "export default { double(n) { return n * 2; } }",
    )]));
    assert_eq!(
        value(&bench.call(isolate, "double", &[Value::from(21)])),
        Value::from(42)
    );
}

#[test]
fn module_state_lives_from_call_to_call() {
    let bench = Bench::new();
    let spec = worker(&[(
        "main.js",
        "let n = 0; export default { next(_) { return ++n; } }",
    )]);
    let (first, second) = (bench.isolate(spec.clone()), bench.isolate(spec));
    assert_eq!(
        value(&bench.call(first, "next", &[Value::Null])),
        Value::from(1)
    );
    assert_eq!(
        value(&bench.call(first, "next", &[Value::Null])),
        Value::from(2)
    );
    assert_eq!(
        value(&bench.call(second, "next", &[Value::Null])),
        Value::from(1)
    );
}
