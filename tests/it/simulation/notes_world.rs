//! What the people of the small world ask about threads, and say that they are doing.

use pearing::domain::access::Role;
use pearing::domain::command::{Caller, Command};
use pearing::domain::id::{FenceToken, ReplyId, RequestUuid, Sequence, TokenId};
use pearing::domain::scope::{LockKey, Scope};
use pearing::domain::text::{ActivityText, ReplyBody, ThreadBody};
use pearing::domain::thread::{
    Fence, Link, Links, ReplyInput, ThreadKey, ThreadNumber, WriteTerms,
};

use super::naive::Naive;
use super::rng::Rng;
use super::world::{World, short};

const TEXTS: [&str; 3] = ["tests run", "thread 7", "ready\tfor review"];
const LINKS: [&str; 2] = ["pull:7", "branch:codex/thread-7"];
/// Numbers that are mirrored, so that gaps and meetings with own ones come about.
const MIRRORED: [u64; 6] = [1, 2, 3, 5, 42, 250];
/// How many writes and replies are remembered for retries and as parents.
const REMEMBERED_MAX: usize = 40;

/// What was written, or was meant to be.
#[derive(Debug, Clone, Default)]
pub(super) struct Notes {
    /// Whether nearly everybody writes, and each reply answers the one before.
    pub(super) is_talkative: bool,
    /// The last writes under a request UUID, whatever came of them.
    written: Vec<(TokenId, Command)>,
    /// The last replies, whatever came of them.
    replies: Vec<ReplyId>,
}

impl World {
    /// A write to a thread or an activity: new, or one that was sent before.
    pub(super) fn write(
        &mut self,
        rng: &mut Rng,
        naive: &Naive,
        token: TokenId,
    ) -> (Caller, Command) {
        let written = &self.notes.written;
        let old = (!written.is_empty()).then(|| rng.pick(written).clone());
        let (token, fresh) = self.fresh_write(rng, naive, token);
        let (token, mut command) = match (rng.below(100), old) {
            (0..10, Some(old)) => old,
            (10..13, Some((_, old))) => (token, old),
            (13..18, Some((token, old))) => (token, altered(rng, old)),
            (18..22, Some((token, old))) if !matches!(fresh, Command::ClearActivity) => {
                let mut fresh = fresh;
                *request_of(&mut fresh) = *request_of(&mut old.clone());
                (token, fresh)
            }
            (_, _) => (token, fresh),
        };
        if let Command::CreateReply { reply_id, .. } = &mut command {
            *reply_id = ReplyId(rng.uuid());
            remember(&mut self.notes.replies, *reply_id, rng);
        }
        if !matches!(command, Command::ClearActivity) && request_of(&mut command).is_some() {
            remember(&mut self.notes.written, (token, command.clone()), rng);
        }
        (Caller::Token(token), command)
    }

    fn fresh_write(&self, rng: &mut Rng, naive: &Naive, token: TokenId) -> (TokenId, Command) {
        let kind = rng.below(100);
        if kind >= 85 {
            return self.activity(rng, naive, token);
        }
        let scope = self.thread_scope(rng);
        let (token, terms) = self.terms(rng, naive, &scope, token);
        let thread = self.thread(rng, naive, &scope);
        let command = match kind {
            0..20 => Command::CreateThread {
                number: self.mirrored(rng),
                scope,
                title: short(TEXTS[rng.index(2)]),
                body: ThreadBody::try_from((*rng.pick(&TEXTS)).to_owned()).expect("a short text"),
                terms,
            },
            20..68 => {
                let input = self.reply_input(rng, naive, &thread);
                Command::CreateReply { thread, reply_id: ReplyId(rng.uuid()), input, terms }
            }
            68..77 => Command::CloseThread { thread, terms },
            _ => Command::ReopenThread { thread, terms },
        };
        (token, command)
    }

    /// Says something; or clears, which mostly someone does who said something.
    fn activity(&self, rng: &mut Rng, naive: &Naive, stranger: TokenId) -> (TokenId, Command) {
        if rng.percent(65) {
            let text = TEXTS[rng.index(2)].to_owned();
            let activity = ActivityText::try_from(text).expect("a short text");
            let request_uuid = rng.percent(70).then(|| RequestUuid(rng.uuid()));
            return (stranger, Command::UpdateActivity { activity, request_uuid });
        }
        let said = naive.activities();
        if said.is_empty() || rng.percent(20) {
            return (stranger, Command::ClearActivity);
        }
        let speaker = self.index_of(&rng.pick(&said).user);
        (self.token_of(rng, naive, speaker..speaker + 1), Command::ClearActivity)
    }

    /// Mostly a repository, since only those have threads.
    fn thread_scope(&self, rng: &mut Rng) -> Scope {
        match rng.below(100) {
            0..4 => self.any_scope(rng),
            _ if self.notes.is_talkative => self.scopes[2].clone(),
            _ => self.scopes[2 + rng.index(2)].clone(),
        }
    }

    /// A thread: mostly one that is there, or will be soon.
    fn thread(&self, rng: &mut Rng, naive: &Naive, scope: &Scope) -> ThreadKey {
        let numbers = naive.thread_numbers(scope);
        let number = match numbers.first() {
            Some(first) if self.notes.is_talkative => *first,
            Some(_) if rng.percent(90) => *rng.pick(&numbers),
            Some(_) | None => {
                let newest = numbers.last().map_or(0, |number| number.get());
                ThreadNumber::try_from(newest.min(1000) + 1).expect("a small number")
            }
        };
        ThreadKey { scope: scope.clone(), number }
    }

