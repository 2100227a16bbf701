//! The image: the guest, set up, snapshotted and compiled to native code.
//!
//! Making one takes seconds, loading one takes a millisecond. A release binary carries its image behind its own end
//! ([`Image::append_to`]); without one, and on a CPU below the baseline, it is made at the first start and kept in a
//! cache folder.

mod file;
mod snapshot;

use crate::sandbox::{self, Cpu};
use file::Cache;
use sha2::{Digest, Sha256};
use std::{
    io,
    path::{Path, PathBuf},
};
use wasmtime::{Engine, Module};

/// The CPU that images are compiled for, by the name that its vendors use.
pub const CPU_BASELINE: &str = if cfg!(target_arch = "x86_64") {
    "x86-64-v3"
} else {
    "generic"
};

/// The Wasmtime that runs guests.
pub const WASMTIME_VERSION: &str = env!("CORACLE_WASMTIME_VERSION");
/// The QuickJS-ng in the built-in guest.
pub const QUICKJS_VERSION: &str = "0.16.2";

/// The guest as it was built: a plain Wasm module.
#[derive(Clone)]
pub struct Guest {
    wasm: Vec<u8>,
    hash: [u8; 32],
}

impl Guest {
    /// The guest that was built together with this crate.
    #[must_use]
    pub fn embedded() -> Self {
        Self::from_wasm(include_bytes!(concat!(env!("OUT_DIR"), "/guest.wasm")).to_vec())
    }

    /// Another module with the same exports and imports.
    #[must_use]
    pub fn from_wasm(wasm: Vec<u8>) -> Self {
        let hash = Sha256::digest(&wasm).into();
        Self { wasm, hash }
    }

    /// SHA-256 of the module, in hexadecimal: what usage, metrics and cache keys call the guest.
    #[must_use]
    pub fn hash(&self) -> String {
        self.hash.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// The module.
    #[must_use]
    pub fn wasm(&self) -> &[u8] {
        &self.wasm
    }
}

/// A compiled snapshot of a guest.
#[derive(Clone)]
pub struct Image {
    guest_hash: [u8; 32],
    code: Vec<u8>,
}

/// Why there is no image.
#[derive(Debug, thiserror::Error)]
pub enum ImageError {
    /// The guest could not be set up or compiled.
    #[error("the guest could not be compiled: {0}")]
    Compile(String),
    /// Reading or writing it failed.
    #[error("image file {path}: {source}")]
    File {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// The cache folder is not safe to load code from.
    #[error(
        "cache folder {path} belongs to another user, can be written by others or is a symbolic link; code is loaded from it"
    )]
    CacheExposed {
        /// The folder of our own inside the one that was given.
        path: PathBuf,
    },
}

impl ImageError {
    fn compile(error: wasmtime::Error) -> Self {
        Self::Compile(format!("{error:#}"))
    }
}

impl Image {
    /// Sets the guest up, takes the snapshot and compiles it for [`CPU_BASELINE`].
    ///
    /// # Errors
    /// When the guest's set-up fails, or it is not the module that a guest is made of.
    pub fn compile(guest: &Guest) -> Result<Self, ImageError> {
        Self::compile_for(guest, Cpu::Baseline)
    }

    /// As [`Image::compile`], for this machine's CPU whatever it is.
    ///
    /// # Errors
    /// As [`Image::compile`].
    pub fn compile_native(guest: &Guest) -> Result<Self, ImageError> {
        Self::compile_for(guest, Cpu::Native)
    }

    /// Compiles a guest that needs no set-up. Tests put modules in the engine's place with this that no set-up could
    /// have made.
    ///
    /// # Errors
    /// When it can't be compiled.
    #[doc(hidden)]
    pub fn compile_as_it_is(guest: &Guest) -> Result<Self, ImageError> {
        Self::compile_wasm(guest, &guest.wasm, Cpu::Native)
    }

    fn compile_for(guest: &Guest, cpu: Cpu) -> Result<Self, ImageError> {
        let snapshot = snapshot::snapshot(&guest.wasm).map_err(ImageError::compile)?;
        Self::compile_wasm(guest, &snapshot, cpu)
    }

    fn compile_wasm(guest: &Guest, wasm: &[u8], cpu: Cpu) -> Result<Self, ImageError> {
        let code = Engine::new(&sandbox::compile_config(cpu))
            .and_then(|engine| engine.precompile_module(wasm))
            .map_err(ImageError::compile)?;
        Ok(Self {
            guest_hash: guest.hash,
            code,
        })
    }

    /// The image of `guest`, from the first place that has it: behind the end of this executable, the cache folder, or
    /// compiled now and kept in the cache folder. On a CPU below [`CPU_BASELINE`] it is one for this very CPU, and the
    /// executable's is of no use.
    ///
    /// `cache` may be a folder that everybody can write to, such as `/tmp`: what is kept is in `coracle` inside it, which
    /// is made for this user alone.
    ///
    /// # Errors
    /// When it has to be compiled and can't be. A cache that can't be written is no error; a `coracle` in it that others
    /// can write to is, because code is loaded from it.
    pub fn obtain(guest: &Guest, cache: Option<&Path>) -> Result<Self, ImageError> {
        Self::obtain_for(guest, cache, Cpu::of_this_machine())
    }

    fn obtain_for(guest: &Guest, cache: Option<&Path>, cpu: Cpu) -> Result<Self, ImageError> {
        if cpu == Cpu::Baseline
            && let Some(image) = Self::behind(Path::new("/proc/self/exe"), guest)
        {
            return Ok(image);
        }
        let Some(folder) = cache else {
            return Self::compile_for(guest, cpu);
        };
        let cache = Cache::open(folder)?;
        let (hash, compatibility) = (guest.hash(), sandbox::compatibility(cpu));
        let name = format!("{}-{compatibility}.image", &hash[..16]);
        if let Some(image) = cache.read(&name, guest) {
            return Ok(image);
        }
        tracing::info!(folder = %folder.display(), "compiling the guest, once for this machine");
        let image = Self::compile_for(guest, cpu)?;
        if let Err(error) = cache.write(&name, &image) {
            tracing::warn!(folder = %folder.display(), %error, "the compiled guest could not be kept");
        }
        Ok(image)
    }

    pub(crate) fn load(&self, engine: &Engine) -> wasmtime::Result<Module> {
        #[expect(unsafe_code, reason = "loading compiled code is trusting it")]
        // SAFETY: the code was compiled by this crate: it comes from memory, from behind the end of this executable, or
        // from a file that only this user or root can have written, and its hash is that of what was written.
        unsafe {
            Module::deserialize(engine, &self.code)
        }
    }
}

#[cfg(test)]
mod tests;
