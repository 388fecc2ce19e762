//! The file of profiles: for each name, a server and the token that is good there.
//!
//! ```toml
//! [profiles.default]
//! url = "http://127.0.0.1:7420"
//! token = "pearing_..."
//! ```
//! What else stands in it, comments too, is left as it is. No error repeats any of its text, since
//! that can be a token.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::str::FromStr;

use toml_edit::{DocumentMut, Item, Table, TableLike, value};

use super::Failure;
use super::private::{self, Claim};
use crate::client::ServerUrl;

const PROFILES: &str = "profiles";
const URL: &str = "url";
const TOKEN: &str = "token";

/// The name of a profile.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ProfileName(String);

impl ProfileName {
    const RULE: &str = "must match [A-Za-z0-9][A-Za-z0-9._-]{0,63}";
}

/// The profile of who names none.
impl Default for ProfileName {
    fn default() -> Self {
        Self("default".to_owned())
    }
}

impl FromStr for ProfileName {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, &'static str> {
        let byte_ok = |b: u8| b.is_ascii_alphanumeric() || b"._-".contains(&b);
        let is_valid = text.len() <= 64
            && text.bytes().all(byte_ok)
            && text.bytes().next().is_some_and(|b| b.is_ascii_alphanumeric());
        if is_valid { Ok(Self(text.to_owned())) } else { Err(Self::RULE) }
    }
}

impl fmt::Display for ProfileName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A server, and a token that was good there. Without `Debug`: the token is a secret.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Profile {
    pub(super) url: ServerUrl,
    pub(super) token: String,
}

/// Every profile of a file, by name.
pub(super) type Profiles = BTreeMap<ProfileName, Profile>;

/// Reads the profiles of a file. Without a file there are none.
pub(super) fn read(path: &Path) -> Result<Profiles, Failure> {
    let text = private::read(path)?.unwrap_or_default();
    parse(&text).map_err(|why| damaged(path, &why))
}

/// Keeps a profile, in the place of the one that has this name. Returns that one.
pub(super) async fn keep(
    path: &Path,
    name: &ProfileName,
    profile: &Profile,
) -> Result<Option<Profile>, Failure> {
    let claim = Claim::wait_for(path).await?;
    let before = claim.read()?;
    let replaced = parse(&before).map_err(|why| damaged(path, &why))?.remove(name);
    let text = put(&before, name, profile).map_err(|why| damaged(path, &why))?;
    claim.replace(&text)?;
    Ok(replaced)
}

/// Forgets a profile. Returns whether there was one.
pub(super) async fn forget(path: &Path, name: &ProfileName) -> Result<bool, Failure> {
    let claim = Claim::wait_for(path).await?;
    let without = remove(&claim.read()?, name).map_err(|why| damaged(path, &why))?;
    let Some(text) = without else {
        return Ok(false);
    };
    claim.replace(&text)?;
    Ok(true)
}

fn damaged(path: &Path, why: &str) -> Failure {
    Failure::Usage(format!("{}: {why}", path.display()))
}

fn document(text: &str) -> Result<DocumentMut, String> {
    text.parse::<DocumentMut>().map_err(|error| {
        let at = error.span().map_or(0, |span| span.start);
        let line = text.bytes().take(at).filter(|b| *b == b'\n').count() + 1;
        format!("line {line} is no TOML")
    })
}

/// The tables of all profiles, if the document has any.
fn tables(document: &DocumentMut) -> Result<Option<&dyn TableLike>, String> {
    let item = document.get(PROFILES);
    item.map(|item| item.as_table_like().ok_or(format!("{PROFILES} is no table"))).transpose()
}

fn parse(text: &str) -> Result<Profiles, String> {
    let document = document(text)?;
    let mut profiles = Profiles::new();
    for (name, item) in tables(&document)?.into_iter().flat_map(|tables| tables.iter()) {
        let name: ProfileName =
            name.parse().map_err(|rule| format!("the name of a profile {rule}"))?;
        let field = |field: &str| {
            let text = item.get(field).and_then(Item::as_str);
            text.ok_or(format!("profile {name} has no {field}, or one that is no text"))
        };
        let url = field(URL)?.parse();
        let url = url.map_err(|why| format!("the {URL} of profile {name} {why}"))?;
        let token = field(TOKEN)?.to_owned();
        profiles.insert(name, Profile { url, token });
    }
    Ok(profiles)
}

