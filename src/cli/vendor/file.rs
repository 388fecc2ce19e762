//! A file that belongs to another program: read as a whole, and replaced as a whole or not at all.
//!
//! Its mode stays, and a link to it stays a link. A file that was changed since it was read is not
//! replaced, so that what its own program wrote meanwhile isn't lost.

use std::ffi::OsString;
use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};

use crate::cli::{Failure, private};

/// More than such a file ever has: Claude Code keeps what it remembers in one, some megabytes.
const BYTES_MAX: u64 = 64 * 1024 * 1024;

/// A file as it was when it was read.
pub(super) struct Foreign {
    /// As it was named.
    path: PathBuf,
    /// The file itself, and no link to it.
    target: PathBuf,
    /// What stood in it; `None` if it wasn't there.
    text: Option<String>,
}

impl Foreign {
    /// Reads a file, if it is there.
    pub(super) fn read(path: &Path) -> Result<Self, Failure> {
        let target = match fs::canonicalize(path) {
            Ok(target) => target,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                if path.is_symlink() {
                    return Err(unusable(path, "is a link to a file that isn't there"));
                }
                return Ok(Self { path: path.to_owned(), target: path.to_owned(), text: None });
            }
            Err(error) => return Err(unusable(path, error)),
        };
        let text = text_of(&target).map_err(|why| unusable(path, why))?;
        Ok(Self { path: path.to_owned(), target, text: Some(text) })
    }

    /// As it was named.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Whether it was there.
    pub(super) fn is_there(&self) -> bool {
        self.text.is_some()
    }

    /// What stood in it; nothing, if it wasn't there.
    pub(super) fn text(&self) -> &str {
        self.text.as_deref().unwrap_or_default()
    }

    /// That this file can't be used as it is, and why.
    pub(super) fn refuse(&self, why: impl fmt::Display) -> Failure {
        unusable(&self.path, why)
    }

    /// Puts a text in its place; makes the file and its folder if they aren't there. After a crash
    /// there is the old one or the new one.
    pub(super) fn replace(&self, text: &str) -> Result<(), Failure> {
        self.write(|| {
            let folder = folder_of(&self.target);
            fs::create_dir_all(folder)?;
            let new = beside(&self.target);
            let written = (|| {
                let mut file = OpenOptions::new().write(true).create_new(true).open(&new)?;
                if let Ok(metadata) = fs::metadata(&self.target) {
                    file.set_permissions(metadata.permissions())?;
                }
                file.write_all(text.as_bytes())?;
                file.sync_all()?;
                self.check_unchanged()?;
                fs::rename(&new, &self.target)
            })();
            if written.is_err() {
                // What is half written is nobody's.
                let _ = fs::remove_file(&new);
            }
            written.and_then(|()| File::open(folder)?.sync_all())
        })
    }

    /// Deletes it.
    pub(super) fn delete(&self) -> Result<(), Failure> {
        self.write(|| {
            self.check_unchanged()?;
            fs::remove_file(&self.target)
        })
    }

    fn write(&self, write: impl FnOnce() -> io::Result<()>) -> Result<(), Failure> {
        write().map_err(|why| Failure::Store(format!("{}: {why}", self.path.display())))
    }

    fn check_unchanged(&self) -> io::Result<()> {
        let now = match text_of(&self.target) {
            Ok(text) => Some(text),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(error),
        };
        if now == self.text {
            return Ok(());
        }
        Err(io::Error::other("another program has just changed it: run this again"))
    }
}

fn unusable(path: &Path, why: impl fmt::Display) -> Failure {
    Failure::Usage(format!("{}: {why}", path.display()))
}

fn text_of(path: &Path) -> io::Result<String> {
    let file = private::open(path)?;
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return Err(io::Error::other("is no file"));
    }
    // Never a part of it: what isn't read would be lost when it is replaced.
    if metadata.len() > BYTES_MAX {
        return Err(io::Error::other("is too long"));
    }
    let mut text = String::new();
    file.take(BYTES_MAX).read_to_string(&mut text)?;
    Ok(text)
}

fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// A name beside a file that no other process uses.
fn beside(path: &Path) -> PathBuf {
    let mut name = OsString::from(".");
    name.push(path.file_name().unwrap_or_default());
    name.push(format!(".pearing-{}", std::process::id()));
    folder_of(path).join(name)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;

    #[test]
    fn a_replaced_file_keeps_its_mode_and_the_link_to_it() {
        let folder = tempfile::tempdir().expect("a folder");
        let (path, link) = (folder.path().join("real.json"), folder.path().join("link.json"));
        fs::write(&path, "old").expect("a file");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).expect("a mode");
        symlink("real.json", &link).expect("a link");
        Foreign::read(&link).expect("a file").replace("new").expect("it is ours");
        assert!(link.is_symlink());
        assert_eq!(fs::read_to_string(&path).expect("a file"), "new");
        assert_eq!(fs::metadata(&path).expect("it is there").permissions().mode() & 0o777, 0o640);
        assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 2, "nothing is left");
        let new = folder.path().join("a/b/new.json");
        Foreign::read(&new).expect("none yet").replace("x").expect("it is made");
        assert_eq!(fs::read_to_string(&new).expect("a file"), "x");
    }

    #[test]
    fn what_another_program_wrote_meanwhile_is_not_lost() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("file");
        let none = Foreign::read(&path).expect("none yet");
        fs::write(&path, "one").expect("a file");
        let one = Foreign::read(&path).expect("a file");
        assert_eq!(none.replace("ours").expect_err("it is there now").exit_code(), 1);
        fs::write(&path, "two").expect("a file");
        assert!(one.replace("ours").is_err() && one.delete().is_err());
        assert_eq!(fs::read_to_string(&path).expect("a file"), "two");
        assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 1, "nothing is left");
    }

    #[test]
    fn what_is_no_file_of_text_is_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = |name: &str| folder.path().join(name);
        fs::write(path("binary"), [0xff, 0xfe]).expect("a file");
        symlink("nowhere", path("dangling")).expect("a link");
        for bad in [folder.path().to_owned(), path("binary"), path("dangling")] {
            let failure = Foreign::read(&bad).err().expect("it is refused");
            assert_eq!(failure.exit_code(), 2, "{failure}");
        }
    }
}
