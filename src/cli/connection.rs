//! Which server is asked, and as whom: flags, then the environment, then a profile.
//!
//! The file of profiles is shared by all shells of a user, so it decides nothing that a shell has
//! said for itself: with a token of its own and no profile named, a shell doesn't even read it.
//! And a profile's token goes to the profile's server and to no other one.

use std::fmt;
use std::path::{Path, PathBuf};

use super::Failure;
use super::args::Global;
use super::environment::Environment;
use super::private;
use super::profiles::{self, Profile, ProfileName, Profiles};
use crate::client::ServerUrl;
use crate::wire::token;

const DEFAULT_URL: &str = "http://127.0.0.1:7420";
const NO_TOKEN: &str =
    "log in with `pearing-cli login`, set PEARING_TOKEN, or name a file by --token-file";

/// Who is asked, and as whom.
pub(super) struct Connection {
    pub(super) server: Server,
    pub(super) token: FoundToken,
}

/// A server, and what named it.
pub(super) struct Server {
    pub(super) url: ServerUrl,
    pub(super) source: UrlSource,
}

/// Where an address came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum UrlSource {
    Flag,
    Environment,
    Profile(ProfileName),
    Default,
}

impl fmt::Display for UrlSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Flag => f.write_str("--url"),
            Self::Environment => f.write_str("PEARING_URL"),
            Self::Profile(name) => write!(f, "profile {name}"),
            Self::Default => f.write_str("the default"),
        }
    }
}

/// A token and its source. The text is a secret: nothing prints it.
pub(super) struct FoundToken {
    pub(super) text: String,
    pub(super) source: TokenSource,
}

/// Where a token came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum TokenSource {
    File(PathBuf),
    Environment,
    Profile(ProfileName, PathBuf),
    Input,
}

impl fmt::Display for TokenSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => path.display().fmt(f),
            Self::Environment => f.write_str("PEARING_TOKEN"),
            Self::Input => f.write_str("stdin"),
            Self::Profile(name, path) => write!(f, "profile {name} in {}", path.display()),
        }
    }
}

/// What was said about both: on the command line, and in the environment.
#[derive(Clone, Copy)]
pub(super) struct Said<'a> {
    pub(super) global: &'a Global,
    pub(super) environment: &'a Environment,
}

