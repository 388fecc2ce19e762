//! Reads: each shows one published state, and judges access by that same state.
//!
//! What the asker may not know of is refused exactly as what doesn't exist. The owner of a ticket
//! can always read it, whatever else was taken away.
//!
//! Nothing that isn't published is shown: the ledger may be a little ahead of the published state,
//! so what is read from it is cut off at that state's head.

mod people;
mod threads;
mod timeline;
mod why;

use std::time::Duration;

use tokio_stream::Stream;

use super::{Refused, Service, ServiceError, show};
use crate::domain::State;
use crate::domain::event::Record;
use crate::domain::id::{Sequence, TicketId, TokenId};
use crate::domain::name::UserName;
use crate::domain::refusal::Refusal;
use crate::domain::scope::{LockKey, Scope};
use crate::domain::ticket::{Phase, Ticket};
use crate::domain::time::Time;
use crate::feed::filter::Reader;
use crate::feed::subscription::{Frame, Source, Start, Verdict, frames};
use crate::ledger::{LedgerError, Stored};
use crate::projection;
use crate::projection::as_of::{self, AsOf, Moment};
use crate::projection::history::{self, Rows};
use crate::wire::admin::{ScopeRole, WhoAmI};
use crate::wire::view::{LockView, TicketAnswer, TicketView};

/// How many records a page of events looks at, at most: a page may be empty and still not the
/// last.
const PAGE_RECORDS_MAX: usize = 10_000;

/// How large the records of a page of events are together: it takes no more once they have this
/// many bytes. A reply can have 64 KiB, and a page of a thousand would fill the memory soon.
const PAGE_BYTES_MAX: usize = 1 << 20;

/// How many records are read at once.
const BATCH_RECORDS: usize = 256;

/// What is shown, and the moment at which it was so.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shown<T> {
    /// What is shown.
    pub what: T,
    /// The ledger time at which it was so.
    pub time: Time,
    /// The state that it is taken from.
    pub sequence: Sequence,
}

/// Some of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page<T, C> {
    /// The items.
    pub items: Vec<T>,
    /// Where the next page begins; `None` after the last one.
    pub next: Option<C>,
    /// The state that it is taken from.
    pub sequence: Sequence,
}

impl<T, C> Page<T, C> {
    /// Takes up to `most` items from the rest of a list. `cursor` tells where an item stands.
    pub fn take(
        mut rest: impl Iterator<Item = T>,
        most: usize,
        sequence: Sequence,
        cursor: impl Fn(&T) -> C,
    ) -> Self {
        let items: Vec<T> = rest.by_ref().take(most).collect();
        let next = rest.next().and(items.last()).map(cursor);
        Self { items, next, sequence }
    }
}

impl Service {
    /// A ticket: one's own, or one in a scope that one may read.
    ///
    /// # Errors
    /// [`ServiceError`]
    pub fn ticket(
        &self,
        caller: TokenId,
        lock: &LockKey,
        ticket_id: TicketId,
    ) -> Result<TicketAnswer, ServiceError> {
        let now = self.now();
        let live = self.read(|state| {
            let ticket = state.ticket(ticket_id)?;
            Some(show_ticket(state, now, caller, lock, Some(ticket), &[]))
        });
        if let Some(answer) = live {
            return answer;
        }
        // It has ended, or it doesn't exist, or it was made just now: the second look tells.
        let ended = projection::ticket::ended(self.ledger(), ticket_id).map_err(stopped)?;
        let cycle = ended.as_ref().map_or(Ok(Vec::new()), |ticket| self.ended_cycle(ticket))?;
        self.read(|state| {
            let ended = ended.as_ref().filter(|ticket| ticket.sequence <= state.head());
            let ticket = state.ticket(ticket_id).or(ended);
            show_ticket(state, now, caller, lock, ticket, &cycle)
        })
    }

    /// The tickets of a rejected deadlock's cycle that have ended meanwhile.
    fn ended_cycle(&self, ticket: &Ticket) -> Result<Vec<Ticket>, ServiceError> {
        let Phase::Ended { cycle, .. } = &ticket.phase else {
            return Ok(Vec::new());
        };
        let ended = cycle.iter().map(|id| projection::ticket::ended(self.ledger(), *id));
        ended.filter_map(Result::transpose).collect::<Result<_, _>>().map_err(stopped)
    }

