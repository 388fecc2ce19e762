//! Query parameters: decoded once, each known and given at most once.

use crate::domain::id::Sequence;
use crate::domain::scope::{Scope, ScopeKind};

use super::cursor;
use super::failure::Failure;
use crate::projection::as_of::AsOf;

/// The parameters that name a scope; exactly one of them is given where a scope is needed.
pub(super) const SCOPE: [&str; 3] = ["repo", "team", "user"];

/// The parameters of a list's page.
pub(super) const PAGE: [&str; 2] = ["limit", "cursor"];

/// How many items a page has, and how many it may be asked to have.
const LIMIT_DEFAULT: usize = 100;
const LIMIT_MOST: usize = 1000;

/// What a sequence must be, fit for "after RULE".
pub(super) const SEQUENCE_RULE: &str = "must be a sequence, a whole number";

const SCOPE_RULE: &str = "is needed, or team or user instead, and exactly one of them";

/// The decoded parameters of a request.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Query(Vec<(String, String)>);

impl Query {
    /// Decodes `raw`, in which only the parameters of `known` may stand.
    pub(super) fn parse(raw: &str, known: &[&[&str]]) -> Result<Self, Failure> {
        let mut parameters: Vec<(String, String)> = Vec::new();
        for pair in raw.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let (name, value) = (decode(name)?, decode(value)?);
            if !known.iter().any(|names| names.contains(&name.as_str())) {
                return Err(Failure::invalid(name, "is not a parameter of this call"));
            }
            if parameters.iter().any(|(earlier, _)| *earlier == name) {
                return Err(Failure::invalid(name, "must not be given more than once"));
            }
            parameters.push((name, value));
        }
        Ok(Self(parameters))
    }

    /// A parameter's text, if it is given.
    pub(super) fn text(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// A parameter's value, if it is given. `rule` says what a text that can't be read breaks.
    pub(super) fn value<T: std::str::FromStr>(
        &self,
        name: &'static str,
        rule: &'static str,
    ) -> Result<Option<T>, Failure> {
        self.text(name)
            .map(|text| text.parse().map_err(|_| Failure::invalid(name, rule)))
            .transpose()
    }

    /// How many items a page is to have.
    pub(super) fn limit(&self) -> Result<usize, Failure> {
        const RULE: &str = "must be a whole number from 1 to 1000";
        match self.value("limit", RULE)? {
            None => Ok(LIMIT_DEFAULT),
            Some(limit) if (1..=LIMIT_MOST).contains(&limit) => Ok(limit),
            Some(_) => Err(Failure::invalid("limit", RULE)),
        }
    }

    /// The moment of the past that is asked about, if one is.
    pub(super) fn moment(&self) -> Result<Option<AsOf>, Failure> {
        self.value("as_of", AsOf::RULE)
    }

    /// Where a page begins: the place at which an earlier page of the list ended.
    pub(super) fn cursor<T: std::str::FromStr>(&self) -> Result<Option<T>, Failure> {
        let Some(text) = self.text("cursor") else { return Ok(None) };
        let place = cursor::place(text).and_then(|place| place.parse().ok());
        place.map(Some).ok_or_else(|| Failure::invalid("cursor", cursor::RULE))
    }

    /// Where a page begins, in a list whose places are sequences.
    pub(super) fn sequence_cursor(&self) -> Result<Option<Sequence>, Failure> {
        Ok(self.cursor()?.map(Sequence))
    }

    /// The scope, which must be given.
    pub(super) fn scope(&self) -> Result<Scope, Failure> {
        self.scope_if_any()?.ok_or_else(|| Failure::invalid("repo", SCOPE_RULE))
    }

    /// The scope, which must be a repository.
    pub(super) fn repo(&self) -> Result<Scope, Failure> {
        let scope = self.scope()?;
        match scope.kind() {
            ScopeKind::Repo(_) => Ok(scope),
            ScopeKind::Team(_) | ScopeKind::User(_) => {
                Err(Failure::invalid("repo", format!("is needed here, and {}", Scope::REPO_RULE)))
            }
        }
    }

    /// The scope, where a call also makes sense without one.
    pub(super) fn scope_if_any(&self) -> Result<Option<Scope>, Failure> {
        let mut given = SCOPE.iter().filter_map(|name| Some((*name, self.text(name)?)));
        let Some((name, text)) = given.next() else {
            return Ok(None);
        };
        if given.next().is_some() {
            return Err(Failure::invalid(name, SCOPE_RULE));
        }
        // `repo` is the whole scope; of a team or a user only the name is given.
        let (whole, rule) = match name {
            "team" => (format!("teams/{text}"), "must be a team's name"),
            "user" => (format!("users/{text}"), "must be a user's name"),
            _ => (text.to_owned(), Scope::REPO_RULE),
        };
        let scope: Scope = whole.parse().map_err(|_| Failure::invalid(name, rule))?;
        let is_repo = matches!(scope.kind(), ScopeKind::Repo(_));
        if is_repo == (name == "repo") {
            Ok(Some(scope))
        } else {
            Err(Failure::invalid(name, rule))
        }
    }
}