impl Said<'_> {
    /// Who is asked, and as whom.
    pub(super) fn connection(self) -> Result<Connection, Failure> {
        let own = self.own_token()?;
        let (named, url) = (self.named_profile()?, self.url()?);
        let own = match (own, &named) {
            (Some(token), None) => {
                return Ok(Connection { server: url.unwrap_or_else(default_server), token });
            }
            (own, _) => own,
        };
        let is_named = named.is_some();
        let name = named.unwrap_or_default();
        let profile = match self.profile(&name)? {
            Some(profile) => profile,
            None if is_named => return Err(self.no_profile(&name)),
            None => return Err(self.no_token()),
        };
        if let (None, Some(given)) = (&own, &url)
            && given.url != profile.url
        {
            return Err(another_server(&name, &profile, given));
        }
        let source = UrlSource::Profile(name.clone());
        let server = url.unwrap_or(Server { url: profile.url, source });
        let token = match own {
            Some(token) => token,
            None => checked(profile.token, TokenSource::Profile(name, self.path()?.to_owned()))?,
        };
        Ok(Connection { server, token })
    }

    /// Who is asked, whether there is a token or not.
    pub(super) fn server(self) -> Result<Server, Failure> {
        if let Some(server) = self.url()? {
            return Ok(server);
        }
        let named = self.named_profile()?;
        if named.is_none() && self.own_token()?.is_some() {
            return Ok(default_server());
        }
        let name = named.unwrap_or_default();
        Ok(self.profile(&name)?.map_or_else(default_server, |profile| Server {
            url: profile.url,
            source: UrlSource::Profile(name),
        }))
    }

    /// The token that this command line or this shell has for itself. A profile that is named on
    /// the command line is nearer than a variable of the environment.
    fn own_token(self) -> Result<Option<FoundToken>, Failure> {
        if let Some(path) = &self.global.token_file {
            return from_file(path).map(Some);
        }
        match &self.environment.token {
            Some(text) if self.global.profile.is_none() => {
                checked(text.clone(), TokenSource::Environment).map(Some)
            }
            Some(_) | None => Ok(None),
        }
    }

    /// The profile that is named, if one is.
    pub(super) fn named_profile(self) -> Result<Option<ProfileName>, Failure> {
        if self.global.profile.is_some() {
            return Ok(self.global.profile.clone());
        }
        let named = self.environment.profile.as_deref().map(str::parse);
        named.transpose().map_err(|rule| Failure::Usage(format!("PEARING_PROFILE {rule}")))
    }

    /// The profile whose token would be sent, if any is.
    pub(super) fn used_profile(self) -> Result<Option<ProfileName>, Failure> {
        let is_beaten = self.global.token_file.is_some()
            || (self.global.profile.is_none() && self.environment.token.is_some());
        let named = self.named_profile()?;
        Ok((!is_beaten).then(|| named.unwrap_or_default()))
    }

    /// The address that the command line or the environment gives, if one does.
    pub(super) fn url(self) -> Result<Option<Server>, Failure> {
        if let Some(url) = &self.global.url {
            return Ok(Some(Server { url: url.clone(), source: UrlSource::Flag }));
        }
        let Some(text) = &self.environment.url else {
            return Ok(None);
        };
        let url = text.parse().map_err(|why| Failure::Usage(format!("PEARING_URL {why}")))?;
        Ok(Some(Server { url, source: UrlSource::Environment }))
    }

    fn path_if_any(&self) -> Option<&Path> {
        self.global.config.as_deref().or(self.environment.config.as_deref())
    }

    /// Where the file of profiles is.
    pub(super) fn path(&self) -> Result<&Path, Failure> {
        self.path_if_any().ok_or_else(|| {
            Failure::Usage("there is no HOME: say by --config where profiles are".to_owned())
        })
    }

    /// Every profile. Without a file there are none.
    fn profiles(self) -> Result<Profiles, Failure> {
        self.path_if_any().map_or(Ok(Profiles::new()), profiles::read)
    }

    /// A profile, if there is a file and it is in there.
    pub(super) fn profile(self, name: &ProfileName) -> Result<Option<Profile>, Failure> {
        Ok(self.profiles()?.remove(name))
    }

    /// What is said where no token is, nor a profile that would be taken without being named.
    fn no_token(self) -> Failure {
        let names: Vec<String> = match self.profiles() {
            Ok(profiles) => profiles.keys().map(ToString::to_string).collect(),
            Err(failure) => return failure,
        };
        Failure::Token(match &names[..] {
            [] => NO_TOKEN.to_owned(),
            [name] => {
                format!("there is the profile {name}: name it by --profile or PEARING_PROFILE")
            }
            names => format!(
                "there are the profiles {}: name one by --profile or PEARING_PROFILE",
                names.join(", ")
            ),
        })
    }

    /// What is said of a profile that isn't there.
    pub(super) fn no_profile(self, name: &ProfileName) -> Failure {
        let file = self.path_if_any().map(|path| format!(" in {}", path.display()));
        Failure::Usage(format!("there is no profile {name}{}", file.unwrap_or_default()))
    }
}

/// The token of a file that was named.
pub(super) fn from_file(path: &Path) -> Result<FoundToken, Failure> {
    let missing = || Failure::Usage(format!("{}: there is no such file", path.display()));
    let text = private::read(path)?.ok_or_else(missing)?;
    checked(text, TokenSource::File(path.to_owned()))
}

/// A token, if it has the form of one.
pub(super) fn checked(text: String, source: TokenSource) -> Result<FoundToken, Failure> {
    let text = text.trim().to_owned();
    if token::parse(&text).is_none() {
        return Err(Failure::Token(format!("what {source} holds is no token, or a mistyped one")));
    }
    Ok(FoundToken { text, source })
}

/// Where a server is that nobody names.
pub(super) fn default_server() -> Server {
    let url = DEFAULT_URL.parse().expect("the default is an address");
    Server { url, source: UrlSource::Default }
}

fn another_server(name: &ProfileName, profile: &Profile, given: &Server) -> Failure {
    Failure::Usage(format!(
        "profile {name} is for {}, but {} says {}: its token is sent to no other server; log in \
         there with another --profile",
        profile.url, given.source, given.url
    ))
}

#[cfg(test)]
#[path = "connection_tests.rs"]
mod tests;