    fn mirrored(&self, rng: &mut Rng) -> Option<ThreadNumber> {
        let number = match rng.below(100) {
            0..30 => *rng.pick(&MIRRORED),
            30..32 => ThreadNumber::MAX,
            _ => return None,
        };
        Some(ThreadNumber::try_from(number).expect("a number within the bounds"))
    }

    fn reply_input(&self, rng: &mut Rng, naive: &Naive, thread: &ThreadKey) -> ReplyInput {
        let view = naive.thread_at(thread, naive.sequence());
        let replies: Vec<ReplyId> =
            view.into_iter().flat_map(|view| view.replies).map(|reply| reply.reply_id).collect();
        let parent = match (replies.last(), rng.below(100)) {
            (Some(last), 0..95) if self.notes.is_talkative => Some(*last),
            (Some(_), 0..45) => Some(*rng.pick(&replies)),
            (_, 45..55) if !self.notes.replies.is_empty() => Some(*rng.pick(&self.notes.replies)),
            (_, 55..57) => Some(ReplyId(rng.uuid())),
            (_, _) => None,
        };
        let links: Vec<Link> = LINKS[..rng.index(3)]
            .iter()
            .map(|link| link.parse().expect("a link that keeps the rules"))
            .collect();
        ReplyInput {
            kind: rng.pick(&["question", "implementation"]).parse().expect("a kind"),
            body: ReplyBody::try_from((*rng.pick(&TEXTS)).to_owned()).expect("a short text"),
            links: Links::try_from(links).expect("two links at most"),
            parent,
        }
    }

    /// What a write is tied to, and who makes it: mostly someone who may.
    fn terms(
        &self,
        rng: &mut Rng,
        naive: &Naive,
        scope: &Scope,
        stranger: TokenId,
    ) -> (TokenId, WriteTerms) {
        let request_uuid = rng.percent(60).then(|| RequestUuid(rng.uuid()));
        let can_write = |index: &usize| {
            let user = &self.users[*index];
            naive.is_in_service(user) && naive.role(user, scope) >= Some(Role::Write)
        };
        let writers: Vec<usize> = (0..self.users.len()).filter(can_write).collect();
        let mut token = stranger;
        if !writers.is_empty() && rng.percent(70) {
            let writer = *rng.pick(&writers);
            token = self.token_of(rng, naive, writer..writer + 1);
        }
        let lock = LockKey { scope: scope.clone(), lock_name: self.lock_name(rng) };
        let fence = naive.fence(&lock);
        if rng.percent(if fence.is_some() { 55 } else { 90 }) {
            return (token, WriteTerms { request_uuid, fence: None });
        }
        let fence = fence.filter(|_| rng.percent(85));
        // Where nobody holds it: a hold that was, or the one that the next event may begin.
        let fence = fence.unwrap_or_else(|| naive.sequence() + 1 - rng.below(4));
        if let Some(holder) = naive.holder_of(&lock).filter(|_| rng.percent(65)) {
            let holder = self.index_of(&holder);
            token = self.token_of(rng, naive, holder..holder + 1);
        }
        let fence_token = FenceToken(Sequence(fence));
        let fence = Some(Fence { lock_name: lock.lock_name, fence_token });
        (token, WriteTerms { request_uuid, fence })
    }
}

/// The request UUID of a write, to be read or changed.
fn request_of(command: &mut Command) -> &mut Option<RequestUuid> {
    match command {
        Command::UpdateActivity { request_uuid, .. } => request_uuid,
        Command::CreateThread { terms, .. }
        | Command::CreateReply { terms, .. }
        | Command::CloseThread { terms, .. }
        | Command::ReopenThread { terms, .. } => &mut terms.request_uuid,
        other => unreachable!("no write under a request UUID: {other:?}"),
    }
}

/// A write under its old request UUID, with one thing else in it.
fn altered(rng: &mut Rng, mut old: Command) -> Command {
    match &mut old {
        Command::UpdateActivity { activity, .. } => {
            *activity = ActivityText::try_from("something else".to_owned()).expect("a short text");
        }
        Command::CreateThread { title, number, .. } => match rng.below(2) {
            0 => *title = short("something else"),
            _ => *number = ThreadNumber::try_from(1 + rng.below(3)).ok(),
        },
        Command::CreateReply { input, terms, .. } => match rng.below(4) {
            0 => input.body = ReplyBody::try_from("another".to_owned()).expect("a short text"),
            1 => input.kind = "another".parse().expect("a kind"),
            2 => input.links = Links::default(),
            _ => terms.fence = None,
        },
        Command::CloseThread { thread, .. } | Command::ReopenThread { thread, .. } => {
            thread.number = ThreadNumber::try_from(1 + rng.below(3)).expect("a small number");
        }
        other => unreachable!("no write under a request UUID: {other:?}"),
    }
    old
}

fn remember<T>(list: &mut Vec<T>, item: T, rng: &mut Rng) {
    if list.len() == REMEMBERED_MAX {
        list.remove(rng.index(REMEMBERED_MAX));
    }
    list.push(item);
}