/// The scope that a request names, if it names one rightly. What is wrong with it, or with another
/// parameter, its handler tells.
pub(super) fn scope_named(raw: &str) -> Option<Scope> {
    let mut parameters = Vec::new();
    for pair in raw.split('&') {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let name = decode(name).ok()?;
        if SCOPE.contains(&name.as_str()) {
            parameters.push((name, decode(value).ok()?));
        }
    }
    Query(parameters).scope_if_any().ok()?
}

/// Reads a sequence: digits alone, since a plus sign or a blank is a caller's mistake.
pub(super) fn sequence(text: &str) -> Option<Sequence> {
    let is_number = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    is_number.then(|| text.parse().ok().map(Sequence)).flatten()
}

/// Decodes `+` and percent escapes, once.
fn decode(text: &str) -> Result<String, Failure> {
    let malformed = || Failure::malformed("the query string holds an escape that is no UTF-8");
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'+' => b' ',
            b'%' => {
                let high = rest.next().and_then(hex_digit).ok_or_else(malformed)?;
                let low = rest.next().and_then(hex_digit).ok_or_else(malformed)?;
                high << 4 | low
            }
            byte => byte,
        });
    }
    String::from_utf8(bytes).map_err(|_| malformed())
}

fn hex_digit(byte: u8) -> Option<u8> {
    let digit = char::from(byte).to_digit(16)?;
    Some(u8::try_from(digit).expect("a hex digit is below 16"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scope(raw: &str) -> Result<Option<String>, String> {
        let query = Query::parse(raw, &[&SCOPE, &["as_of"]]).map_err(|f| f.to_string())?;
        query.scope_if_any().map(|s| s.map(|s| s.to_string())).map_err(|f| f.to_string())
    }

    #[test]
    fn a_scope_is_exactly_one_parameter() {
        assert_eq!(scope(""), Ok(None));
        assert_eq!(scope("repo=teams/a/b"), Ok(Some("teams/a/b".into())));
        assert_eq!(scope("repo=teams%2Fa%2Fb"), Ok(Some("teams/a/b".into())));
        assert_eq!(scope("team=a"), Ok(Some("teams/a".into())));
        assert_eq!(scope("user=a"), Ok(Some("users/a".into())));
        for (raw, field) in [
            ("repo=teams/a", "repo"),
            ("repo=users/ledger/a", "repo"),
            ("team=a/b", "team"),
            ("user=a/b", "user"),
            ("user=ledger", "user"),
            ("repo=", "repo"),
            ("repo=teams/a/b&team=a", "repo"),
            ("repo=teams/a/b&repo=teams/a/b", "repo"),
            ("scope=teams/a", "scope"),
            ("repo=teams%252Fa%252Fb", "repo"),
        ] {
            let said = scope(raw).expect_err(raw);
            assert!(said.starts_with(&format!("invalid-argument: {field} ")), "{raw}: {said}");
        }
    }

    #[test]
    fn a_scope_is_found_among_other_parameters_in_any_spelling() {
        let named = |raw| scope_named(raw).map(|scope| scope.to_string());
        assert_eq!(named("limit=5&repo=teams/a/b").as_deref(), Some("teams/a/b"));
        assert_eq!(named("%72epo=teams%2fa/b&x").as_deref(), Some("teams/a/b"));
        assert_eq!(named("team=a&lock=%zz").as_deref(), Some("teams/a"));
        for raw in ["", "x=1", "repo=teams/a", "team=a&user=b", "team=%zz", "repository=teams/a/b"]
        {
            assert_eq!(named(raw), None, "{raw}");
        }
    }

    #[test]
    fn a_sequence_is_digits_alone() {
        assert_eq!(sequence("0"), Some(Sequence(0)));
        assert_eq!(sequence("18446744073709551615"), Some(Sequence(u64::MAX)));
        for bad in ["", "+1", "-1", " 1", "1 ", "1.0", "x", "18446744073709551616"] {
            assert_eq!(sequence(bad), None, "{bad:?}");
        }
    }

    #[test]
    fn a_bad_escape_is_malformed() {
        for raw in ["as_of=%", "as_of=%4", "as_of=%zz", "as_of=%ff", "%c3=1"] {
            let said = scope(raw).expect_err(raw);
            assert!(said.starts_with("malformed: "), "{raw}: {said}");
        }
    }
}
