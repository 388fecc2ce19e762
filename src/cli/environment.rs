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
    /// Where the file of profiles is, if that can be told.
    pub(super) config: Option<PathBuf>,
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
        let path = |name: &str| set(name).map(PathBuf::from);
        // A path that depends on where one happens to be is no place for a configuration.
        let folder = |name: &str| path(name).filter(|path| path.is_absolute());
        let home = || Some(folder("HOME")?.join(".config"));
        let in_home = || Some(folder("XDG_CONFIG_HOME").or_else(home)?.join("pearing/config.toml"));
        Self {
            url: text("PEARING_URL"),
            token: text("PEARING_TOKEN"),
            profile: text("PEARING_PROFILE"),
            output: text("PEARING_OUTPUT"),
            config: path("PEARING_CONFIG").or_else(in_home),
        }
    }
}

#[cfg(test)]
mod tests {
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
    }

    #[test]
    fn an_empty_variable_is_none() {
        let empty = of(&[("PEARING_URL", ""), ("PEARING_TOKEN", " \n"), ("PEARING_OUTPUT", "")]);
        assert_eq!((empty.url, empty.token, empty.output), (None, None, None));
        assert_eq!(of(&[("PEARING_TOKEN", " t\n")]).token.as_deref(), Some("t"));
    }
}
