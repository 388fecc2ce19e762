//! What a caller may do to a lock: acquire, heartbeat, release, break.

use pearing::domain::access::Role;
use pearing::domain::id::TicketId;
use pearing::domain::name::UserName;
use pearing::domain::scope::{LockKey, Scope};
use pearing::domain::ticket::TicketInput;
use pearing::domain::time::{LeaseSeconds, Time};

use super::{Answer, Ending, Event, Kind, LockEvent, Naive, Outcome, Refused, Standing, Ticket};

impl Naive {
    /// The seven rules of acquire, in their order.
    pub(super) fn acquire(
        &mut self,
        user: &UserName,
        ticket_id: TicketId,
        input: &TicketInput,
    ) -> Outcome {
        let is_same_request = |ticket: &&Ticket| {
            ticket.owner == *user && ticket.input.request_uuid == input.request_uuid
        };
        if let Some(ticket) = self.tickets.iter().find(is_same_request) {
            if ticket.input != *input {
                // Only the same request again is a read of one's own ticket.
                self.access.require_in_service(user)?;
                return Err(Refused::RequestUuidReused);
            }
            return Ok((Answer::Ticket { ticket_id: ticket.id, is_replay: true }, Vec::new()));
        }
        self.access.require_in_service(user)?;
        self.access.require(user, &input.scope, Role::Write)?;

        let lock = input.lock();
        let has_place = self.queue(&lock).contains(user);
        let event = match self.holder(&lock) {
            None => self.hold(user, ticket_id, input, None)?,
            Some((holder, fence)) if holder == *user && input.reentrant => {
                self.hold(user, ticket_id, input, Some(fence))?
            }
            Some(holder)
                if holder.0 == *user
                    || input.wait_seconds.get() == 0
                    || (has_place && !input.reentrant) =>
            {
                self.turn_away(user, ticket_id, input, Ending::Contended, holder)
            }
            Some(holder) if !has_place && self.would_close_a_cycle(user, &lock) => {
                self.turn_away(user, ticket_id, input, Ending::DeadlockRejected, holder)
            }
            Some(holder) => self.wait(user, ticket_id, input, holder)?,
        };
        Ok((Answer::Ticket { ticket_id, is_replay: false }, vec![Event::Lock(Box::new(event))]))
    }

    /// Begins a hold, or joins the own one whose fence is given.
    fn hold(
        &mut self,
        user: &UserName,
        ticket_id: TicketId,
        input: &TicketInput,
        fence: Option<u64>,
    ) -> Result<LockEvent, Refused> {
        self.require_room_for_a_ticket(user, &input.scope)?;
        let sequence = self.next_sequence();
        let fence = Some(fence.unwrap_or(sequence));
        let until = self.now.plus_seconds(input.lease_seconds.get());
        let standing = Standing::Held { until, is_grace_due: true };
        let ticket =
            Ticket { id: ticket_id, owner: user.clone(), input: input.clone(), fence, standing };
        let event = ticket.event(Kind::Acquired);
        self.tickets.push(ticket);
        Ok(LockEvent {
            input: Some(input.clone()),
            fence,
            depth: Some(self.depth(&input.lock())),
            until: Some(until),
            ..event
        })
    }

    /// Takes a place at the tail, or shares the one that its identity has.
    fn wait(
        &mut self,
        user: &UserName,
        ticket_id: TicketId,
        input: &TicketInput,
        holder: (UserName, u64),
    ) -> Result<LockEvent, Refused> {
        self.require_room_for_a_ticket(user, &input.scope)?;
        let lock = input.lock();
        let shared = self.waiting(&lock).find(|ticket| ticket.owner == *user);
        let shared = match shared.map(|ticket| &ticket.standing) {
            Some(Standing::Waiting { place, .. }) => Some(*place),
            Some(Standing::Held { .. } | Standing::Ended { .. }) | None => None,
        };
        let places_max = self.limits.places_per_lock as usize;
        if shared.is_none() && self.queue(&lock).len() >= places_max {
            return Err(Refused::LimitReached);
        }
        let sequence = self.next_sequence();
        let until = self.now.plus_seconds(input.wait_seconds.get());
        let standing = Standing::Waiting { until, place: shared.unwrap_or(sequence) };
        let ticket = Ticket {
            id: ticket_id,
            owner: user.clone(),
            input: input.clone(),
            fence: None,
            standing,
        };
        let event = ticket.event(Kind::Queued);
        self.tickets.push(ticket);
        Ok(LockEvent {
            input: Some(input.clone()),
            until: Some(until),
            position: self.position(user, &lock),
            holder: Some(holder),
            ..event
        })
    }

