//! Who is asked, and as whom: each thing that can be said, against each other one.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;

use clap::Parser as _;

use super::*;
use crate::cli::args::Cli;
use crate::domain::id::TokenId;

/// A folder with a file of profiles, a token file, and tokens that can be told apart.
struct Machine(tempfile::TempDir);

fn token(number: u8) -> String {
    token::format(TokenId(uuid::Uuid::from_u128(number.into())), &[number; 32])
}

const OF_FILE: u8 = 1;
const OF_ENVIRONMENT: u8 = 2;
const OF_DEFAULT: u8 = 3;
const OF_WORK: u8 = 4;

impl Machine {
    fn new() -> Self {
        let machine = Self(tempfile::tempdir().expect("a folder"));
        machine.write("token", &token(OF_FILE));
        machine.write(
            "config.toml",
            &format!(
                "[profiles.default]\nurl = 'http://default'\ntoken = '{}'\n\
                 [profiles.work]\nurl = 'http://work'\ntoken = '{}'\n",
                token(OF_DEFAULT),
                token(OF_WORK)
            ),
        );
        machine
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.0.path().join(name);
        fs::write(&path, text).expect("a file");
        fs::set_permissions(&path, Permissions::from_mode(0o600)).expect("a mode");
    }

    /// What comes of flags and variables: which token, and which server.
    fn find(&self, flags: &str, variables: &str) -> Result<(u8, String), Failure> {
        let folder = self.0.path().display().to_string();
        let flags = flags.replace("FILE", &format!("{folder}/token"));
        let line = format!("pearing-cli whoami {flags}");
        let cli = Cli::try_parse_from(line.split_whitespace()).expect("a command line");
        let mut environment =
            Environment { config: Some(self.0.path().join("config.toml")), ..Default::default() };
        for variable in variables.split_whitespace() {
            match variable.split_once('=') {
                Some(("URL", url)) => environment.url = Some(url.to_owned()),
                Some(("PROFILE", name)) => environment.profile = Some(name.to_owned()),
                _ => environment.token = Some(token(OF_ENVIRONMENT)),
            }
        }
        let said = Said { global: &cli.global, environment: &environment };
        let Connection { server, token: found } = said.connection()?;
        let number = (1..=4).find(|number| token(*number) == found.text).expect("one of them");
        let used = said.used_profile()?;
        assert_eq!(used.is_some(), matches!(found.source, TokenSource::Profile(..)));
        Ok((number, server.url.to_string()))
    }
}

#[test]
fn the_nearest_word_says_who_and_where() {
    let machine = Machine::new();
    let (default, work) = ("http://default", "http://work");
    for (flags, variables, number, url) in [
        ("", "", OF_DEFAULT, default),
        ("", "PROFILE=work", OF_WORK, work),
        ("--profile work", "", OF_WORK, work),
        ("--profile work", "PROFILE=default TOKEN", OF_WORK, work),
        // A token of the shell's own, and no profile named: the file has no say.
        ("", "TOKEN", OF_ENVIRONMENT, DEFAULT_URL),
        ("", "TOKEN URL=http://there", OF_ENVIRONMENT, "http://there"),
        ("--url http://here", "TOKEN URL=http://there", OF_ENVIRONMENT, "http://here"),
        ("--token-file FILE", "TOKEN", OF_FILE, DEFAULT_URL),
        // A profile that is named says where, but doesn't beat a token.
        ("", "TOKEN PROFILE=work", OF_ENVIRONMENT, work),
        ("", "TOKEN PROFILE=work URL=http://there", OF_ENVIRONMENT, "http://there"),
        ("--token-file FILE --profile work", "TOKEN", OF_FILE, work),
        ("--token-file FILE --profile work --url http://here", "", OF_FILE, "http://here"),
        // The profile's own server, said once more.
        ("--url http://work:80/", "PROFILE=work", OF_WORK, work),
    ] {
        let found = machine.find(flags, variables);
        let found = found.unwrap_or_else(|failure| panic!("{flags} {variables}: {failure}"));
        assert_eq!(found, (number, url.to_owned()), "{flags} {variables}");
    }
}

#[test]
fn a_profiles_token_goes_to_no_other_server() {
    let machine = Machine::new();
    for (flags, variables) in [
        ("--url http://here", ""),
        ("--url http://work", ""),
        ("--url https://default", ""),
        ("", "URL=http://there"),
        ("--profile work", "URL=http://default"),
        ("--profile work", "URL=http://default TOKEN"),
        ("--url http://work", "PROFILE=default URL=http://default"),
    ] {
        let failure = machine.find(flags, variables).expect_err("it is another server");
        assert_eq!(failure.exit_code(), 2, "{flags} {variables}");
        assert!(failure.to_string().contains("to no other server"), "{failure}");
    }
}

#[test]
fn what_is_missing_is_said() {
    let machine = Machine::new();
    for (flags, variables) in [("--profile nobody", ""), ("", "PROFILE=nobody TOKEN")] {
        let failure = machine.find(flags, variables).expect_err("there is no such profile");
        assert_eq!(failure.exit_code(), 2);
        assert!(failure.to_string().contains("no profile nobody in "), "{failure}");
    }
    let work = format!("[profiles.work]\nurl = 'http://work'\ntoken = '{}'\n", token(OF_WORK));
    let ana = work.replace("work", "ana");
    for (text, said) in [
        (work.clone(), "there is the profile work: name it by --profile or"),
        (work + &ana, "there are the profiles ana, work: name one by --profile or"),
    ] {
        machine.write("config.toml", &text);
        let failure = machine.find("", "").expect_err("none is the default");
        assert_eq!(failure.exit_code(), 7);
        assert!(failure.to_string().contains(said), "{failure}");
    }
    let failure = machine.find("", "PROFILE=a/b").expect_err("no name");
    assert_eq!(failure.exit_code(), 2);
    fs::remove_file(machine.0.path().join("config.toml")).expect("it is there");
    assert_eq!(machine.find("", "").expect_err("nobody is logged in").exit_code(), 7);
    fs::remove_file(machine.0.path().join("token")).expect("it is there");
    assert_eq!(machine.find("--token-file FILE", "").expect_err("no file").exit_code(), 2);
}

#[test]
fn a_file_that_is_not_needed_does_no_harm() {
    let machine = Machine::new();
    let path = machine.0.path().join("config.toml");
    fs::set_permissions(&path, Permissions::from_mode(0o644)).expect("a mode");
    let found = machine.find("", "TOKEN").expect("it has its own token");
    assert_eq!(found, (OF_ENVIRONMENT, DEFAULT_URL.to_owned()));
    let failure = machine.find("", "").expect_err("others can read it");
    assert_eq!(failure.exit_code(), 2);
    assert!(failure.to_string().contains("chmod 600"), "{failure}");
}

#[test]
fn a_mistyped_token_is_not_sent_and_not_shown() {
    let machine = Machine::new();
    machine.write("token", "pearing_abc");
    machine.write(
        "config.toml",
        "[profiles.default]\nurl = 'http://default'\ntoken = 'pearing_abc'\n",
    );
    for flags in ["--token-file FILE", ""] {
        let failure = machine.find(flags, "").expect_err("no token");
        assert_eq!(failure.exit_code(), 7);
        assert!(!failure.to_string().contains("pearing_abc"), "{failure}");
    }
}
