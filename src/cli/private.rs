//! Files that are one's own, as those that hold secrets: read only if nobody else can read them,
//! written so that nobody ever could, and replaced as a whole or not at all.

use std::fmt;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{FlockOperation, OFlags, flock};

use super::Failure;
use crate::clock;

/// The most bytes of such a file: a few thousand profiles.
const BYTES_MAX: u64 = 1024 * 1024;
/// How long another process may be writing the same file.
const LOCK_TIMEOUT: Duration = Duration::from_secs(10);
/// The pause between two looks at whether it still is.
const LOCK_PAUSE: Duration = Duration::from_millis(20);

fn unusable(path: &Path, why: impl fmt::Display) -> Failure {
    Failure::Usage(format!("{}: {why}", path.display()))
}

fn not_written(path: &Path) -> impl Fn(io::Error) -> Failure {
    move |why| Failure::Store(format!("{}: {why}", path.display()))
}

/// Opens a file to read it. One that isn't there to be read, as a pipe, is not waited for.
pub(super) fn open(path: &Path) -> io::Result<File> {
    let flags = OFlags::NONBLOCK.bits().cast_signed();
    OpenOptions::new().read(true).custom_flags(flags).open(path)
}

/// Reads a file, which nobody but its owner may be able to read. `None` if there is none.
pub(super) fn read(path: &Path) -> Result<Option<String>, Failure> {
    let file = match open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(unusable(path, error)),
    };
    // Of the file that is open, so that it can't be exchanged in between.
    let metadata = file.metadata().map_err(|e| unusable(path, e))?;
    if !metadata.is_file() {
        return Err(unusable(path, "is no file"));
    }
    // Never a part of it: what isn't read would be lost when it is replaced.
    if metadata.len() > BYTES_MAX {
        return Err(unusable(path, "is too long"));
    }
    if metadata.permissions().mode() & 0o077 != 0 {
        return Err(unusable(path, "others can read it: chmod 600 it first"));
    }
    let mut text = String::new();
    file.take(BYTES_MAX + 1).read_to_string(&mut text).map_err(|e| unusable(path, e))?;
    Ok(Some(text))
}

/// The right to replace a file, which one process has at a time. Ends when it is dropped.
pub(super) struct Claim {
    /// The file itself, and no link to it: a link stays one when the file is replaced.
    path: PathBuf,
    /// Holds the lock while it is open. It stays: to delete it would let two in.
    _lock: File,
}

impl Claim {
    /// Waits for the right to replace a file. Makes its folder if there is none.
    pub(super) async fn wait_for(path: &Path) -> Result<Self, Failure> {
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        if let Some(folder) = folder {
            let made = DirBuilder::new().recursive(true).mode(0o700).create(folder);
            made.map_err(not_written(folder))?;
        }
        let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        let lock_path = beside(&path, ".lock");
        let mut options = OpenOptions::new();
        let lock = options.write(true).create(true).truncate(false).mode(0o600).open(&lock_path);
        let lock = lock.map_err(not_written(&lock_path))?;
        let began = clock::monotonic();
        loop {
            match flock(&lock, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => return Ok(Self { path, _lock: lock }),
                Err(rustix::io::Errno::WOULDBLOCK) if clock::elapsed(began) < LOCK_TIMEOUT => {
                    tokio::time::sleep(LOCK_PAUSE).await;
                }
                Err(rustix::io::Errno::WOULDBLOCK) => {
                    return Err(Failure::Store(format!(
                        "{}: another process has it",
                        path.display()
                    )));
                }
                Err(error) => return Err(not_written(&lock_path)(error.into())),
            }
        }
    }

    /// The text that is there now; empty if there is no file.
    pub(super) fn read(&self) -> Result<String, Failure> {
        Ok(read(&self.path)?.unwrap_or_default())
    }

    /// Puts a text in the place of the file. After a crash there is the old one or the new one.
    pub(super) fn replace(&self, text: &str) -> Result<(), Failure> {
        let new = beside(&self.path, ".new");
        let write = || {
            // Left by a process that was ended at this point; only who has the claim makes one.
            match fs::remove_file(&new) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
            let mut file =
                OpenOptions::new().write(true).create_new(true).mode(0o600).open(&new)?;
            file.write_all(text.as_bytes())?;
            file.sync_all()?;
            fs::rename(&new, &self.path)?;
            let folder = self.path.parent().filter(|folder| !folder.as_os_str().is_empty());
            File::open(folder.unwrap_or(Path::new(".")))?.sync_all()
        };
        write().map_err(not_written(&self.path))
    }
}

impl Claim {
    /// Leaves a short note in a file beside, at once: a kill of this process doesn't undo it. After
    /// a crash of the machine it may be there, or not, or in part.
    pub(super) fn leave_note(&self, more: &str, text: &str) -> Result<(), Failure> {
        let path = beside(&self.path, more);
        let mut options = OpenOptions::new();
        let file = options.write(true).create(true).truncate(true).mode(0o600).open(&path);
        file.and_then(|mut file| file.write_all(text.as_bytes())).map_err(not_written(&path))
    }

    /// The note that was left; empty if there is none, or none that can be read.
    pub(super) fn note(&self, more: &str) -> String {
        fs::read_to_string(beside(&self.path, more)).unwrap_or_default()
    }
}

/// The path of a file with this name and more behind it.
fn beside(path: &Path, more: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(more);
    PathBuf::from(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(mode: u32) -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("secret");
        fs::write(&path, "text").expect("a file");
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).expect("a mode");
        (folder, path)
    }

    #[test]
    fn a_file_that_others_can_read_is_refused() {
        let (folder, path) = file(0o600);
        assert_eq!(read(&path).expect("only we can read it").as_deref(), Some("text"));
        assert_eq!(read(&folder.path().join("none")).expect("no file"), None);
        assert_eq!(read(folder.path()).expect_err("a folder").exit_code(), 2);
        for mode in [0o640, 0o604, 0o620, 0o601] {
            let (_folder, path) = file(mode);
            let failure = read(&path).expect_err("others can");
            assert_eq!(failure.exit_code(), 2);
            assert!(failure.to_string().contains("chmod 600"), "{failure}");
        }
    }

    #[tokio::test]
    async fn a_replaced_file_is_private_and_its_link_and_leftovers_do_no_harm() {
        let (folder, path) = file(0o600);
        let link = folder.path().join("link");
        std::os::unix::fs::symlink(&path, &link).expect("a link");
        fs::write(beside(&path, ".new"), "left over").expect("a file");
        let claim = Claim::wait_for(&link).await.expect("nobody else has it");
        claim.replace("new").expect("it can be written");
        assert!(link.is_symlink());
        assert_eq!(fs::read_to_string(&path).expect("a file"), "new");
        let mode = fs::metadata(&path).expect("a file").permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        assert!(!beside(&path, ".new").exists());
    }

    /// Time is simulated: a pause takes none.
    #[tokio::test(start_paused = true)]
    async fn one_at_a_time_has_the_claim() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("deep/er/secret");
        let first = Claim::wait_for(&path).await.expect("nobody else has it");
        let second = Claim::wait_for(&path);
        tokio::pin!(second);
        let waited = tokio::time::timeout(LOCK_PAUSE * 3, &mut second).await;
        assert!(waited.is_err(), "the first still has it");
        drop(first);
        second.await.expect("the first let go of it");
        let mode = fs::metadata(folder.path().join("deep")).expect("a folder").permissions().mode();
        assert_eq!(mode & 0o777, 0o700);
    }
}
