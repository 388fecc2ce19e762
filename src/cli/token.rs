//! Where the token comes from: a file that was named, or the environment.
//!
//! There is no shared login file, so two agents on one machine can't take each other's identity.

use std::fmt;
use std::io::Read as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use super::Failure;
use crate::wire::token;

const VARIABLE: &str = "PEARING_TOKEN";

/// A token and its source. The text is a secret: nothing prints it.
pub(super) struct FoundToken {
    pub(super) text: String,
    pub(super) source: Source,
}

/// Where a token came from.
pub(super) enum Source {
    Environment,
    File(PathBuf),
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Environment => f.write_str(VARIABLE),
            Self::File(path) => path.display().fmt(f),
        }
    }
}

/// The token of the file, if one is named; else that of the environment.
pub(super) fn find(file: Option<&Path>) -> Result<FoundToken, Failure> {
    let (text, source) = match file {
        Some(path) => (read(path)?, Source::File(path.to_owned())),
        None => {
            let text = std::env::var(VARIABLE).unwrap_or_default();
            if text.trim().is_empty() {
                let what = "set PEARING_TOKEN, or name a file by --token-file";
                return Err(Failure::Token(what.to_owned()));
            }
            (text, Source::Environment)
        }
    };
    let text = text.trim().to_owned();
    if token::parse(&text).is_none() {
        return Err(Failure::Token(format!("what {source} holds is no token, or a mistyped one")));
    }
    Ok(FoundToken { text, source })
}

/// Reads a token file, which nobody but its owner may be able to read.
fn read(path: &Path) -> Result<String, Failure> {
    let failed = |why: &dyn fmt::Display| Failure::Usage(format!("{}: {why}", path.display()));
    let file = std::fs::File::open(path).map_err(|e| failed(&e))?;
    // Of the file that is open, so that it can't be exchanged in between.
    let metadata = file.metadata().map_err(|e| failed(&e))?;
    if !metadata.is_file() {
        return Err(failed(&"is no file"));
    }
    if metadata.permissions().mode() & 0o077 != 0 {
        return Err(failed(&"others can read it: chmod 600 it first"));
    }
    let mut text = String::new();
    file.take(4096).read_to_string(&mut text).map_err(|e| failed(&e))?;
    Ok(text)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::domain::id::TokenId;

    fn file(text: &str, mode: u32) -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("token");
        fs::write(&path, text).expect("a file");
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).expect("a mode");
        (folder, path)
    }

    #[test]
    fn a_token_file_that_others_can_read_is_refused() {
        let token = token::format(TokenId(uuid::Uuid::from_u128(1)), &[7; 32]);
        let (_folder, path) = file(&format!("{token}\n"), 0o600);
        let found = find(Some(&path)).unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(found.text, token);
        assert_eq!(found.source.to_string(), path.display().to_string());
        for mode in [0o640, 0o604, 0o620] {
            let (_folder, path) = file(&token, mode);
            let failure = find(Some(&path)).err().expect("others can read it");
            assert_eq!(failure.exit_code(), 2);
            assert!(!failure.to_string().contains(&token), "{failure}");
        }
    }

    #[test]
    fn a_mistyped_token_is_not_sent_and_not_shown() {
        let (_folder, path) = file("pearing_abc", 0o600);
        let failure = find(Some(&path)).err().expect("no token");
        assert_eq!(failure.exit_code(), 7);
        assert!(!failure.to_string().contains("pearing_abc"), "{failure}");
    }
}
