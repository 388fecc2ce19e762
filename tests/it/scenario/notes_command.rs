//! From the words about agents, activity and threads to the core's commands.

use pearing::domain::command::Command;
use pearing::domain::id::{FenceToken, ReplyId, Sequence, TokenId};
use pearing::domain::name::UserName;
use pearing::domain::scope::Scope;
use pearing::domain::text::{ActivityText, ReplyBody, ThreadBody};
use pearing::domain::thread::{
    self, Link, Links, ReplyInput, ReplyKind, ThreadKey, ThreadNumber, WriteTerms,
};

use super::command::{Maker, NoCommand, name, text};
use super::names::token_hash;
use super::notes::{Note, Reply, Terms, ThreadWords};

impl Maker<'_> {
    /// The command of a note.
    pub(super) fn note(&mut self, note: &Note) -> Result<Command, NoCommand> {
        match note {
            Note::CreateAgent { agent, token, days } => {
                let agent = self.agent(agent)?;
                let token_id = TokenId(self.names.fresh());
                let token = token.clone().unwrap_or_else(|| agent.to_string());
                self.names.tokens.insert(token, (token_id, agent.to_string()));
                let (sha256, label) = (token_hash(token_id), None);
                Ok(Command::CreateAgent { agent, token_id, sha256, label, expires_in_days: *days })
            }
            Note::RevokeAgentTokens { agent } => {
                Ok(Command::RevokeAgentTokens { agent: self.agent(agent)? })
            }
            Note::Say { text, uuid } => {
                let activity = ActivityText::try_from(text.clone());
                let activity = activity.map_err(|_| NoCommand::Invalid("activity"))?;
                let request_uuid = uuid.as_ref().map(|uuid| self.names.request(uuid));
                Ok(Command::UpdateActivity { activity, request_uuid })
            }
            Note::Clear => Ok(Command::ClearActivity),
            Note::CreateThread { new, terms } => Ok(Command::CreateThread {
                scope: self.repo(new.repo.as_deref())?,
                number: new.number.map(number).transpose()?,
                title: text("title", &new.title)?,
                body: ThreadBody::try_from(new.body.clone())
                    .map_err(|_| NoCommand::Invalid("body"))?,
                terms: self.terms(terms)?,
            }),
            Note::Reply { thread, reply, terms } => {
                let thread = self.thread(thread)?;
                let input = self.reply(reply)?;
                let reply_id = ReplyId(self.names.fresh());
                if let Some(name) = &reply.name
                    && self.names.replies.insert(name.clone(), reply_id).is_some()
                {
                    return Err(format!("another reply is called {name:?}").into());
                }
                Ok(Command::CreateReply { thread, reply_id, input, terms: self.terms(terms)? })
            }
            Note::Close { thread, terms } => {
                let (thread, terms) = (self.thread(thread)?, self.terms(terms)?);
                Ok(Command::CloseThread { thread, terms })
            }
            Note::Reopen { thread, terms } => {
                let (thread, terms) = (self.thread(thread)?, self.terms(terms)?);
                Ok(Command::ReopenThread { thread, terms })
            }
        }
    }

    /// The user that an agent of the caller's is.
    fn agent(&self, agent: &str) -> Result<UserName, NoCommand> {
        name("name", &format!("{}.{agent}", self.caller))
    }

    /// A thread that is named.
    pub(super) fn thread(&self, thread: &ThreadWords) -> Result<ThreadKey, NoCommand> {
        let scope = self.repo(thread.repo.as_deref())?;
        Ok(ThreadKey { scope, number: number(thread.number)? })
    }

    fn repo(&self, repo: Option<&str>) -> Result<Scope, NoCommand> {
        let repo = repo.or(self.default_scope).ok_or_else(|| "say in which repo".to_owned())?;
        name("repo", repo)
    }

    fn reply(&mut self, reply: &Reply) -> Result<ReplyInput, NoCommand> {
        let kind: ReplyKind = reply.kind.parse().map_err(|_| NoCommand::Invalid("kind"))?;
        let body = ReplyBody::try_from(reply.body.clone());
        let links = reply.links.iter().map(|link| link.parse::<Link>());
        let links = links.collect::<Result<Vec<Link>, _>>().and_then(Links::try_from);
        let parent = reply.parent.as_ref().map(|parent| self.names.reply(parent)).transpose()?;
        Ok(ReplyInput {
            kind,
            body: body.map_err(|_| NoCommand::Invalid("body"))?,
            links: links.map_err(|_| NoCommand::Invalid("links"))?,
            parent,
        })
    }

    fn terms(&mut self, terms: &Terms) -> Result<WriteTerms, NoCommand> {
        let request_uuid = terms.uuid.as_ref().map(|uuid| self.names.request(uuid));
        let Some((lock, fence)) = &terms.fence else {
            return Ok(WriteTerms { request_uuid, fence: None });
        };
        // One that this batch has yet to make is filled in when it is decided.
        let fence_token = self.names.fence(fence).unwrap_or(FenceToken(Sequence::ZERO));
        let fence = thread::Fence { lock_name: name("lock_name", lock)?, fence_token };
        Ok(WriteTerms { request_uuid, fence: Some(fence) })
    }
}

fn number(number: u64) -> Result<ThreadNumber, NoCommand> {
    ThreadNumber::try_from(number).map_err(|_| NoCommand::Invalid("number"))
}

/// What a command is tied to, if it is a write to a thread.
pub(super) fn terms_of(command: &mut Command) -> Option<&mut WriteTerms> {
    match command {
        Command::CreateThread { terms, .. }
        | Command::CreateReply { terms, .. }
        | Command::CloseThread { terms, .. }
        | Command::ReopenThread { terms, .. } => Some(terms),
        _ => None,
    }
}
