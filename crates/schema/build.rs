//! Generates the types from the committed code generator request, so that building needs no `capnp` compiler.

use std::{env, fs::File, path::PathBuf};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let request = PathBuf::from(env::var("CARGO_MANIFEST_DIR")?).join("../../schema/coracle.req");
    println!("cargo:rerun-if-changed={}", request.display());
    capnpc::codegen::CodeGenerationCommand::new()
        .output_directory(PathBuf::from(env::var("OUT_DIR")?))
        .run(File::open(&request)?)?;
    Ok(())
}
