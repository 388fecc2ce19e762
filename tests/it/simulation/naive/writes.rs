//! What was written before under a request UUID, and what users say that they are doing.

use std::mem::discriminant;

use pearing::domain::access::Role;
use pearing::domain::command::Command;
use pearing::domain::id::{ReplyId, RequestUuid};
use pearing::domain::name::UserName;
use pearing::domain::scope::{Scope, ScopeKind};
use pearing::domain::time::Time;
use uuid::Uuid;

use super::{Answer, Event, Naive, Outcome, Refused};

/// A write that was carried out under a request UUID.
#[derive(Debug, Clone)]
pub(super) struct Remembered {
    user: UserName,
    /// The command, without the ids that its sender didn't choose.
    command: Command,
    answer: Answer,
}

/// What a user says that it is doing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Activity {
    pub(crate) user: UserName,
    pub(crate) text: String,
    pub(crate) set_at: Time,
    pub(crate) sequence: u64,
}

/// A change of what a user says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ActivityEvent {
    Updated { user: UserName, text: String, request_uuid: Option<RequestUuid> },
    Cleared { user: UserName },
}

/// The request UUID of a write.
fn request_of(command: &Command) -> Option<RequestUuid> {
    match command {
        Command::UpdateActivity { request_uuid, .. } => *request_uuid,
        Command::CreateThread { terms, .. }
        | Command::CreateReply { terms, .. }
        | Command::CloseThread { terms, .. }
        | Command::ReopenThread { terms, .. } => terms.request_uuid,
        _ => None,
    }
}

/// The repository that a write is for, if it is for one.
fn scope_of(command: &Command) -> Option<&Scope> {
    match command {
        Command::CreateThread { scope, .. } => Some(scope),
        Command::CreateReply { thread, .. }
        | Command::CloseThread { thread, .. }
        | Command::ReopenThread { thread, .. } => Some(&thread.scope),
        _ => None,
    }
}

fn asked(command: &Command) -> Command {
    let mut command = command.clone();
    if let Command::CreateReply { reply_id, .. } = &mut command {
        *reply_id = ReplyId(Uuid::nil());
    }
    command
}

impl Naive {
    /// What a user wrote by a command of this kind under the same request UUID.
    pub(super) fn remembered(&self, user: &UserName, command: &Command) -> Option<Remembered> {
        let request_uuid = request_of(command)?;
        let is_it = |remembered: &&Remembered| {
            remembered.user == *user
                && discriminant(&remembered.command) == discriminant(command)
                && request_of(&remembered.command) == Some(request_uuid)
        };
        self.remembered.iter().find(is_it).cloned()
    }

    /// Answers a command whose request UUID was used before. It needs no more than to read.
    pub(super) fn again(&self, user: &UserName, before: &Remembered, command: &Command) -> Outcome {
        self.require_readable(user, command)?;
        if before.command != asked(command) {
            return Err(Refused::RequestUuidReused);
        }
        Ok((before.answer.clone(), Vec::new()))
    }

    /// What a write needs before all else.
    pub(super) fn require_readable(
        &self,
        user: &UserName,
        command: &Command,
    ) -> Result<(), Refused> {
        self.access.require_in_service(user)?;
        let Some(scope) = scope_of(command) else { return Ok(()) };
        let is_repo = matches!(scope.kind(), ScopeKind::Repo(_));
        if matches!(command, Command::CreateThread { .. }) && !is_repo {
            return Err(Refused::InvalidArgument);
        }
        self.access.require(user, scope, Role::Read)
    }

    /// Remembers what a write was answered, for when it comes again.
    pub(super) fn remember(&mut self, user: &UserName, command: &Command, answer: &Answer) {
        if request_of(command).is_none() {
            return;
        }
        let answer = match answer.clone() {
            // A write that changed nothing is no write.
            Answer::Thread { written: None, .. } => return,
            Answer::Thread { thread, written, .. } => {
                Answer::Thread { thread, written, is_replay: true }
            }
            Answer::Activity { user, .. } => Answer::Activity { user, is_replay: true },
            Answer::Ticket { .. } | Answer::Lock | Answer::Done => unreachable!("no write"),
        };
        self.remembered.push(Remembered { user: user.clone(), command: asked(command), answer });
    }

    pub(super) fn change_activity(&mut self, user: &UserName, command: &Command) -> Outcome {
        self.access.require_in_service(user)?;
        let said = self.activities.iter().position(|activity| activity.user == *user);
        let answer = Answer::Activity { user: user.clone(), is_replay: false };
        let event = match (command, said) {
            (Command::UpdateActivity { activity, request_uuid }, said) => {
                let (user, text) = (user.clone(), activity.as_str().to_owned());
                let sequence = self.next_sequence();
                if let Some(said) = said {
                    self.activities.remove(said);
                }
                let (set_at, said) = (self.now, (user.clone(), text.clone()));
                self.activities.push(Activity { user: said.0, text: said.1, set_at, sequence });
                ActivityEvent::Updated { user, text, request_uuid: *request_uuid }
            }
            (Command::ClearActivity, None) => return Ok((answer, Vec::new())),
            (Command::ClearActivity, Some(said)) => {
                self.next_sequence();
                self.activities.remove(said);
                ActivityEvent::Cleared { user: user.clone() }
            }
            (other, _) => unreachable!("not about activity: {other:?}"),
        };
        self.remember(user, command, &answer);
        Ok((answer, vec![Event::Activity(event)]))
    }

    /// What everyone says, by name.
    pub(crate) fn activities(&self) -> Vec<Activity> {
        let mut activities = self.activities.clone();
        activities.sort_by(|a, b| a.user.cmp(&b.user));
        activities
    }

    /// Whether a user holds any lock.
    pub(crate) fn is_holder(&self, user: &UserName) -> bool {
        self.tickets.iter().any(|ticket| ticket.is_held() && ticket.owner == *user)
    }
}