    /// A ticket as soon as it doesn't wait any more, or as it is after `patience`.
    ///
    /// # Errors
    /// [`ServiceError`]
    pub async fn ticket_after_wait(
        &self,
        caller: TokenId,
        lock: &LockKey,
        ticket_id: TicketId,
        patience: Duration,
    ) -> Result<TicketAnswer, ServiceError> {
        let until_settled = async {
            let watcher = self.0.watch.register(ticket_id);
            loop {
                // Before the state is read, so that no wake-up is lost.
                let wake_up = watcher.woken();
                let answer = self.ticket(caller, lock, ticket_id)?;
                if !answer.ticket.ticket.is_waiting() {
                    return Ok(answer);
                }
                wake_up.await;
            }
        };
        match tokio::time::timeout(patience, until_settled).await {
            Ok(answer) => answer,
            Err(_out_of_patience) => self.ticket(caller, lock, ticket_id),
        }
    }

    /// One's own live tickets, oldest first, after the one that was made at `after`.
    ///
    /// # Errors
    /// [`ServiceError`]
    pub fn tickets(
        &self,
        caller: TokenId,
        wanted: impl Fn(&Ticket) -> bool,
        after: Sequence,
        most: usize,
    ) -> Result<Page<TicketView, Sequence>, ServiceError> {
        self.look(caller, |state, user| {
            let rest = state.tickets_of(user).filter(|t| t.made_at > after && wanted(t));
            let views = rest.map(|ticket| TicketView::of(state, ticket));
            Ok(Page::take(views, most, state.head(), |view| view.ticket.made_at))
        })
    }

    /// Who a token stands for.
    ///
    /// # Errors
    /// [`ServiceError`]
    pub fn whoami(&self, caller: TokenId) -> Result<WhoAmI, ServiceError> {
        self.look(caller, |state, user| {
            require_service(state, user)?;
            let access = state.access();
            let token = access.token(caller).ok_or(Refusal::Unauthenticated)?;
            let account = access.user(user).ok_or(Refusal::Unauthenticated)?;
            Ok(WhoAmI {
                user: user.clone(),
                admin: account.admin,
                person: account.person.clone(),
                token_id: caller,
                label: token.label.clone(),
                expires_at: token.expires_at,
                roles: access
                    .roles_given_to(user)
                    .map(|(scope, role)| ScopeRole { scope, role })
                    .collect(),
                live_tickets: state.tickets_len(user).into(),
                sequence: state.head(),
            })
        })
    }

    /// A lock, as it is or as it was.
    ///
    /// # Errors
    /// [`ServiceError`]
    pub fn lock(
        &self,
        caller: TokenId,
        lock: &LockKey,
        moment: Option<AsOf>,
    ) -> Result<Shown<LockView>, ServiceError> {
        let now = self.now();
        let view = |state: &State, sequence| LockView::of(state, lock, sequence);
        let present = self.look(caller, |state, user| {
            require_read(state, user, &lock.scope)?;
            let sequence = state.head();
            Ok(Shown { what: view(state, sequence), time: now, sequence })
        })?;
        let Some(moment) = moment else { return Ok(present) };
        let (state, time, sequence) = self.past(moment, present.sequence, Rows::Lock(lock))?;
        Ok(Shown { what: view(&state, sequence), time, sequence })
    }

    /// The held locks of a scope by name, as they are or as they were, after the one called
    /// `after`.
    ///
    /// # Errors
    /// [`ServiceError`]
    pub fn locks(
        &self,
        caller: TokenId,
        scope: &Scope,
        moment: Option<AsOf>,
        after: Option<&str>,
        most: usize,
    ) -> Result<Shown<Page<LockView, String>>, ServiceError> {
        let page = |state: &State, sequence| {
            let rest =
                state.locks_in(scope).filter(|(key, _)| Some(key.lock_name.as_str()) > after);
            let views = rest.map(|(key, _)| LockView::of(state, key, sequence));
            Page::take(views, most, sequence, |view| view.lock.lock_name.to_string())
        };
        let now = self.now();
        let present = self.look(caller, |state, user| {
            require_read(state, user, scope)?;
            let sequence = state.head();
            Ok(Shown { what: page(state, sequence), time: now, sequence })
        })?;
        let Some(moment) = moment else { return Ok(present) };
        let (state, time, sequence) = self.past(moment, present.sequence, Rows::Scope(scope))?;
        Ok(Shown { what: page(&state, sequence), time, sequence })
    }

