//! Builds the guest and the transpiler from source, so that an ordinary `cargo build` needs nothing but clang and the Wasm
//! target.
//!
//! Each is a workspace of its own: another target, another profile, and for the guest flags that only its C code takes.
//! What comes out are plain Wasm modules; the snapshot is taken and both are compiled by `Image`, once, by whoever needs
//! them first.

use sha2::{Digest, Sha256};
use std::{
    env, fs,
    hash::{DefaultHasher, Hash, Hasher},
    path::{Path, PathBuf},
    process::Command,
};

const TARGET: &str = "wasm32-unknown-unknown";

/// Optimise, convert floats without branches (2 % of what programs take), and undo rquickjs-sys' EMSCRIPTEN so that the
/// interpreter dispatches by computed goto; `__DJGPP` then keeps threads and atomics out. See docs/decisions/0002-guest-engine.md; a test guards what this leans on.
const C_FLAGS: &str = "-O3 -mnontrapping-fptoint -msign-ext -UEMSCRIPTEN -D__DJGPP=1";

/// One mebibyte of shadow stack below the data, so that running over it traps; and a function table that the host can
/// reach and grow.
const LINK_FLAGS: &str =
    "-C link-arg=-zstack-size=1048576 -C link-arg=--export-table -C link-arg=--growable-table";

/// Two mebibytes, likewise; what is nested deeper than they hold is refused.
const TRANSPILER_LINK_FLAGS: &str = "-C link-arg=-zstack-size=2097152";

fn main() {
    println!(
        "cargo:rustc-env=CORACLE_WASMTIME_VERSION={}",
        wasmtime_version()
    );
    let manifest = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it"));
    let guest = manifest.join("../guest");
    for path in [
        "Cargo.toml",
        "Cargo.lock",
        "build.rs",
        "engine",
        "src",
        "js",
        "../abi/src",
        "../value/src",
        "../value/Cargo.toml",
    ] {
        println!("cargo:rerun-if-changed={}", guest.join(path).display());
    }
    let transpiler = manifest.join("../transpiler");
    for path in ["Cargo.toml", "Cargo.lock", "no-js", "src"] {
        println!("cargo:rerun-if-changed={}", transpiler.join(path).display());
    }
    for variable in ["CORACLE_CLANG", "CORACLE_LLVM_AR"] {
        println!("cargo:rerun-if-env-changed={variable}");
    }
    obtain("guest", || build_guest(&guest));
    obtain("transpiler", || {
        let mut cargo = cargo(&transpiler, TRANSPILER_LINK_FLAGS);
        run(&mut cargo, "transpiler")
    });
    let guest = fs::read(out().join("guest.wasm")).expect("it has just been written");
    fs::write(out().join("guest.sha256"), Sha256::digest(guest)).expect("cargo made the folder");
    let mut hasher = DefaultHasher::new();
    let transpiler = fs::read(out().join("transpiler.wasm")).expect("it has just been written");
    transpiler.hash(&mut hasher);
    println!(
        "cargo:rustc-env=CORACLE_TRANSPILER_HASH={:016x}",
        hasher.finish()
    );
}

/// Puts a module where the crate includes it from.
fn obtain(name: &str, build: impl FnOnce() -> PathBuf) {
    // One that was built elsewhere, such as in another stage of a container's build.
    let variable = format!("CORACLE_{}_WASM", name.to_uppercase());
    println!("cargo:rerun-if-env-changed={variable}");
    let wasm = match env::var_os(variable) {
        Some(built) => {
            println!("cargo:rerun-if-changed={}", built.display());
            PathBuf::from(built)
        }
        None => build(),
    };
    fs::copy(&wasm, out().join(format!("{name}.wasm"))).expect("the module can be read");
}

fn out() -> PathBuf {
    PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets it"))
}

/// A workspace's own target folder, beside the host's, so that it is kept between builds.
fn target_folder(name: &str) -> PathBuf {
    // target/<profile>/build/<crate>/out
    let out = out();
    out.ancestors().nth(4).unwrap_or(&out).join(name)
}