/// The text with a profile in it.
fn put(text: &str, name: &ProfileName, profile: &Profile) -> Result<String, String> {
    let mut document = document(text)?;
    // No heading of its own, where there are only the profiles below it.
    let all = document.entry(PROFILES).or_insert_with(|| {
        let mut all = Table::new();
        all.set_implicit(true);
        Item::Table(all)
    });
    let all = all.as_table_like_mut().ok_or(format!("{PROFILES} is no table"))?;
    let own = all.entry(&name.0).or_insert_with(|| Item::Table(Table::new()));
    let own = own.as_table_like_mut().ok_or(format!("profile {name} is no table"))?;
    own.insert(URL, value(profile.url.as_str()));
    own.insert(TOKEN, value(profile.token.as_str()));
    Ok(document.to_string())
}

/// The text without a profile; `None` if there is no such profile.
fn remove(text: &str, name: &ProfileName) -> Result<Option<String>, String> {
    let mut document = document(text)?;
    let all = document.get_mut(PROFILES).and_then(Item::as_table_like_mut);
    Ok(all.and_then(|all| all.remove(&name.0)).map(|_| document.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> ProfileName {
        text.parse().expect("a name")
    }

    fn profile(port: u16, token: &str) -> Profile {
        let url = format!("http://localhost:{port}").parse().expect("an address");
        Profile { url, token: token.to_owned() }
    }

    #[test]
    fn profiles_come_and_go_and_all_else_in_the_file_stays() {
        let by_hand = "# mine\ncolour = \"red\"\n\n[profiles.work] # the office\n\
                       url = \"http://host\" # behind the proxy\ntoken = \"t1\"\nextra = 1\n";
        let both = put(by_hand, &name("ana.bot"), &profile(1, "t2")).expect("a profile");
        assert!(both.starts_with(by_hand), "{both}");
        let read = parse(&both).expect("profiles");
        assert!(read.len() == 2 && read[&name("work")].token == "t1");
        assert!(read[&name("ana.bot")] == profile(1, "t2"));

        let again = put(&both, &name("work"), &profile(3, "t3")).expect("a profile");
        assert!(parse(&again).expect("profiles")[&name("work")] == profile(3, "t3"));
        assert!(again.contains("# mine") && again.contains("extra = 1"), "{again}");
        let one = remove(&again, &name("work")).expect("profiles").expect("it was there");
        assert!(!one.contains("t3") && one.contains("t2") && one.contains("# mine"), "{one}");
        assert_eq!(remove(&one, &name("work")), Ok(None));
        assert_eq!(remove("", &name("work")), Ok(None));
    }

    #[test]
    fn a_file_of_ours_is_plain() {
        let text = put("", &ProfileName::default(), &profile(7420, "t")).expect("a profile");
        assert_eq!(text, "[profiles.default]\nurl = \"http://localhost:7420\"\ntoken = \"t\"\n");
    }

    #[test]
    fn what_is_wrong_is_said_without_the_files_text() {
        for (text, said) in [
            ("\n\n= secret", "line 3 is no TOML"),
            ("profiles = 'secret'", "profiles is no table"),
            ("[profiles.a]\nurl = 'http://host'\n", "profile a has no token"),
            ("[profiles.a]\nurl = 'http://host'\ntoken = ['secret']", "profile a has no token"),
            ("[profiles.a]\ntoken = 'secret'\nurl = 'secret'", "the url of profile a is no"),
            ("[profiles]\na = 'secret'", "profile a has no url"),
            ("[profiles.'secret!']", "the name of a profile must match"),
        ] {
            let why = parse(text).err().unwrap_or_else(|| panic!("{text} is taken"));
            assert!(why.starts_with(said) && !why.contains("secret"), "{text}: {why}");
        }
    }

    #[test]
    fn names_of_profiles_are_plain_words() {
        for good in ["default", "ana.codex", "Work_2", &"a".repeat(64)] {
            assert!(good.parse::<ProfileName>().is_ok(), "{good}");
        }
        for bad in ["", ".a", "-a", "a b", "a/b", "é", &"a".repeat(65)] {
            assert!(bad.parse::<ProfileName>().is_err(), "{bad}");
        }
    }
}