    /// Answers with a ticket that has ended already.
    fn turn_away(
        &mut self,
        user: &UserName,
        ticket_id: TicketId,
        input: &TicketInput,
        ending: Ending,
        holder: (UserName, u64),
    ) -> LockEvent {
        self.next_sequence();
        let kind = match ending {
            Ending::DeadlockRejected => Kind::DeadlockRejected,
            Ending::Contended => Kind::Contended,
            Ending::Released
            | Ending::Expired
            | Ending::Broken
            | Ending::Cancelled
            | Ending::TimedOut => unreachable!("no acquire is answered like that"),
        };
        let standing = Standing::Ended { ending, at: self.now, reason: None, deadline: None };
        let ticket = Ticket {
            id: ticket_id,
            owner: user.clone(),
            input: input.clone(),
            fence: None,
            standing,
        };
        let event = ticket.event(kind);
        self.tickets.push(ticket);
        LockEvent { input: Some(input.clone()), holder: Some(holder), ..event }
    }

    fn require_room_for_a_ticket(&self, user: &UserName, scope: &Scope) -> Result<(), Refused> {
        let live = || self.tickets.iter().filter(|ticket| ticket.is_live());
        let own = live().filter(|ticket| ticket.owner == *user).count();
        let there = live().filter(|ticket| ticket.input.scope == *scope).count();
        if own >= self.limits.live_tickets_per_identity as usize
            || there >= self.limits.live_tickets_per_scope as usize
        {
            return Err(Refused::LimitReached);
        }
        Ok(())
    }

    /// Everyone for whom `user` would wait at the tail of a queue: the holder and all before.
    fn ahead_of_the_tail(&self, lock: &LockKey) -> Vec<UserName> {
        let holder = self.holder(lock).map(|(owner, _)| owner);
        holder.into_iter().chain(self.queue(lock)).collect()
    }

    /// Everyone for whom a waiting ticket waits: the holder, and every earlier place.
    fn waits_for(&self, ticket: &Ticket) -> Vec<UserName> {
        let mut ahead = self.ahead_of_the_tail(&ticket.input.lock());
        let own = ahead.iter().position(|owner| *owner == ticket.owner);
        ahead.truncate(own.expect("a waiting ticket has a place"));
        ahead
    }

    /// Whether someone whom `user` would wait for already waits for it, over any number of others.
    fn would_close_a_cycle(&self, user: &UserName, lock: &LockKey) -> bool {
        let mut reached = self.ahead_of_the_tail(lock);
        let mut done = 0;
        while done < reached.len() {
            let waiter = reached[done].clone();
            done += 1;
            for ticket in self.tickets.iter().filter(|t| t.is_waiting() && t.owner == waiter) {
                for owner in self.waits_for(ticket) {
                    if !reached.contains(&owner) {
                        reached.push(owner);
                    }
                }
            }
        }
        reached.contains(user)
    }

    /// Whether the tickets form a cycle that the first of them, which was rejected, would have
    /// closed: each waits for the owner of the next, and the last for the owner of the first.
    pub(crate) fn is_cycle(&self, cycle: &[TicketId]) -> bool {
        let find = |id: &TicketId| self.tickets.iter().find(|ticket| ticket.id == *id);
        let Some(tickets) = cycle.iter().map(find).collect::<Option<Vec<_>>>() else {
            return false;
        };
        tickets.len() > 1
            && tickets.iter().enumerate().all(|(index, ticket)| {
                let next = tickets[(index + 1) % tickets.len()];
                let ahead = match index {
                    0 => self.ahead_of_the_tail(&ticket.input.lock()),
                    _ if ticket.is_waiting() => self.waits_for(ticket),
                    _ => Vec::new(),
                };
                ahead.contains(&next.owner)
            })
    }

