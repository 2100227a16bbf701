//! Images in files: behind the end of the executable, and in a cache folder.
//!
//! What is read here is run as native code, so it is read only from where nobody but this user (or root) can have put
//! it. The checksum in it finds accidents; it is no proof against anyone who can write the file.

use super::{Code, Guest, Here, Image, ImageError};
use rustix::fs::{AtFlags, Dir, DirEntry, Mode, OFlags};
use std::{
    fs,
    io::{self, Read, Seek, SeekFrom, Write},
    os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt},
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

/// Starts an image. What follows: the hash of what it is made of, the CRC-32 of the rest, the length of the guest's code, that
/// code, the transpiler's code if there is any, and at the very end the whole's length and this again, so that it can be
/// found from behind.
const MAGIC: &[u8; 16] = b"coracle-image-03";
const HASH_BYTES: usize = 32;
const CHECKSUM_BYTES: usize = 4;
const HEAD_BYTES: usize = MAGIC.len() + HASH_BYTES + CHECKSUM_BYTES;
const LENGTH_BYTES: usize = 8;
const TAIL_BYTES: usize = LENGTH_BYTES + MAGIC.len();
/// Images that a cache folder keeps, of about 15 MB each: two versions, with a second guest or CPU each.
const IMAGES_MAX: usize = 4;
/// The folder of our own inside the cache folder that we are given.
pub(super) const FOLDER: &str = "coracle";

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

    /// Whether the executable `path` carries an image behind its end, going by how it ends: says neither that the image
    /// is whole nor which guest it is of. One that can't be read carries none.
    #[must_use]
    pub fn is_behind(path: &Path) -> bool {
        fs::File::open(path).is_ok_and(|mut file| seek_behind(&mut file).is_some())
    }

    /// The image behind the end of the executable `path`, if it carries one of `guest`.
    pub(super) fn behind(path: &Path, guest: &Guest) -> Option<Self> {
        let mut file = fs::File::open(path).ok()?;
        let length = seek_behind(&mut file)?;
        let mut bytes = vec![0; usize::try_from(length).ok()?];
        file.read_exact(&mut bytes).ok()?;
        Self::parse(bytes, guest)
    }

    pub(super) fn bytes(&self) -> Vec<u8> {
        let guest = self.guest.bytes();
        let transpiler = self.transpiler.as_ref().map_or(&[][..], Code::bytes);
        let length = HEAD_BYTES + LENGTH_BYTES + guest.len() + transpiler.len() + TAIL_BYTES;
        let mut bytes = Vec::with_capacity(length);
        bytes.extend_from_slice(MAGIC);
        bytes.extend_from_slice(&self.hash);
        bytes.extend_from_slice(&[0; CHECKSUM_BYTES]);
        bytes.extend_from_slice(&(guest.len() as u64).to_le_bytes());
        bytes.extend_from_slice(guest);
        bytes.extend_from_slice(transpiler);
        let checksum = crc32fast::hash(&bytes[HEAD_BYTES..]).to_le_bytes();
        bytes[HEAD_BYTES - CHECKSUM_BYTES..HEAD_BYTES].copy_from_slice(&checksum);
        bytes.extend_from_slice(&(length as u64).to_le_bytes());
        bytes.extend_from_slice(MAGIC);
        bytes
    }

    /// Only an image of this very guest, whole and unchanged.
    pub(super) fn parse(bytes: Vec<u8>, guest: &Guest) -> Option<Self> {
        let length = (bytes.len() as u64).to_le_bytes();
        let body = bytes.strip_prefix(MAGIC)?;
        let body = body.strip_suffix(MAGIC)?.strip_suffix(&length)?;
        let (hash, body) = body.split_at_checked(HASH_BYTES)?;
        let (checksum, rest) = body.split_first_chunk()?;
        if hash != guest.image_hash || u32::from_le_bytes(*checksum) != crc32fast::hash(rest) {
            return None;
        }
        let (guest_length, codes) = rest.split_first_chunk()?;
        let guest_length = usize::try_from(u64::from_le_bytes(*guest_length)).ok()?;
        let has_transpiler = codes.len() > guest_length;
        let start = HEAD_BYTES + LENGTH_BYTES;
        let (middle, end) = (start.checked_add(guest_length)?, start + codes.len());
        if middle > end {
            return None;
        }
        let all = Arc::new(bytes);
        let code = |range| {
            let all = Arc::clone(&all);
            Code::Here(Here { all, range })
        };
        Some(Self {
            hash: guest.image_hash,
            guest: code(start..middle),
            transpiler: has_transpiler.then(|| code(middle..end)),
        })
    }
}

