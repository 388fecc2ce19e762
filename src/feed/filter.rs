//! Which events a reader asked for, and which it may see. Both are judged for each event at the
//! moment at which it is sent: access as it is NOW, not as it was when the event happened.

use crate::domain::access::Access;
use crate::domain::event::{Event, Record, Subject};
use crate::domain::id::TokenId;
use crate::domain::name::{Actor, LockName, UserName};
use crate::domain::scope::Scope;
use crate::domain::time::Time;
use crate::wire::cloud_event::TYPE_PREFIX;

/// A pattern of event types: a type in which `*` stands for any run of characters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TypeGlob(String);

impl TypeGlob {
    /// The rule, fit for "type RULE".
    pub const RULE: &str = "must be patterns like lock.* or lock.released, separated by commas";
    const BYTES_MAX: usize = 64;

    /// Whether the pattern covers a type.
    pub fn covers(&self, type_name: &str) -> bool {
        let Some((head, tail)) = self.0.split_once('*') else {
            return self.0 == type_name;
        };
        let Some(mut rest) = type_name.strip_prefix(head) else {
            return false;
        };
        // Each part between two stars is found as early as can be, the last one at the end.
        let Some((middle, end)) = tail.rsplit_once('*') else {
            return rest.ends_with(tail);
        };
        for part in middle.split('*') {
            match rest.find(part) {
                Some(at) => rest = &rest[at + part.len()..],
                None => return false,
            }
        }
        rest.ends_with(end)
    }
}

impl std::str::FromStr for TypeGlob {
    type Err = &'static str;

    /// A pattern can begin with the `pearing.` that a type has in an event's JSON.
    fn from_str(text: &str) -> Result<Self, &'static str> {
        let text = text.strip_prefix(TYPE_PREFIX).unwrap_or(text);
        let byte_ok = |b: u8| b.is_ascii_lowercase() || b"._*".contains(&b);
        let is_valid =
            !text.is_empty() && text.len() <= Self::BYTES_MAX && text.bytes().all(byte_ok);
        if is_valid { Ok(Self(text.to_owned())) } else { Err(Self::RULE) }
    }
}

/// What a reader asked for. The default is everything.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Filter {
    /// Only events in this scope itself.
    pub scope: Option<Scope>,
    /// Only events of locks with this name.
    pub lock_name: Option<LockName>,
    /// Only types that one of these covers; all if there is none.
    pub types: Vec<TypeGlob>,
    /// No type that one of these covers.
    pub excluded_types: Vec<TypeGlob>,
    /// Only what this user, or the ledger, caused.
    pub actor: Option<Actor>,
}

impl Filter {
    /// Whether the reader asked for an event.
    pub fn wants(&self, record: &Record) -> bool {
        let type_name = record.event.type_name();
        let covers = |glob: &TypeGlob| glob.covers(type_name);
        (self.types.is_empty() || self.types.iter().any(covers))
            && !self.excluded_types.iter().any(covers)
            && self.wants_subject(record)
    }

    /// The ledger's own events bear on every lock, so they pass what narrows scope, lock or actor:
    /// else a state that is folded from the filtered feed would go wrong.
    fn wants_subject(&self, record: &Record) -> bool {
        let scope_ok = |scope: &Scope| self.scope.as_ref().is_none_or(|wanted| wanted == scope);
        let is_in_scope = match record.event.concerns() {
            Subject::Ledger => return true,
            Subject::User(_) | Subject::Activity(_) => self.scope.is_none(),
            Subject::Scope(scope) => scope_ok(&scope),
        };
        let lock_ok = |wanted: &LockName| {
            record.event.lock_and_ticket().is_some_and(|(lock, _)| lock.lock_name == *wanted)
        };
        is_in_scope
            && self.lock_name.as_ref().is_none_or(lock_ok)
            && self.actor.as_ref().is_none_or(|wanted| *wanted == record.actor)
    }
}

/// Who reads a feed.
#[derive(Debug, Clone)]
pub struct Reader {
    /// The token that it came with.
    pub token_id: TokenId,
    /// What it asked for.
    pub filter: Filter,
}