fn build_guest(guest: &Path) -> PathBuf {
    let clang = tool(
        "CORACLE_CLANG",
        &["clang-19", "clang-20", "clang-18", "clang"],
    );
    let ar = tool(
        "CORACLE_LLVM_AR",
        &["llvm-ar-19", "llvm-ar-20", "llvm-ar-18", "llvm-ar"],
    );
    let mut cargo = cargo(guest, LINK_FLAGS);
    cargo
        .env("CC_wasm32_unknown_unknown", guest.join("engine/cc"))
        .env("CORACLE_GUEST_CLANG", clang)
        .env("AR_wasm32_unknown_unknown", ar)
        .env("CFLAGS_wasm32_unknown_unknown", c_flags(guest));
    run(&mut cargo, "guest")
}

/// Cargo in another workspace.
fn cargo(workspace: &Path, link_flags: &str) -> Command {
    let mut cargo = Command::new(env::var_os("CARGO").expect("cargo sets it"));
    for (name, _) in env::vars_os() {
        // What cargo set for the host's build must not reach this one.
        let name = name.to_string_lossy().into_owned();
        let of_this_build = [
            "RUSTFLAGS",
            "RUSTC_WRAPPER",
            "RUSTC_WORKSPACE_WRAPPER",
            "CLIPPY_ARGS",
        ];
        if name.starts_with("CARGO_") && name != "CARGO_HOME" || of_this_build.contains(&&name[..])
        {
            cargo.env_remove(name);
        }
    }
    let flags = format!("{link_flags} {}", remap_paths(workspace));
    cargo.current_dir(workspace).env("RUSTFLAGS", flags);
    cargo
}

/// Builds the module `coracle_<name>`.
fn run(cargo: &mut Command, name: &str) -> PathBuf {
    let target = target_folder(name);
    let status = cargo
        .args(["build", "--release", "--locked", "--target", TARGET])
        .arg("--target-dir")
        .arg(&target)
        .status()
        .expect("cargo can be run");
    assert!(
        status.success(),
        "the {name} did not build; `make setup-build` installs clang, llvm-ar and the Rust target {TARGET}"
    );
    target
        .join(TARGET)
        .join(format!("release/coracle_{name}.wasm"))
}

/// The flags of C, which name the state of what changes the engine: cargo compiles C again where its flags are others, and does
/// not look at the compiler that the flags go to.
fn c_flags(guest: &Path) -> String {
    let mut files: Vec<PathBuf> = fs::read_dir(guest.join("engine"))
        .expect("it is part of the guest")
        .map(|file| file.expect("it can be read").path())
        .collect();
    files.sort();
    let mut hasher = DefaultHasher::new();
    for file in files {
        fs::read(&file).expect("it can be read").hash(&mut hasher);
    }
    format!("{C_FLAGS} -DCORACLE_ENGINE={}", hasher.finish())
}

/// Keeps this machine's paths out of the guest, whose memory a worker's bug could show, and whose hash names it.
fn remap_paths(guest: &Path) -> String {
    let crates = guest.parent().and_then(|crates| crates.canonicalize().ok());
    let cargo_home = env::var_os("CARGO_HOME")
        .map(PathBuf::from)
        .or_else(|| Some(PathBuf::from(env::var_os("HOME")?).join(".cargo")));
    [(crates, "/crates"), (cargo_home, "/cargo")]
        .into_iter()
        .filter_map(|(path, name)| Some(format!("--remap-path-prefix={}={name}", path?.to_str()?)))
        .collect::<Vec<_>>()
        .join(" ")
}

fn tool(variable: &str, candidates: &[&str]) -> String {
    if let Ok(chosen) = env::var(variable) {
        return chosen;
    }
    candidates
        .iter()
        .find(|name| Command::new(name).arg("--version").output().is_ok_and(|output| output.status.success()))
        .unwrap_or_else(|| panic!("none of {candidates:?} is installed; `make setup-build` installs them, {variable} names another"))
        .to_string()
}

/// Wasmtime's version as the lock file has it; Wasmtime itself does not say.
fn wasmtime_version() -> String {
    let manifest = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it"));
    let lock = manifest.join("../../Cargo.lock");
    println!("cargo:rerun-if-changed={}", lock.display());
    let text = fs::read_to_string(lock).unwrap_or_default();
    let mut lines = text
        .lines()
        .skip_while(|line| *line != "name = \"wasmtime\"");
    let version = lines
        .nth(1)
        .and_then(|line| line.strip_prefix("version = "));
    version
        .map_or("unknown", |version| version.trim_matches('"'))
        .to_owned()
}
