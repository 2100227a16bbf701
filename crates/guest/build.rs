//! Joins the prelude's files into one script, in the order in which they depend on each other.

use std::{env, fs, path::PathBuf};

/// Each file may use what the files before it define.
const FILES: [&str; 10] = [
    "primordials.js",
    "inspect.js",
    "console.js",
    "codegen.js",
    "scope.js",
    "timers.js",
    "web.js",
    "workers.js",
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

    // javy's runtime expects wasi-libc, whose headers and archive the system provides.
    if env::var("CARGO_FEATURE_JAVY").is_ok() {
        println!("cargo:rustc-link-search=native=/usr/lib/wasm32-wasi");
        println!("cargo:rustc-link-lib=static=c");
    }
    Ok(())
}
