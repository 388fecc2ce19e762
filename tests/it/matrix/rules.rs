//! What the rules say, and nothing of how the server does it.

use super::askers::{Asker, Role, Token};
use super::world::{Object, Place};

/// A status, and the code of a problem.
pub(super) type Says = (u16, &'static str);

pub(super) const UNAUTHENTICATED: Says = (401, "unauthenticated");
pub(super) const FORBIDDEN: Says = (403, "forbidden");
pub(super) const NOT_FOUND: Says = (404, "not-found");

/// What a call needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Needs {
    /// Not even a token.
    Nothing,
    /// A token that works, be its user in service or not.
    Token,
    /// A user in service.
    Service,
    /// A user in service who is no agent.
    Person,
    /// That the agent is the asker's own.
    OwnAgent,
    /// An administrator of the server.
    ServerAdmin,
    /// A role in the scope.
    Role(Role),
    /// To see a ticket: one's own, or one in a scope that one may read.
    SeeTicket,
    /// To let go of a ticket: one's own, whatever else was taken away.
    LetGo,
    /// To extend a lease: one's own, and `write` still.
    Extend,
}

/// Why a call goes no further.
#[derive(Debug, Clone, Copy)]
pub(super) struct Refused {
    pub(super) says: Says,
    /// Whether the answer must be the same whatever there is: body and all.
    pub(super) is_blind: bool,
}

const fn blind(says: Says) -> Refused {
    Refused { says, is_blind: true }
}

const fn seeing(says: Says) -> Refused {
    Refused { says, is_blind: false }
}

/// What an asker may do in a place; `None` if the place doesn't exist for it.
pub(super) fn role(asker: &Asker, place: Place) -> Option<Role> {
    match place {
        Place::Nowhere => None,
        _ if asker.is_server_admin => Some(Role::Admin),
        Place::Here => asker.here,
        Place::OfUser(user) if user == asker.user => Some(Role::Admin),
        // An agent has its person's role, at most `write`.
        Place::OfUser(user) if Some(user) == asker.person => Some(Role::Write),
        Place::OfUser(_) | Place::There => None,
    }
}

/// Whether the asker may go on; if it may, what there is decides the answer.
pub(super) fn judge(needs: Needs, asker: &Asker, object: &Object) -> Result<(), Refused> {
    if needs == Needs::Nothing {
        return Ok(());
    }
    if asker.token != Token::Good {
        return Err(blind(UNAUTHENTICATED));
    }
    // A disabled user may only read and release its own tickets.
    let is_own_ticket = object.is_own && matches!(needs, Needs::SeeTicket | Needs::LetGo);
    if !asker.is_in_service && !is_own_ticket && needs != Needs::Token {
        return Err(blind(FORBIDDEN));
    }
    let role = role(asker, object.place);
    match needs {
        Needs::Nothing | Needs::Token | Needs::Service => Ok(()),
        Needs::Person if asker.person.is_some() => Err(blind(FORBIDDEN)),
        Needs::Person => Ok(()),
        Needs::OwnAgent if asker.person.is_some() => Err(blind(NOT_FOUND)),
        Needs::OwnAgent => Ok(()),
        Needs::ServerAdmin if asker.is_server_admin => Ok(()),
        Needs::ServerAdmin => Err(blind(FORBIDDEN)),
        Needs::Role(least) => match role {
            None => Err(blind(NOT_FOUND)),
            Some(role) if role >= least => Ok(()),
            Some(_) => Err(seeing(FORBIDDEN)),
        },
        Needs::SeeTicket | Needs::LetGo if object.is_own => Ok(()),
        Needs::Extend if object.is_own && role >= Some(Role::Write) => Ok(()),
        Needs::Extend if object.is_own => Err(seeing(FORBIDDEN)),
        Needs::SeeTicket if role.is_some() && object.exists => Ok(()),
        Needs::LetGo | Needs::Extend if role.is_some() && object.exists => Err(seeing(FORBIDDEN)),
        Needs::SeeTicket | Needs::LetGo | Needs::Extend => Err(blind(NOT_FOUND)),
    }
}
