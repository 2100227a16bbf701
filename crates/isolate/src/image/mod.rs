//! The image: the guest, set up, snapshotted and compiled to native code, and with it the transpiler.
//!
//! Making one takes seconds, loading one takes a millisecond. A release binary carries its image behind its own end
//! ([`Image::append_to`]); without one, and on a CPU below the baseline, it is made at the first start and kept in a
//! cache folder.

mod file;
mod snapshot;

use crate::sandbox::{self, Cpu};
use file::Cache;
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, fcntl_get_seals, memfd_create};
use sha2::{Digest, Sha256};
use std::{
    borrow::Cow,
    fs::File,
    io::{self, Write},
    ops::Range,
    path::{Path, PathBuf},
    sync::Arc,
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

/// The guest as it was built: a plain Wasm module. With it goes the transpiler, if it is to have one.
#[derive(Clone)]
pub struct Guest {
    wasm: Cow<'static, [u8]>,
    hash: [u8; 32],
    transpiler: &'static [u8],
    /// What an image of it is known by.
    image_hash: [u8; 32],
}

static GUEST: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/guest.wasm"));
/// Made when this was built: it would take a while at each start.
static GUEST_HASH: &[u8; 32] = include_bytes!(concat!(env!("OUT_DIR"), "/guest.sha256"));
static TRANSPILER: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/transpiler.wasm"));

impl Guest {
    /// The guest that was built together with this crate, with the transpiler.
    #[must_use]
    pub fn embedded() -> Self {
        Self::hashed(GUEST.into(), *GUEST_HASH).with_transpiler()
    }

    /// Another module with the same exports and imports, and no transpiler.
    #[must_use]
    pub fn from_wasm(wasm: Vec<u8>) -> Self {
        let hash = Sha256::digest(&wasm).into();
        Self::hashed(wasm.into(), hash)
    }

    fn hashed(wasm: Cow<'static, [u8]>, hash: [u8; 32]) -> Self {
        Self {
            wasm,
            hash,
            transpiler: &[],
            image_hash: hash,
        }
    }

    /// The same guest, with the transpiler that was built together with this crate.
    #[must_use]
    pub fn with_transpiler(self) -> Self {
        // Made when this was built: it takes a while, and nothing but accidents is to be found by it.
        let transpiler_hash = env!("CORACLE_TRANSPILER_HASH");
        let image_hash = Sha256::new_with_prefix(self.hash).chain_update(transpiler_hash);
        Self {
            transpiler: TRANSPILER,
            image_hash: image_hash.finalize().into(),
            ..self
        }
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

/// A compiled snapshot of a guest, and the compiled transpiler.
#[derive(Clone)]
pub struct Image {
    /// What it is made of: a [`Guest`]'s `image_hash`.
    hash: [u8; 32],
    guest: Code,
    transpiler: Option<Code>,
}

/// Native code.
#[derive(Clone)]
enum Code {
    Here(Here),
    /// In a file that another process has handed down.
    HandedDown(Arc<File>),
}

/// Bytes among others, such as those of a file.
#[derive(Clone)]
struct Here {
    all: Arc<Vec<u8>>,
    range: Range<usize>,
}

impl From<Vec<u8>> for Here {
    fn from(bytes: Vec<u8>) -> Self {
        let range = 0..bytes.len();
        Self {
            all: Arc::new(bytes),
            range,
        }
    }
}

/// Files in memory that hold the code of an image, for a process that this one starts. Nobody can change them any more.
pub struct HandedDown {
    /// The guest's.
    pub guest: File,
    /// The transpiler's, if there is one.
    pub transpiler: Option<File>,
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
        let engine = Engine::new(&sandbox::compile_config(cpu)).map_err(ImageError::compile)?;
        let compile = |wasm: &[u8]| {
            let code = engine.precompile_module(wasm);
            let code = code.map_err(ImageError::compile)?;
            Ok(Code::Here(code.into()))
        };
        let has_transpiler = !guest.transpiler.is_empty();
        Ok(Self {
            hash: guest.image_hash,
            guest: compile(wasm)?,
            transpiler: has_transpiler
                .then(|| compile(guest.transpiler))
                .transpose()?,
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
        let hash: String = guest.image_hash[..8]
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        let name = format!("{hash}-{}.image", sandbox::compatibility(cpu));
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

    /// The code in files for processes that this one starts.
    ///
    /// # Errors
    /// When they can't be made.
    pub fn hand_down(&self) -> io::Result<HandedDown> {
        Ok(HandedDown {
            guest: self.guest.hand_down()?,
            transpiler: self.transpiler.as_ref().map(Code::hand_down).transpose()?,
        })
    }

    /// The image that the process which started this one has handed down ([`Image::hand_down`]). All such processes share
    /// its pages.
    #[must_use]
    pub fn handed_down(files: HandedDown) -> Self {
        let code = |file| Code::HandedDown(Arc::new(file));
        Self {
            hash: [0; 32],
            guest: code(files.guest),
            transpiler: files.transpiler.map(code),
        }
    }

    pub(crate) fn load_guest(&self, engine: &Engine) -> wasmtime::Result<Module> {
        self.guest.load(engine)
    }

    /// `None`: there is none.
    pub(crate) fn load_transpiler(&self, engine: &Engine) -> wasmtime::Result<Option<Module>> {
        let code = self.transpiler.as_ref();
        code.map(|code| code.load(engine)).transpose()
    }
}

impl HandedDown {
    /// The same files, for another process.
    ///
    /// # Errors
    /// When there are too many open.
    pub fn try_clone(&self) -> io::Result<Self> {
        Ok(Self {
            guest: self.guest.try_clone()?,
            transpiler: self.transpiler.as_ref().map(File::try_clone).transpose()?,
        })
    }
}

impl Code {
    /// Of what is in memory; nothing is handed down twice.
    fn bytes(&self) -> &[u8] {
        match self {
            Self::Here(Here { all, range }) => &all[range.clone()],
            Self::HandedDown(_) => &[],
        }
    }

    fn hand_down(&self) -> io::Result<File> {
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let mut file = File::from(memfd_create("coracle-image", flags)?);
        file.write_all(self.bytes())?;
        // Not `WRITE`, which the kernel refuses while anything, such as its own compaction, holds one of the pages. Nobody
        // has mapped them for writing, so that both forbid the same.
        let seals = SealFlags::FUTURE_WRITE | SealFlags::GROW | SealFlags::SHRINK | SealFlags::SEAL;
        fcntl_add_seals(&file, seals)?;
        Ok(file)
    }

    fn load(&self, engine: &Engine) -> wasmtime::Result<Module> {
        match self {
            Self::HandedDown(file) => {
                let file = file.try_clone()?;
                #[expect(unsafe_code, reason = "loading compiled code is trusting it")]
                // SAFETY: the file is what this process was started with, by one that had compiled the code or read it
                // as below; its seals keep everybody from changing it, and one that has none is refused.
                unsafe {
                    wasmtime::ensure!(is_sealed(&file), "the image can still be changed");
                    Module::deserialize_open_file(engine, file)
                }
            }
            #[expect(unsafe_code, reason = "loading compiled code is trusting it")]
            // SAFETY: the code was compiled by this crate: it comes from memory, from behind the end of this executable,
            // or from a file that only this user or root can have written, and its hash is that of what was written.
            Self::Here(_) => unsafe { Module::deserialize(engine, self.bytes()) },
        }
    }
}

fn is_sealed(file: &File) -> bool {
    let needed = SealFlags::FUTURE_WRITE | SealFlags::GROW | SealFlags::SHRINK | SealFlags::SEAL;
    fcntl_get_seals(file).is_ok_and(|seals| seals.contains(needed))
}

#[cfg(test)]
mod tests;
