//! Who asks.

/// What a user may do in a scope. Each includes the ones before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Role {
    Read,
    Write,
    Admin,
}

/// What an asker shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Token {
    Missing,
    /// Well formed, but not of this ledger.
    Unknown,
    Revoked,
    Good,
}

/// Who asks: all that the rules need to know.
#[derive(Debug, Clone, Copy)]
pub(super) struct Asker {
    /// For messages.
    pub(super) name: &'static str,
    pub(super) user: &'static str,
    pub(super) token: Token,
    pub(super) is_in_service: bool,
    pub(super) is_server_admin: bool,
    /// Of an agent: whose it is.
    pub(super) person: Option<&'static str>,
    /// What it was given in the team `platform`, which holds in the team's repositories.
    pub(super) here: Option<Role>,
}

const fn asker(name: &'static str, user: &'static str, here: Option<Role>) -> Asker {
    Asker {
        name,
        user,
        token: Token::Good,
        is_in_service: true,
        is_server_admin: false,
        person: None,
        here,
    }
}

const WRITER: Asker = asker("the writer", "wim", Some(Role::Write));

pub(super) const ASKERS: [Asker; 14] = [
    Asker { name: "nobody", token: Token::Missing, ..WRITER },
    Asker { name: "an unknown token", token: Token::Unknown, ..WRITER },
    Asker { name: "a revoked token of the writer", token: Token::Revoked, ..WRITER },
    asker("the stranger", "sue", None),
    asker("the reader", "rob", Some(Role::Read)),
    WRITER,
    asker("the scope's administrator", "lea", Some(Role::Admin)),
    Asker { is_server_admin: true, ..asker("the server's administrator", "root", None) },
    Asker { person: Some("sue"), ..asker("an agent of the stranger", "sue.helper", None) },
    Asker {
        person: Some("wim"),
        ..asker("an agent of the writer", "wim.helper", Some(Role::Write))
    },
    Asker {
        person: Some("lea"),
        ..asker("an agent of the scope's administrator", "lea.helper", Some(Role::Write))
    },
    Asker { is_in_service: false, ..asker("the disabled user", "dan", Some(Role::Write)) },
    Asker {
        is_in_service: false,
        person: Some("dan"),
        ..asker("an agent of the disabled user", "dan.helper", Some(Role::Write))
    },
    asker("who lost access while holding", "fay", None),
];
