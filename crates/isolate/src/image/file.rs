//! Images in files: behind the end of the executable, and in a cache folder.
//!
//! What is read here is run as native code, so it is read only from where nobody but this user (or root) can have put
//! it. The hash in it finds accidents; it is no proof against anyone who can write the file.

use super::{Guest, Image, ImageError};
use sha2::{Digest, Sha256};
use std::{
    fs,
    io::{self, Read, Seek, SeekFrom, Write},
    os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt},
    path::{Path, PathBuf},
    sync::atomic::{AtomicU64, Ordering},
};

/// Starts an image. What follows: the guest's hash, the code's hash, the code, and at the very end the whole's length
/// and this again, so that it can be found from behind.
const MAGIC: &[u8; 16] = b"coracle-image-01";
const HEAD_BYTES: usize = MAGIC.len() + 32 + 32;
const TAIL_BYTES: usize = 8 + MAGIC.len();
/// Images that a cache folder keeps, of about 8 MB each: two versions, with a second guest or CPU each.
const IMAGES_MAX: usize = 4;

impl Image {
    /// Writes a copy of the executable `source` to `destination` that carries this image behind its end.
    ///
    /// # Errors
    /// When a file can't be read or written.
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

    /// The image behind the end of the executable `path`, if it carries one of `guest`.
    pub(super) fn behind(path: &Path, guest: &Guest) -> Option<Self> {
        let mut file = fs::File::open(path).ok()?;
        let end = file.seek(SeekFrom::End(0)).ok()?;
        let mut tail = [0; TAIL_BYTES];
        file.seek(SeekFrom::Start(end.checked_sub(TAIL_BYTES as u64)?))
            .ok()?;
        file.read_exact(&mut tail).ok()?;
        let (length, magic) = tail.split_at(8);
        if magic != MAGIC {
            return None;
        }
        let length = u64::from_le_bytes(length.try_into().ok()?);
        file.seek(SeekFrom::Start(end.checked_sub(length)?)).ok()?;
        let mut bytes = vec![0; usize::try_from(length).ok()?];
        file.read_exact(&mut bytes).ok()?;
        Self::parse(&bytes, guest)
    }

    pub(super) fn bytes(&self) -> Vec<u8> {
        let length = HEAD_BYTES + self.code.len() + TAIL_BYTES;
        let mut bytes = Vec::with_capacity(length);
        bytes.extend_from_slice(MAGIC);
        bytes.extend_from_slice(&self.guest_hash);
        bytes.extend_from_slice(&Sha256::digest(&self.code));
        bytes.extend_from_slice(&self.code);
        bytes.extend_from_slice(&(length as u64).to_le_bytes());
        bytes.extend_from_slice(MAGIC);
        bytes
    }

    /// Only an image of this very guest, whole and unchanged.
    pub(super) fn parse(bytes: &[u8], guest: &Guest) -> Option<Self> {
        let length = (bytes.len() as u64).to_le_bytes();
        let body = bytes.strip_prefix(MAGIC)?;
        let body = body.strip_suffix(MAGIC)?.strip_suffix(&length)?;
        let (guest_hash, body) = body.split_at_checked(32)?;
        let (code_hash, code) = body.split_at_checked(32)?;
        let whole = guest_hash == guest.hash && code_hash == &Sha256::digest(code)[..];
        whole.then(|| Self {
            guest_hash: guest.hash,
            code: code.to_vec(),
        })
    }
}

/// A cache folder that nobody but this user or root can put code into.
pub(super) struct Cache<'a>(&'a Path);

impl<'a> Cache<'a> {
    /// Makes the folder if need be.
    ///
    /// # Errors
    /// When another user could put code into it. That it can't be made or written is none: there is just no cache then.
    pub(super) fn open(folder: &'a Path) -> Result<Self, ImageError> {
        let _ = fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(folder);
        // A container's cache volume belongs to root and to the group that the process is in.
        match fs::metadata(folder) {
            Ok(facts) if facts.mode() & 0o002 != 0 || !is_trusted(&facts) => {
                Err(ImageError::CacheExposed {
                    path: folder.to_owned(),
                })
            }
            _ => Ok(Self(folder)),
        }
    }

    pub(super) fn read(&self, name: &str, guest: &Guest) -> Option<Image> {
        let no_follow = rustix::fs::OFlags::NOFOLLOW.bits().cast_signed();
        let mut file = fs::OpenOptions::new()
            .read(true)
            .custom_flags(no_follow)
            .open(self.0.join(name))
            .ok()?;
        // Others of the group may write to the folder; what they put there is not loaded.
        let facts = file.metadata().ok()?;
        if !facts.is_file() || facts.mode() & 0o022 != 0 || !is_trusted(&facts) {
            return None;
        }
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).ok()?;
        Image::parse(&bytes, guest)
    }

    /// Renames into place what it has written, so that nobody ever reads half of it.
    pub(super) fn write(&self, name: &str, image: &Image) -> io::Result<()> {
        static DRAFTS: AtomicU64 = AtomicU64::new(0);
        let (process, count) = (std::process::id(), DRAFTS.fetch_add(1, Ordering::Relaxed));
        let draft: PathBuf = self.0.join(format!("{name}.{process}-{count}.draft"));
        let _ = fs::remove_file(&draft);
        let written = fs::OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&draft)
            .and_then(|mut file| file.write_all(&image.bytes()))
            .and_then(|()| fs::rename(&draft, self.0.join(name)));
        if written.is_err() {
            let _ = fs::remove_file(&draft);
        }
        self.prune();
        written
    }

    /// Removes the oldest images beyond [`IMAGES_MAX`]: each new version of the executable leaves one behind.
    fn prune(&self) {
        let made = |entry: fs::DirEntry| {
            let path = entry.path();
            let is_image = path.extension().is_some_and(|it| it == "image");
            Some((entry.metadata().ok()?.modified().ok()?, path)).filter(|_| is_image)
        };
        let entries = fs::read_dir(self.0).into_iter().flatten().flatten();
        let mut images: Vec<_> = entries.filter_map(made).collect();
        images.sort();
        let too_many = images.len().saturating_sub(IMAGES_MAX);
        for (_, path) in images.into_iter().take(too_many) {
            let _ = fs::remove_file(path);
        }
    }
}

/// Whether a file or folder belongs to this user or to root.
fn is_trusted(facts: &fs::Metadata) -> bool {
    facts.uid() == rustix::process::geteuid().as_raw() || facts.uid() == 0
}