    pub(super) fn heartbeat(
        &mut self,
        user: &UserName,
        lock: &LockKey,
        ticket_id: TicketId,
        lease: Option<LeaseSeconds>,
    ) -> Outcome {
        self.access.require_in_service(user)?;
        let index = self.own_ticket(user, lock, ticket_id)?;
        if self.access.role(user, &lock.scope) < Some(Role::Write) {
            return Err(Refused::Forbidden);
        }
        let now = self.now;
        let ticket = &mut self.tickets[index];
        let lease = lease.unwrap_or(ticket.input.lease_seconds).get();
        let Standing::Held { until: before, .. } = ticket.standing else {
            return Err(Refused::TicketNotHeld);
        };
        let until = now.plus_seconds(lease).max(before);
        ticket.standing = Standing::Held { until, is_grace_due: true };
        self.next_sequence();
        let ticket = &self.tickets[index];
        let event = LockEvent {
            fence: ticket.fence,
            depth: Some(self.depth(lock)),
            until: Some(until),
            lease_seconds: Some(lease),
            ..ticket.event(Kind::Heartbeat)
        };
        let answer = Answer::Ticket { ticket_id, is_replay: false };
        Ok((answer, vec![Event::Lock(Box::new(event))]))
    }

    pub(super) fn release(
        &mut self,
        user: &UserName,
        lock: &LockKey,
        ticket_id: TicketId,
    ) -> Outcome {
        let index = match self.own_ticket(user, lock, ticket_id) {
            Ok(index) => index,
            Err(refused) => {
                self.access.require_in_service(user)?;
                return Err(refused);
            }
        };
        let answer = Answer::Ticket { ticket_id, is_replay: false };
        let events = match self.tickets[index].standing {
            Standing::Held { .. } => {
                let mut events = vec![self.end_held(index, Ending::Released, None, None)];
                events.extend(self.promote_if_free(lock));
                events
            }
            Standing::Waiting { .. } => vec![self.cancel(index, None)],
            Standing::Ended { ending: Ending::Released | Ending::Cancelled, .. } => Vec::new(),
            Standing::Ended {
                ending:
                    Ending::Expired
                    | Ending::Broken
                    | Ending::TimedOut
                    | Ending::Contended
                    | Ending::DeadlockRejected,
                ..
            } => return Err(Refused::TicketEnded),
        };
        Ok((answer, events))
    }

    pub(super) fn cancel(&mut self, index: usize, reason: Option<&str>) -> Event {
        self.next_sequence();
        let now: Time = self.now;
        let ticket = &mut self.tickets[index];
        ticket.end(Ending::Cancelled, now, reason);
        let event = ticket.event(Kind::WaitCancelled);
        Event::Lock(Box::new(LockEvent { reason: reason.map(str::to_owned), ..event }))
    }

    /// Finds a ticket of the user's own by its id and lock.
    fn own_ticket(
        &self,
        user: &UserName,
        lock: &LockKey,
        ticket_id: TicketId,
    ) -> Result<usize, Refused> {
        let is_it = |ticket: &Ticket| ticket.id == ticket_id && ticket.is_for(lock);
        let Some(index) = self.tickets.iter().position(is_it) else {
            return Err(Refused::NotFound);
        };
        if self.tickets[index].owner == *user {
            return Ok(index);
        }
        // Who may read the scope learns that the ticket is another's; who may not learns nothing.
        self.access.require(user, &lock.scope, Role::Read)?;
        Err(Refused::Forbidden)
    }

    pub(super) fn break_lock(
        &mut self,
        user: &UserName,
        lock: &LockKey,
        fence: u64,
        reason: &str,
    ) -> Outcome {
        self.access.require_in_service(user)?;
        self.access.require(user, &lock.scope, Role::Admin)?;
        if self.fence(lock) != Some(fence) {
            return Err(Refused::StaleFence);
        }
        let mut events = Vec::new();
        for index in 0..self.tickets.len() {
            if self.tickets[index].is_held() && self.tickets[index].is_for(lock) {
                events.push(self.end_held(index, Ending::Broken, Some(reason), None));
            }
        }
        events.extend(self.promote_if_free(lock));
        Ok((Answer::Lock, events))
    }
}