/// Goes to the beginning of the image that a file ends with, if it ends as one, and returns its length.
fn seek_behind(file: &mut fs::File) -> Option<u64> {
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
    Some(length)
}

/// A folder of images that nobody but this user or root can put code into.
///
/// The folder that we are given may be open to everybody, as `/tmp` is and a container's volume often is. So the images
/// are in one of our own inside it, and only that one is judged. It is opened once and used by its handle: whoever may
/// write to the folder around it can take ours away, but not put another one in its place.
pub(super) struct Cache(io::Result<fs::File>);

impl Cache {
    /// Makes the folders if need be.
    ///
    /// # Errors
    /// When another user could put code into ours. That it can't be made or opened is none: there is just no cache then.
    pub(super) fn open(given: &Path) -> Result<Self, ImageError> {
        let path = given.join(FOLDER);
        let _ = fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&path);
        let only_a_folder = OFlags::DIRECTORY | OFlags::NOFOLLOW;
        let opened = fs::OpenOptions::new()
            .read(true)
            .custom_flags(only_a_folder.bits().cast_signed())
            .open(&path)
            .and_then(|folder| Ok((folder.metadata()?, folder)));
        let is_exposed = match &opened {
            // The group may write: Kubernetes lets it, for a volume that it hands over to a pod's group. What others of
            // the group put there is not loaded.
            Ok((facts, _)) => facts.mode() & 0o002 != 0 || !is_trusted(facts),
            Err(_) => path.is_symlink(),
        };
        if is_exposed {
            return Err(ImageError::CacheExposed { path });
        }
        Ok(Self(opened.map(|(_, folder)| folder)))
    }

    pub(super) fn read(&self, name: &str, guest: &Guest) -> Option<Image> {
        let folder = self.0.as_ref().ok()?;
        // A pipe that somebody put there is not waited for.
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = rustix::fs::openat(folder, name, flags, Mode::empty()).ok()?;
        let mut file = fs::File::from(file);
        // Others of the group may write to the folder; what they put there is not loaded.
        let facts = file.metadata().ok()?;
        if !facts.is_file() || facts.mode() & 0o022 != 0 || !is_trusted(&facts) {
            return None;
        }
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).ok()?;
        Image::parse(bytes, guest)
    }

    /// Renames into place what it has written, so that nobody ever reads half of it.
    pub(super) fn write(&self, name: &str, image: &Image) -> io::Result<()> {
        static DRAFTS: AtomicU64 = AtomicU64::new(0);
        let folder = match &self.0 {
            Ok(folder) => folder,
            Err(error) => return Err(io::Error::new(error.kind(), error.to_string())),
        };
        let (process, count) = (std::process::id(), DRAFTS.fetch_add(1, Ordering::Relaxed));
        let draft = format!("{name}.{process}-{count}.draft");
        let remove_draft = || {
            let _ = rustix::fs::unlinkat(folder, &draft, AtFlags::empty());
        };
        remove_draft();
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let written = rustix::fs::openat(folder, &draft, flags, Mode::RUSR | Mode::WUSR)
            .map_err(io::Error::from)
            .and_then(|file| fs::File::from(file).write_all(&image.bytes()))
            .and_then(|()| {
                rustix::fs::renameat(folder, &draft, folder, name).map_err(io::Error::from)
            });
        if written.is_err() {
            remove_draft();
        }
        prune(folder);
        written
    }
}

/// Removes the oldest images beyond [`IMAGES_MAX`]: each new version of the executable leaves one behind.
fn prune(folder: &fs::File) {
    let made = |entry: DirEntry| {
        let name = entry.file_name().to_owned();
        let facts = rustix::fs::statat(folder, &name, AtFlags::SYMLINK_NOFOLLOW).ok()?;
        let is_image = name.to_bytes().ends_with(b".image");
        is_image.then_some((facts.st_mtime, facts.st_mtime_nsec, name))
    };
    let entries = Dir::read_from(folder).into_iter().flatten().flatten();
    let mut images: Vec<_> = entries.filter_map(made).collect();
    images.sort();
    let too_many = images.len().saturating_sub(IMAGES_MAX);
    for (_, _, name) in images.into_iter().take(too_many) {
        let _ = rustix::fs::unlinkat(folder, name, AtFlags::empty());
    }
}

/// Whether a file or folder belongs to this user or to root.
fn is_trusted(facts: &fs::Metadata) -> bool {
    facts.uid() == rustix::process::geteuid().as_raw() || facts.uid() == 0
}
