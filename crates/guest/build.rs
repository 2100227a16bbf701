//! Joins the prelude's files into one script, in the order in which they depend on each other.

use std::{env, fs, path::PathBuf};

/// Each file may use what the files before it define.
const FILES: [&str; 13] = [
    "primordials.js",
    "stacks.js",
    "inspect.js",
    "console.js",
    "codegen.js",
    "scope.js",
    "timers.js",
    "web.js",
    "promises.js",
    "workers.js",
    "commonjs.js",
    "values.js",
    "dispatch.js",
];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = PathBuf::from(env::var("CARGO_MANIFEST_DIR")?).join("js");
    let mut script = String::from("(function (host) { \"use strict\";\n");
    for name in FILES {
        let path = folder.join(name);
        println!("cargo:rerun-if-changed={}", path.display());
        script +=
            &fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    }
    script += "\nreturn hooks; })\n";
    fs::write(
        PathBuf::from(env::var("OUT_DIR")?).join("prelude.js"),
        script,
    )?;

    if env::var_os("CARGO_FEATURE_JAVY").is_some() {
        link_wasi_libc();
    }
    Ok(())
}

/// javy's engine does not bring the C library that it needs; `build-javy` says where the system's is.
fn link_wasi_libc() {
    println!("cargo:rerun-if-env-changed=CORACLE_WASI_LIBC");
    let folder = env::var("CORACLE_WASI_LIBC")
        .expect("the javy build takes more than a feature: run crates/guest/build-javy");
    println!("cargo:rustc-link-search=native={folder}");
    println!("cargo:rustc-link-lib=static=c");
}
