mod support;
use coracle_value::Value;
use support::{Bench, worker};
#[test]
fn scratch() {
    let bench = Bench::new();
    let isolate = bench.isolate(worker(&[("walk.js", include_str!("walk.js"))])); 
    let r = bench.call(isolate, "run", &[Value::Undefined]);
    match &r.outcome { coracle_isolate::Outcome::Value(_) => {
      let v = support::value(&r);
      println!("{} globals {:?}", v.get("globals").unwrap().as_array().unwrap().len(), v.get("globals").unwrap().as_array().unwrap().iter().map(|v| v.as_str().unwrap().to_owned()).collect::<Vec<_>>());
      println!("pwned {:?}", v.get("pwned"));
      for f in v.get("functions").unwrap().as_array().unwrap() { println!("F {}", f.as_str().unwrap()); }
      for f in v.get("more").unwrap().as_array().unwrap() { println!("M {}", f.as_str().unwrap()); }
      for f in v.get("texts").unwrap().as_array().unwrap() { println!("T {}", f.as_str().unwrap().replace("\n"," ").chars().take(100).collect::<String>()); }
      println!("{:?}", r.usage);
    }, o => println!("{} ", format!("{o:?}").chars().take(900).collect::<String>()) };
    for l in support::logs(&r).iter().take(20) { println!("L {}", l.chars().take(100).collect::<String>()); }
}
