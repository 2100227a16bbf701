//! The image: the guest, set up, snapshotted and compiled to native code.
//!
//! Making one takes seconds, loading one takes a millisecond. A release binary carries its image behind its own end
//! ([`Image::append_to`]); without one, and on a CPU below the baseline, it is made at the first start and kept in a
//! cache folder.

use crate::{border, sandbox};
use coracle_abi::export;
use sha2::{Digest, Sha256};
use std::{
    fs,
    io::{self, Read, Seek, SeekFrom, Write},
    os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt},
    path::{Path, PathBuf},
    task::{Context, Poll, Waker},
};
use wasmtime::{Engine, Instance, Module, Store, Val};
use wasmtime_wizer::{InstanceState, SnapshotVal, ValType, Wizer};

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
        "cache folder {path} belongs to another user or can be written by others; code is loaded from it"
    )]
    CacheExposed {
        /// The folder.
        path: PathBuf,
    },
}

/// Starts an image. What follows: the guest's hash, the code, and at the very end the whole's length.
const MAGIC: &[u8; 16] = b"coracle-image-01";
const HEAD_BYTES: usize = MAGIC.len() + 32 + 32;
const TAIL_BYTES: usize = 8 + MAGIC.len();

impl Image {
    /// Sets the guest up, takes the snapshot and compiles it for [`CPU_BASELINE`], or for this machine if it has less.
    pub fn compile(guest: &Guest) -> Result<Self, ImageError> {
        let snapshot =
            snapshot(&guest.wasm).map_err(|error| ImageError::Compile(format!("{error:?}")))?;
        let compile = |config: wasmtime::Config| Engine::new(&config)?.precompile_module(&snapshot);
        let code = compile(sandbox::compile_config(true))
            .map_err(|error| ImageError::Compile(format!("{error:?}")))?;
        Ok(Self {
            guest_hash: guest.hash,
            code,
        })
    }

    /// As [`Image::compile`], for this machine's CPU whatever it is.
    pub fn compile_native(guest: &Guest) -> Result<Self, ImageError> {
        let snapshot =
            snapshot(&guest.wasm).map_err(|error| ImageError::Compile(format!("{error:?}")))?;
        let code = Engine::new(&sandbox::compile_config(false))
            .and_then(|engine| engine.precompile_module(&snapshot))
            .map_err(|error| ImageError::Compile(format!("{error:?}")))?;
        Ok(Self {
            guest_hash: guest.hash,
            code,
        })
    }

    /// The image of `guest`, from the first place that has it: behind the end of this executable, the cache folder, or
    /// compiled now and kept in the cache folder.
    ///
    /// # Errors
    /// When it has to be compiled and can't be. A cache that can't be written is no error; one that others can write
    /// is, because code is loaded from it.
    pub fn obtain(guest: &Guest, cache: Option<&Path>) -> Result<Self, ImageError> {
        if let Some(image) = Self::from_own_executable(guest) {
            return Ok(image);
        }
        let Some(folder) = cache else {
            return Self::compile(guest);
        };
        prepare_cache(folder)?;
        let file = folder.join(format!(
            "{}-{}.image",
            &guest.hash()[..16],
            sandbox::compatibility()
        ));
        if let Ok(bytes) = fs::read(&file)
            && let Some(image) = Self::parse(&bytes, guest)
        {
            return Ok(image);
        }
        tracing::info!(folder = %folder.display(), "compiling the guest, once for this machine");
        let image = Self::compile(guest)?;
        if let Err(error) = image.write_new(&file) {
            tracing::warn!(file = %file.display(), %error, "the compiled guest could not be kept");
        }
        Ok(image)
    }

    fn from_own_executable(guest: &Guest) -> Option<Self> {
        let mut file = fs::File::open("/proc/self/exe").ok()?;
        let end = file.seek(SeekFrom::End(0)).ok()?;
        let mut tail = [0; TAIL_BYTES];
        file.seek(SeekFrom::Start(end.checked_sub(TAIL_BYTES as u64)?))
            .ok()?;
        file.read_exact(&mut tail).ok()?;
        if &tail[8..] != MAGIC {
            return None;
        }
        let length = u64::from_le_bytes(tail[..8].try_into().ok()?);
        file.seek(SeekFrom::Start(end.checked_sub(length)?)).ok()?;
        let mut bytes = vec![0; usize::try_from(length).ok()?];
        file.read_exact(&mut bytes).ok()?;
        Self::parse(&bytes, guest)
    }

    /// Writes a copy of the executable `source` to `destination` that carries this image behind its end.
    pub fn append_to(&self, source: &Path, destination: &Path) -> Result<(), ImageError> {
        let failed = |path: &Path| {
            let path = path.to_owned();
            move |source| ImageError::File { path, source }
        };
        fs::copy(source, destination).map_err(failed(source))?;
        let mut file = fs::OpenOptions::new()
            .append(true)
            .open(destination)
            .map_err(failed(destination))?;
        file.write_all(&self.bytes()).map_err(failed(destination))
    }