impl Reader {
    /// The user, if it may read on: the token works, the user is in service, and the one scope
    /// that was asked for, if one was, is still readable.
    pub fn user<'a>(&self, access: &'a Access, now: Time) -> Option<&'a UserName> {
        let token = access.token(self.token_id).filter(|token| token.is_live(now))?;
        let is_in_service = access.is_in_service(&token.user);
        let scope = self.filter.scope.as_ref();
        let can_read = scope.is_none_or(|scope| access.can_read(&token.user, scope));
        (is_in_service && can_read).then_some(&token.user)
    }

    /// Whether an event is for a reader who is this user.
    pub fn gets(&self, access: &Access, user: &UserName, record: &Record) -> bool {
        self.filter.wants(record) && may_see(access, user, &record.event)
    }
}

/// Whether a user who is in service may see an event, by access as it is now.
pub fn may_see(access: &Access, user: &UserName, event: &Event) -> bool {
    match event.concerns() {
        Subject::Ledger => true,
        Subject::User(of) => of == *user || access.is_server_admin(user),
        Subject::Activity(of) => access.circle_of(user).sees(&of),
        Subject::Scope(scope) => access.can_read(user, &scope),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::event::{LedgerRecovered, TeamCreated, UserChanged};
    use crate::domain::id::Sequence;

    fn glob(text: &str) -> TypeGlob {
        text.parse().expect("a pattern")
    }

    #[test]
    fn a_star_stands_for_any_run_of_characters() {
        for (pattern, type_name, is_covered) in [
            ("lock.*", "lock.released", true),
            ("lock.*", "lock", false),
            ("lock.released", "lock.released", true),
            ("lock.release", "lock.released", false),
            ("*", "ledger.opened", true),
            ("*.created", "team.created", true),
            ("*.created", "team.created_at", false),
            ("*a*d", "lock.acquired", true),
            ("team.*_*d", "team.member_added", true),
            ("l*l*", "lock.acquired", false),
            ("lock.a*ed*d", "lock.acquired", false),
            ("pearing.lock.*", "lock.acquired", true),
            ("pearing.*", "ledger.opened", true),
            ("pearing.pearing.*", "ledger.opened", false),
            ("pear*.lock.*", "lock.acquired", false),
        ] {
            assert_eq!(glob(pattern).covers(type_name), is_covered, "{pattern} {type_name}");
        }
        for bad in ["", "pearing.", "Lock.*", "lock.?", "lock .*", &"a".repeat(65)] {
            assert!(bad.parse::<TypeGlob>().is_err(), "{bad:?}");
        }
    }

    fn record(event: Event) -> Record {
        let actor = Actor::User("ana".parse().expect("a name"));
        Record { sequence: Sequence(1), time: Time::default(), actor, event }
    }

    #[test]
    fn a_scope_filter_passes_that_scope_and_the_ledger_only() {
        let filter = Filter { scope: "teams/a".parse().ok(), ..Filter::default() };
        let team = |name: &str| TeamCreated { team: name.parse().expect("a team") };
        let user = UserChanged { user: "ana".parse().expect("a name") };
        assert!(filter.wants(&record(Event::TeamCreated(team("a")))));
        assert!(!filter.wants(&record(Event::TeamCreated(team("b")))));
        assert!(!filter.wants(&record(Event::UserDisabled(user))));
        let recovered = LedgerRecovered { grace_seconds: 10 };
        assert!(filter.wants(&record(Event::LedgerRecovered(recovered))));
    }

    #[test]
    fn ledger_events_pass_all_filters_but_those_of_types() {
        let recovered = record(Event::LedgerRecovered(LedgerRecovered { grace_seconds: 10 }));
        let narrow = Filter {
            scope: "teams/a/b".parse().ok(),
            lock_name: "x".parse().ok(),
            actor: Some(Actor::User("bo".parse().expect("a name"))),
            ..Filter::default()
        };
        assert!(narrow.wants(&recovered));
        assert!(!Filter { types: vec![glob("lock.*")], ..narrow.clone() }.wants(&recovered));
        assert!(!Filter { excluded_types: vec![glob("ledger.*")], ..narrow }.wants(&recovered));
    }
}
