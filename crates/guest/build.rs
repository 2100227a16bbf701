//! Joins the prelude's files into one script, in the order in which they depend on each other.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
};

/// Each file may use what the files before it define.
const FILES: [&str; 51] = [
    "primordials.js",
    "interfaces.js",
    "web.js",
    "events.js",
    "abort.js",
    "encoding.js",
    "url.js",
    "url-pattern-syntax.js",
    "url-pattern.js",
    "streams.js",
    "readable.js",
    "readable-default.js",
    "readable-bytes.js",
    "readable-tee.js",
    "writable.js",
    "pipe.js",
    "transform.js",
    "byte-streams.js",
    "transforms.js",
    "mime.js",
    "headers.js",
    "blob.js",
    "form-data.js",
    "body.js",
    "request.js",
    "response.js",
    "compression.js",
    "messages.js",
    "websocket-frames.js",
    "websocket.js",
    "crypto-algorithms.js",
    "crypto-pairs.js",
    "crypto.js",
    "loader.js",
    "rpc-target.js",
    "byte-externals.js",
    "http.js",
    "sockets.js",
    "stacks.js",
    "inspect.js",
    "console.js",
    "scope.js",
    "timers.js",
    "promises.js",
    "stubs.js",
    "holds.js",
    "workers.js",
    "context.js",
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
        link_wasi_libc()?;
    }
    Ok(())
}

/// javy's engine does not bring the C library that it needs: the system's is linked, with its ways out of the module
/// closed. `build-javy` says where it is and what compiles C.
fn link_wasi_libc() -> Result<(), Box<dyn std::error::Error>> {
    let variable = |name: &str| {
        println!("cargo:rerun-if-env-changed={name}");
        env::var(name)
            .map_err(|_| "the javy build takes more than a feature: run crates/guest/build-javy")
    };
    let stubs = PathBuf::from(env::var("CARGO_MANIFEST_DIR")?).join("c/javy-stubs.c");
    println!("cargo:rerun-if-changed={}", stubs.display());
    let object = PathBuf::from(env::var("OUT_DIR")?).join("javy-stubs.o");
    let status = Command::new(variable("CC_wasm32_unknown_unknown")?)
        .args(["--target=wasm32-unknown-unknown", "-std=c2x", "-O2", "-c"])
        .args([stubs.as_path(), Path::new("-o"), object.as_path()])
        .status()?;
    if !status.success() {
        return Err(format!("{} could not be compiled", stubs.display()).into());
    }
    println!("cargo:rustc-cdylib-link-arg={}", object.display());
    println!(
        "cargo:rustc-link-search=native={}",
        variable("CORACLE_WASI_LIBC")?
    );
    println!("cargo:rustc-link-lib=static=c");
    Ok(())
}