    fn bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(HEAD_BYTES + self.code.len() + TAIL_BYTES);
        bytes.extend_from_slice(MAGIC);
        bytes.extend_from_slice(&self.guest_hash);
        bytes.extend_from_slice(&Sha256::digest(&self.code));
        bytes.extend_from_slice(&self.code);
        let length = (bytes.len() + TAIL_BYTES) as u64;
        bytes.extend_from_slice(&length.to_le_bytes());
        bytes.extend_from_slice(MAGIC);
        bytes
    }

    /// Only an image of this very guest, whole and unchanged.
    fn parse(bytes: &[u8], guest: &Guest) -> Option<Self> {
        let body = bytes.strip_prefix(MAGIC)?;
        let (hash, body) = body.split_at_checked(32)?;
        let (code_hash, body) = body.split_at_checked(32)?;
        let code = body.get(..body.len().checked_sub(TAIL_BYTES)?)?;
        let whole = hash == guest.hash && code_hash == &Sha256::digest(code)[..];
        whole.then(|| Self {
            guest_hash: guest.hash,
            code: code.to_vec(),
        })
    }

    fn write_new(&self, file: &Path) -> io::Result<()> {
        // Renamed into place, so that nobody ever reads half of it.
        let draft = file.with_extension(format!("{}.draft", std::process::id()));
        let mut writer = fs::OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(&draft)?;
        writer.write_all(&self.bytes())?;
        drop(writer);
        fs::rename(&draft, file)
    }

    pub(crate) fn load(&self, engine: &Engine) -> wasmtime::Result<Module> {
        #[expect(unsafe_code, reason = "loading compiled code is trusting it")]
        // SAFETY: the code was compiled by this crate: it comes from memory, from behind the end of this executable, or
        // from a folder that only this user can write, and its hash is that of what was written.
        unsafe {
            Module::deserialize(engine, &self.code)
        }
    }
}

/// Makes the folder if need be, and refuses one that another user could put code into.
fn prepare_cache(folder: &Path) -> Result<(), ImageError> {
    let _ = fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(folder);
    if let Ok(facts) = fs::metadata(folder) {
        let own = facts.uid() == rustix::process::geteuid().as_raw();
        // A container's cache volume belongs to root and to the group that the process is in.
        let others = facts.mode() & 0o002 != 0 && facts.mode() & 0o1000 == 0;
        if others || (!own && facts.uid() != 0) {
            return Err(ImageError::CacheExposed {
                path: folder.to_owned(),
            });
        }
    }
    Ok(())
}

/// Runs the guest's set-up and writes the memory that it leaves into a new module.
fn snapshot(wasm: &[u8]) -> wasmtime::Result<Vec<u8>> {
    let engine = Engine::new(&sandbox::snapshot_config())?;
    let wizer = Wizer::new();
    let (context, instrumented) = wizer.instrument(wasm)?;
    let module = Module::new(&engine, &instrumented)?;
    let mut store = Store::new(&engine, border::State::for_snapshot());
    let instance = border::linker(&engine)?.instantiate(&mut store, &module)?;
    let outcome = instance
        .get_typed_func::<(), ()>(&mut store, export::INITIALIZE)?
        .call(&mut store, ());
    if let Err(error) = outcome {
        let said = store.data().setup_log();
        return Err(error.context(format!("the guest's set-up failed: {}", said.join("; "))));
    }
    let mut state = Snapshotted {
        store: &mut store,
        instance,
    };
    let mut snapshot = std::pin::pin!(wizer.snapshot(&context, &mut state));
    match snapshot
        .as_mut()
        .poll(&mut Context::from_waker(Waker::noop()))
    {
        Poll::Ready(bytes) => bytes,
        Poll::Pending => Err(wasmtime::Error::msg(
            "reading an instance's memory does not wait",
        )),
    }
}

struct Snapshotted<'a> {
    store: &'a mut Store<border::State>,
    instance: Instance,
}

impl InstanceState for Snapshotted<'_> {
    async fn global_get(&mut self, name: &str, _hint: ValType) -> SnapshotVal {
        let global = self
            .instance
            .get_global(&mut *self.store, name)
            .expect("wizer names its own exports");
        match global.get(&mut *self.store) {
            Val::I32(value) => SnapshotVal::I32(value),
            Val::I64(value) => SnapshotVal::I64(value),
            Val::F32(bits) => SnapshotVal::F32(bits),
            Val::F64(bits) => SnapshotVal::F64(bits),
            other => unreachable!("the guest has no global of type {other:?}"),
        }
    }

    async fn memory_contents(&mut self, name: &str, contents: impl FnOnce(&[u8]) + Send) {
        let memory = self
            .instance
            .get_memory(&mut *self.store, name)
            .expect("wizer names its own exports");
        contents(memory.data(&*self.store));
    }
}
