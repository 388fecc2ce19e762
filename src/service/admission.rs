//! Which lane a command takes, and whether it takes something on: such work is refused while the
//! disk is nearly full.

use super::Service;
use super::queue::Lane;
use crate::domain::command::Command;
use crate::domain::id::{RequestUuid, TokenId};
use crate::ledger::Table;
use crate::ledger::keys::{self, Operation};

/// The lane that a command takes.
pub(super) fn lane(command: &Command) -> Lane {
    match command {
        Command::HeartbeatTicket { .. } | Command::ReleaseTicket { .. } => Lane::Holders,
        Command::AcquireLock { .. }
        | Command::BreakLock { .. }
        | Command::CreateUser { .. }
        | Command::DisableUser { .. }
        | Command::EnableUser { .. }
        | Command::IssueToken { .. }
        | Command::RevokeToken { .. }
        | Command::CreateAgent { .. }
        | Command::RevokeAgentTokens { .. }
        | Command::CreateTeam { .. }
        | Command::SetTeamMember { .. }
        | Command::RemoveTeamMember { .. }
        | Command::CreateRepo { .. }
        | Command::GrantAccess { .. }
        | Command::RevokeAccess { .. }
        | Command::UpdateActivity { .. }
        | Command::ClearActivity
        | Command::CreateThread { .. }
        | Command::CreateReply { .. }
        | Command::CloseThread { .. }
        | Command::ReopenThread { .. } => Lane::Others,
    }
}

impl Service {
    /// Whether a command takes something on. A retry reads what there is; ending holds and taking
    /// access away must be possible while the disk is nearly full.
    pub(super) fn is_new_work(&self, caller: TokenId, command: &Command) -> bool {
        use Operation::{CloseThread, CreateReply, CreateThread, ReopenThread, UpdateActivity};
        let is_known = |operation, request_uuid: Option<RequestUuid>| {
            let (Some(user), Some(request_uuid)) = (self.user(caller), request_uuid) else {
                return false;
            };
            let key = keys::request(&user, operation, request_uuid);
            // Where the ledger can't be read, the writer will say so.
            !matches!(self.ledger().get(Table::Requests, &key), Ok(None))
        };
        match command {
            Command::AcquireLock { input, .. } => {
                !is_known(Operation::AcquireLock, Some(input.request_uuid))
            }
            Command::UpdateActivity { request_uuid, .. } => {
                !is_known(UpdateActivity, *request_uuid)
            }
            Command::CreateThread { terms, .. } => !is_known(CreateThread, terms.request_uuid),
            Command::CreateReply { terms, .. } => !is_known(CreateReply, terms.request_uuid),
            Command::CloseThread { terms, .. } => !is_known(CloseThread, terms.request_uuid),
            Command::ReopenThread { terms, .. } => !is_known(ReopenThread, terms.request_uuid),
            Command::CreateUser { .. }
            | Command::EnableUser { .. }
            | Command::IssueToken { .. }
            | Command::CreateAgent { .. }
            | Command::CreateTeam { .. }
            | Command::SetTeamMember { .. }
            | Command::CreateRepo { .. }
            | Command::GrantAccess { .. } => true,
            Command::HeartbeatTicket { .. }
            | Command::ReleaseTicket { .. }
            | Command::BreakLock { .. }
            | Command::DisableUser { .. }
            | Command::RevokeToken { .. }
            | Command::RevokeAgentTokens { .. }
            | Command::RemoveTeamMember { .. }
            | Command::RevokeAccess { .. }
            | Command::ClearActivity => false,
        }
    }
}
