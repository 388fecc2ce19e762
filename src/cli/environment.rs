//! What the environment says, read once. A variable that is empty is as good as none.

use std::ffi::OsString;
use std::path::PathBuf;

/// The variables that matter.
#[derive(Default)]
pub(super) struct Environment {
    /// `PEARING_URL`
    pub(super) url: Option<String>,
    /// `PEARING_TOKEN`, which is a secret.
    pub(super) token: Option<String>,
    /// `PEARING_PROFILE`
    pub(super) profile: Option<String>,
    /// `PEARING_OUTPUT`
    pub(super) output: Option<String>,
    /// `PEARING_LOCK_NAME`
    pub(super) lock_name: Option<String>,
    /// `PEARING_FENCE_TOKEN`
    pub(super) fence_token: Option<String>,
    /// `PEARING_SCOPE`
    pub(super) scope: Option<String>,
    /// Where the file of profiles is, if that can be told.
    pub(super) config: Option<PathBuf>,
    /// `HOME`, if it is a whole path.
    pub(super) home: Option<PathBuf>,
    /// `CLAUDE_CONFIG_DIR`, where Claude Code has its configuration.
    pub(super) claude_config_dir: Option<PathBuf>,
    /// `CODEX_HOME`, where Codex has its configuration.
    pub(super) codex_home: Option<PathBuf>,
    /// The folder of what is kept between two runs, if that can be told.
    pub(super) state: Option<PathBuf>,
}

impl Environment {
    /// The environment of this process.
    pub(super) fn read() -> Self {
        Self::of(|name| std::env::var_os(name))
    }

    fn of(variable: impl Fn(&str) -> Option<OsString>) -> Self {
        let set = |name: &str| variable(name).filter(|value| !value.is_empty());
        // What is no text is no value of these either, and is refused as such.
        let text = |name: &str| {
            let text = set(name)?.to_string_lossy().trim().to_owned();
            (!text.is_empty()).then_some(text)
        };
        // As they stand: a blank one is a mistake, and no write goes out without its fence for it.
        let exact = |name: &str| set(name).map(|value| value.to_string_lossy().into_owned());
        let path = |name: &str| set(name).map(PathBuf::from);
        // A path that depends on where one happens to be is no place for a configuration.
        let folder = |name: &str| path(name).filter(|path| path.is_absolute());
        let home = || Some(folder("HOME")?.join(".config"));
        let in_home = || Some(folder("XDG_CONFIG_HOME").or_else(home)?.join("pearing/config.toml"));
        let state_home = || Some(folder("HOME")?.join(".local/state"));
        Self {
            url: text("PEARING_URL"),
            token: text("PEARING_TOKEN"),
            profile: text("PEARING_PROFILE"),
            output: text("PEARING_OUTPUT"),
            lock_name: exact("PEARING_LOCK_NAME"),
            fence_token: exact("PEARING_FENCE_TOKEN"),
            scope: exact("PEARING_SCOPE"),
            config: path("PEARING_CONFIG").or_else(in_home),
            home: folder("HOME"),
            claude_config_dir: path("CLAUDE_CONFIG_DIR"),
            codex_home: path("CODEX_HOME"),
            state: folder("XDG_STATE_HOME").or_else(state_home).map(|state| state.join("pearing")),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStringExt as _;

    use super::*;

    fn of(variables: &[(&str, &str)]) -> Environment {
        Environment::of(|name| {
            let found = variables.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| OsString::from(value))
        })
    }

    #[test]
    fn the_file_of_profiles_is_where_it_is_said_to_be() {
        let (home, xdg) = (("HOME", "/home/ana"), ("XDG_CONFIG_HOME", "/etc/ana"));
        for (variables, path) in [
            (&[("PEARING_CONFIG", "here.toml"), home, xdg][..], Some("here.toml")),
            (&[("PEARING_CONFIG", ""), home, xdg], Some("/etc/ana/pearing/config.toml")),
            (&[("XDG_CONFIG_HOME", "etc"), home], Some("/home/ana/.config/pearing/config.toml")),
            (&[home], Some("/home/ana/.config/pearing/config.toml")),
            (&[], None),
        ] {
            assert_eq!(of(variables).config, path.map(PathBuf::from), "{variables:?}");
        }
        let state = |variables: &[(&str, &str)]| of(variables).state;
        assert_eq!(state(&[home]), Some(PathBuf::from("/home/ana/.local/state/pearing")));
        let set = ("XDG_STATE_HOME", "/var/ana");
        assert_eq!(state(&[home, set]), Some(PathBuf::from("/var/ana/pearing")));
        assert_eq!(state(&[]), None);
    }

    #[test]
    fn an_empty_variable_is_none() {
        let empty = of(&[("PEARING_URL", ""), ("PEARING_TOKEN", " \n"), ("PEARING_OUTPUT", "")]);
        assert_eq!((empty.url, empty.token, empty.output), (None, None, None));
        assert_eq!(of(&[("PEARING_TOKEN", " t\n")]).token.as_deref(), Some("t"));
    }
    #[test]
    fn what_is_no_text_is_not_taken_for_unset() {
        let variable = |name: &str| {
            let is_fence = name.starts_with("PEARING_FENCE") || name.starts_with("PEARING_LOCK");
            is_fence.then(|| OsString::from_vec(vec![b'7', 0xff]))
        };
        let environment = Environment::of(variable);
        assert_eq!(environment.lock_name.as_deref(), Some("7\u{fffd}"));
        assert_eq!(environment.fence_token.as_deref(), Some("7\u{fffd}"));
        let blank = of(&[("PEARING_FENCE_TOKEN", " "), ("PEARING_SCOPE", "")]);
        assert_eq!((blank.fence_token.as_deref(), blank.scope), (Some(" "), None));
    }
}