    /// The state that some rows of the history make at a moment, its time and its sequence.
    fn past(
        &self,
        moment: AsOf,
        head: Sequence,
        rows: Rows<'_>,
    ) -> Result<(State, Time, Sequence), ServiceError> {
        let Moment { sequence, time } = self.moment(moment, head)?;
        let state = as_of::fold(self.ledger(), rows, sequence).map_err(stopped)?;
        Ok((state, time, sequence))
    }

    /// The moment that is meant, in the ledger up to `head`.
    fn moment(&self, moment: AsOf, head: Sequence) -> Result<Moment, ServiceError> {
        let found = as_of::resolve(self.ledger(), moment, head, self.now()).map_err(stopped)?;
        let refusal = Refusal::InvalidArgument { field: "as_of", rule: AsOf::RULE };
        found.ok_or_else(|| refused(refusal, head))
    }

    /// A lock's events after `after`, oldest first.
    ///
    /// # Errors
    /// [`ServiceError`]
    pub fn history(
        &self,
        caller: TokenId,
        lock: &LockKey,
        after: Sequence,
        most: usize,
    ) -> Result<Page<Stored, Sequence>, ServiceError> {
        let head = self.look(caller, |state, user| {
            require_read(state, user, &lock.scope)?;
            Ok(state.head())
        })?;
        let found = history::of_lock(self.ledger(), lock, after, most + 1).map_err(stopped)?;
        let published = found.into_iter().filter(|stored| stored.sequence <= head);
        Ok(Page::take(published, most, head, |stored| stored.sequence))
    }

    /// The events after `after` that a reader may see, oldest first. A page may be short, and
    /// even empty, and still not be the last.
    ///
    /// # Errors
    /// [`ServiceError`]
    pub fn events(
        &self,
        reader: &Reader,
        after: Sequence,
        most: usize,
    ) -> Result<Page<Stored, Sequence>, ServiceError> {
        let head = self.admit(reader, Start::After(after))?;
        let (mut cursor, mut looked_at, mut items, mut bytes) = (after, 0, Vec::new(), 0);
        let is_full = |items: &Vec<Stored>, bytes| items.len() == most || bytes >= PAGE_BYTES_MAX;
        while cursor < head && !is_full(&items, bytes) && looked_at < PAGE_RECORDS_MAX {
            let batch = self.ledger().records_within(cursor, BATCH_RECORDS, PAGE_BYTES_MAX);
            let batch = batch.map_err(stopped)?;
            for stored in batch.into_iter().take_while(|stored| stored.sequence <= head) {
                if is_full(&items, bytes) {
                    break;
                }
                let record = stored.record().map_err(stopped)?;
                (cursor, looked_at) = (stored.sequence, looked_at + 1);
                match self.judge(reader, Some(&record)) {
                    Verdict::Send => {
                        bytes += stored.bytes.len();
                        items.push(stored);
                    }
                    Verdict::Skip => {}
                    Verdict::End => return Err(self.dismissed(reader)),
                }
            }
        }
        Ok(Page { items, next: (cursor < head).then_some(cursor), sequence: head })
    }

    /// A feed for a reader.
    ///
    /// # Errors
    /// [`ServiceError`]
    pub fn feed(
        &self,
        reader: Reader,
        start: Start,
        comment_every: Duration,
    ) -> Result<impl Stream<Item = Frame> + Send + use<>, ServiceError> {
        let head = self.admit(&reader, start)?;
        let service = self.clone();
        let source = Source {
            ledger: self.0.ledger.clone(),
            live: self.0.live.clone(),
            head: self.head_changes(),
        };
        let place = self.0.readers.enter(match start {
            Start::After(sequence) => sequence,
            Start::Now => head,
        });
        Ok(frames(source, start, comment_every, move |record| {
            if let Some(record) = record {
                place.reached(record.sequence);
            }
            service.judge(&reader, record)
        }))
    }

    /// Whether a reader may begin here; the published head, if so.
    fn admit(&self, reader: &Reader, start: Start) -> Result<Sequence, ServiceError> {
        self.look(reader.token_id, |state, user| {
            if let Some(scope) = &reader.filter.scope {
                require_read(state, user, scope)?;
            }
            require_service(state, user)?;
            match start {
                Start::After(sequence) if sequence > state.head() => {
                    Err(Refusal::InvalidArgument {
                        field: "after",
                        rule: "must not be after the head",
                    })
                }
                Start::After(_) | Start::Now => Ok(state.head()),
            }
        })
    }

