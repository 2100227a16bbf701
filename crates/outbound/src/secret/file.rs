//! Secrets in files: those with a restricted mode, and those that Kubernetes mounts.

use super::{SECRET_BYTES_MAX, Secret, SecretError};
use std::{
    fs::{File, OpenOptions},
    io::Read,
    path::{Path, PathBuf},
    time::Duration,
};
use zeroize::Zeroizing;

/// A secret's bytes, its newline of one or two bytes, and one byte that is too many.
pub(super) const READ_BYTES_MAX: usize = SECRET_BYTES_MAX + 3;
/// How long a file may take: it may lie on another machine.
const READ_TIMEOUT: Duration = Duration::from_secs(10);

/// Reads a file that its owner alone may read.
pub(super) async fn read(path: PathBuf) -> Result<Secret, SecretError> {
    within_time(path, |path| {
        let (file, mode) = open(path, false)?;
        if mode & 0o077 != 0 {
            let path = path.into();
            return Err(SecretError::Mode { path, mode });
        }
        content(path, file)
    })
    .await
}

/// Reads a key of a secret that Kubernetes mounts.
///
/// Kubernetes writes a change into a new folder and then points the link `..data` at it, so that what is read through the
/// link is never half of a change. The modes of such files are not judged: by default all may read them, and who is in
/// the container is whom the secret was mounted for.
pub(super) async fn read_mount(folder: PathBuf, key: String) -> Result<Secret, SecretError> {
    within_time(folder, move |folder| {
        let link = folder.join("..data");
        let is_link = link.symlink_metadata().is_ok_and(|link| link.is_symlink());
        if !is_link {
            return Err(SecretError::NotMount(folder.into()));
        }
        let path = link.join(key);
        let (file, _) = open(&path, true)?;
        content(&path, file)
    })
    .await
}

async fn within_time(
    path: PathBuf,
    read: impl FnOnce(&Path) -> Result<Secret, SecretError> + Send + 'static,
) -> Result<Secret, SecretError> {
    let place = format!("\"{}\"", path.display());
    let reading = tokio::task::spawn_blocking(move || read(&path));
    match tokio::time::timeout(READ_TIMEOUT, reading).await {
        Ok(read) => read.unwrap_or(Err(SecretError::BrokenOff)),
        Err(_) => Err(SecretError::Late {
            place,
            after: READ_TIMEOUT,
        }),
    }
}

/// Opens a file, and gives its mode: of what was opened, so that nobody can put another in its place between.
fn open(path: &Path, is_in_mount: bool) -> Result<(File, u32), SecretError> {
    let failed = |error: std::io::Error| SecretError::File {
        path: path.into(),
        kind: error.kind(),
    };
    let mut options = OpenOptions::new();
    options.read(true);
    #[cfg(unix)]
    {
        use rustix::fs::OFlags;
        use std::os::unix::fs::OpenOptionsExt;
        // Opening a pipe would wait for who writes into it.
        let mut flags = OFlags::NONBLOCK;
        flags.set(OFlags::NOFOLLOW, is_in_mount);
        options.custom_flags(flags.bits().cast_signed());
    }
    let file = options.open(path).map_err(failed)?;
    let metadata = file.metadata().map_err(failed)?;
    if !metadata.is_file() {
        return Err(SecretError::NotFile(path.into()));
    }
    #[cfg(unix)]
    let mode = std::os::unix::fs::MetadataExt::mode(&metadata) & 0o777;
    #[cfg(not(unix))]
    let mode = 0;
    Ok((file, mode))
}

fn content(path: &Path, file: File) -> Result<Secret, SecretError> {
    // Large enough from the start: what a vector outgrows is not overwritten.
    let mut text = Zeroizing::new(Vec::with_capacity(READ_BYTES_MAX + 64));
    let read = file.take(READ_BYTES_MAX as u64).read_to_end(&mut text);
    read.map_err(|error| SecretError::File {
        path: path.into(),
        kind: error.kind(),
    })?;
    Secret::of_text(&text)
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use std::{
        fs,
        io::ErrorKind,
        os::unix::fs::{PermissionsExt, symlink},
    };

    fn write(path: &Path, text: &str, mode: u32) {
        fs::write(path, text).expect("written");
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("a mode");
    }

    /// A secret that others may read is none: the file is refused, and the mode is named.
    #[tokio::test]
    async fn a_file_is_its_owners_alone() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("token");
        for mode in [0o600, 0o400, 0o700] {
            write(&path, "hunter22\n", mode);
            let secret = read(path.clone()).await.expect("a secret");
            assert_eq!(secret.bytes(), b"hunter22");
        }
        for mode in [0o640, 0o604, 0o620, 0o644, 0o601] {
            write(&path, "hunter22\n", mode);
            let refused = read(path.clone()).await.err();
            let path = path.clone();
            assert_eq!(refused, Some(SecretError::Mode { path, mode }));
        }
        let link = folder.path().join("link");
        symlink(&path, &link).expect("a link");
        let refused = read(link).await.err();
        assert!(matches!(refused, Some(SecretError::Mode { .. })));
    }

    #[tokio::test]
    async fn what_is_no_file_of_a_secrets_size_is_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let there = folder.path().to_path_buf();
        assert_eq!(
            read(there.clone()).await.err(),
            Some(SecretError::NotFile(there.clone()))
        );
        let path = there.join("none");
        let kind = ErrorKind::NotFound;
        let missing = read(path.clone()).await.err();
        assert_eq!(missing, Some(SecretError::File { path, kind }));
        let path = there.join("long");
        write(&path, &"a".repeat(SECRET_BYTES_MAX + 1), 0o600);
        assert_eq!(read(path.clone()).await.err(), Some(SecretError::TooLong));
        write(&path, &("a".repeat(SECRET_BYTES_MAX) + "\r\n"), 0o600);
        assert!(read(path).await.is_ok());
        let device = read("/dev/zero".into()).await.err();
        assert_eq!(device, Some(SecretError::NotFile("/dev/zero".into())));
    }

    /// A mount is read through `..data`, and nothing else is taken for one.
    #[tokio::test]
    async fn a_mount_is_read_through_its_link() {
        let folder = tempfile::tempdir().expect("a folder");
        let there = folder.path().to_path_buf();
        let of_mount = || read_mount(there.clone(), "token".into());
        write(&there.join("token"), "outside", 0o644);
        assert_eq!(
            of_mount().await.err(),
            Some(SecretError::NotMount(there.clone()))
        );
        for (name, text) in [("..1", "first"), ("..2", "second")] {
            fs::create_dir(there.join(name)).expect("a folder");
            write(&there.join(name).join("token"), text, 0o644);
            symlink(name, there.join("..new")).expect("a link");
            fs::rename(there.join("..new"), there.join("..data")).expect("renamed");
            let secret = of_mount().await.expect("a secret");
            assert_eq!(secret.bytes(), text.as_bytes());
        }
        symlink("../token", there.join("..2/other")).expect("a link");
        let other = read_mount(there.clone(), "other".into()).await.err();
        assert!(matches!(other, Some(SecretError::File { .. })));
    }
}