    fn judge(&self, reader: &Reader, record: Option<&Record>) -> Verdict {
        let now = self.now();
        self.read(|state| match (reader.user(state.access(), now), record) {
            (None, _) => Verdict::End,
            (Some(user), Some(record)) if reader.gets(state.access(), user, record) => {
                Verdict::Send
            }
            (Some(_), _) => Verdict::Skip,
        })
    }

    /// Why a reader who began well gets no more.
    fn dismissed(&self, reader: &Reader) -> ServiceError {
        match self.admit(reader, Start::Now) {
            Err(error) => error,
            // Lost and given again within this very moment: as good as lost.
            Ok(head) => refused(Refusal::NotFound("scope"), head),
        }
    }

    /// Looks at the published state as the user of a token.
    ///
    /// # Errors
    /// `unauthenticated`, if the token doesn't work any more; else what `look` refuses.
    pub fn look<R>(
        &self,
        caller: TokenId,
        look: impl FnOnce(&State, &UserName) -> Result<R, Refusal>,
    ) -> Result<R, ServiceError> {
        let now = self.now();
        self.read(|state| {
            let user = user_of(state, now, caller).map_err(|refusal| (refusal, state.head()))?;
            look(state, user).map_err(|refusal| (refusal, state.head()))
        })
        .map_err(|(refusal, head)| refused(refusal, head))
    }
}

/// The user that a live token stands for.
fn user_of(state: &State, now: Time, caller: TokenId) -> Result<&UserName, Refusal> {
    let token = state.access().token(caller).filter(|token| token.is_live(now));
    token.map(|token| &token.user).ok_or(Refusal::Unauthenticated)
}

/// Refuses a user who is out of service: it may read nothing but its own tickets.
pub fn require_service(state: &State, user: &UserName) -> Result<(), Refusal> {
    if state.access().is_in_service(user) {
        return Ok(());
    }
    Err(Refusal::Forbidden("a disabled user may only read and release its own tickets"))
}

/// Refuses whoever may not read a scope, as if there were none.
pub fn require_read(state: &State, user: &UserName, scope: &Scope) -> Result<(), Refusal> {
    require_service(state, user)?;
    if state.access().can_read(user, scope) { Ok(()) } else { Err(Refusal::NotFound("scope")) }
}

/// Refuses whoever doesn't administer the server.
pub fn require_server_admin(state: &State, user: &UserName) -> Result<(), Refusal> {
    require_service(state, user)?;
    if state.access().is_server_admin(user) {
        Ok(())
    } else {
        Err(Refusal::Forbidden("only the server's administrators may do this"))
    }
}

/// Refuses whoever may not read a ticket, as if there were none. The owner always may.
fn require_ticket<'a>(
    state: &State,
    user: &UserName,
    lock: &LockKey,
    ticket: Option<&'a Ticket>,
) -> Result<&'a Ticket, Refusal> {
    // Under another lock or scope than its own a ticket doesn't exist.
    let ticket = ticket.filter(|ticket| ticket.lock() == *lock);
    if ticket.is_none_or(|ticket| ticket.owner != *user) {
        require_service(state, user)?;
        // Not to tell whether it is the scope or the ticket that isn't there.
        if !state.access().can_read(user, &lock.scope) {
            return Err(Refusal::NotFound("ticket"));
        }
    }
    ticket.ok_or(Refusal::NotFound("ticket"))
}

/// Shows a ticket that was looked up under a lock. `ended` are tickets of its cycle that have
/// ended; live ones are in the state.
fn show_ticket(
    state: &State,
    now: Time,
    caller: TokenId,
    lock: &LockKey,
    ticket: Option<&Ticket>,
    ended: &[Ticket],
) -> Result<TicketAnswer, ServiceError> {
    let shown = || {
        let user = user_of(state, now, caller)?;
        let ticket = require_ticket(state, user, lock, ticket)?;
        let find = |id: TicketId| {
            state.ticket(id).or_else(|| ended.iter().find(|ended| ended.id == id)).cloned()
        };
        Ok(show::ticket_answer(state, user, ticket, false, find))
    };
    shown().map_err(|refusal| refused(refusal, state.head()))
}

pub(super) fn refused(refusal: Refusal, sequence: Sequence) -> ServiceError {
    ServiceError::Refused(Box::new(Refused { refusal, ticket: None, sequence }))
}

/// A ledger that can't be read has failed for good: whoever asks gets no answer from it.
pub fn stopped(error: LedgerError) -> ServiceError {
    tracing::error!(%error, "the ledger can't be read");
    ServiceError::Stopped
}
