//! Large answers: how much of them is on its way at once.
//!
//! A thread can have a thousand replies of 64 KiB. An answer stays in memory until its reader has
//! taken it, so a few dozen readers that take nothing would fill the memory. What is small isn't
//! counted: there are only so many connections. And each person has one made at a time, so that
//! one who asks for many is in nobody's way.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::{Arc, Mutex, MutexGuard};

use axum::body::{Body, Bytes};
use axum::http::{HeaderValue, header};
use axum::response::Response;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::failure::Failure;
use crate::domain::name::UserName;

/// From how many bytes on an answer counts.
const LARGE_BYTES: usize = 256 * 1024;

/// How many bytes may be on their way, in all and to one person with its agents. Somebody who has
/// nothing on its way gets its answer, however large, as long as there is any room.
const BYTES_MAX: usize = 256 << 20;
const BYTES_OF_ONE_MAX: usize = 64 << 20;

/// How many persons' turns are kept before those are looked for that nobody has or waits for.
const TURNS_KEPT: usize = 1024;

/// How many bytes go to the connection at once.
const PIECE_BYTES: usize = 64 * 1024;

/// The large answers on their way.
#[derive(Debug, Clone, Default)]
pub(super) struct Large(Arc<Mutex<Open>>);

#[derive(Debug, Default)]
struct Open {
    total: usize,
    /// Only persons that have any.
    by_person: BTreeMap<UserName, usize>,
    /// A permit for each person who may have one made.
    turns: BTreeMap<UserName, Arc<Semaphore>>,
}

/// The room that an answer takes, free again when it is dropped.
#[derive(Debug)]
struct Room {
    large: Large,
    person: UserName,
    bytes: usize,
}

impl Large {
    /// The answer, if there is room for it. It takes its room until it was sent, or its reader has
    /// gone.
    pub(super) fn answer(
        &self,
        person: UserName,
        json: Vec<u8>,
        respond: impl FnOnce(Body) -> Response,
    ) -> Result<Response, Failure> {
        let bytes = json.len();
        if bytes < LARGE_BYTES {
            return Ok(respond(Body::from(json)));
        }
        let room = self.enter(person, bytes)?;
        let mut rest = Bytes::from(json);
        let pieces = async_stream::stream! {
            let _room = room;
            while !rest.is_empty() {
                let piece = rest.split_to(rest.len().min(PIECE_BYTES));
                yield Ok::<_, Infallible>(piece);
            }
        };
        let mut response = respond(Body::from_stream(pieces));
        response.headers_mut().insert(header::CONTENT_LENGTH, HeaderValue::from(bytes));
        Ok(response)
    }

    /// Waits until no other answer is made for a person.
    pub(super) async fn turn(&self, person: &UserName) -> OwnedSemaphorePermit {
        let turns = {
            let mut open = self.lock();
            if open.turns.len() >= TURNS_KEPT {
                open.turns.retain(|_, turns| Arc::strong_count(turns) > 1);
            }
            let one = || Arc::new(Semaphore::new(1));
            Arc::clone(open.turns.entry(person.clone()).or_insert_with(one))
        };
        turns.acquire_owned().await.expect("nobody closes it")
    }

    fn enter(&self, person: UserName, bytes: usize) -> Result<Room, Failure> {
        let mut open = self.lock();
        let own = open.by_person.get(&person).copied().unwrap_or(0);
        let is_own_full = own > 0 && own + bytes > BYTES_OF_ONE_MAX;
        if is_own_full || open.total >= BYTES_MAX {
            return Err(Failure::LargeAnswersExhausted);
        }
        open.total += bytes;
        open.by_person.insert(person.clone(), own + bytes);
        Ok(Room { large: self.clone(), person, bytes })
    }

    fn lock(&self) -> MutexGuard<'_, Open> {
        self.0.lock().expect("counting answers doesn't panic")
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        let mut open = self.large.lock();
        open.total -= self.bytes;
        let own = open.by_person.get_mut(&self.person).expect("what is on its way is counted");
        *own -= self.bytes;
        if *own == 0 {
            open.by_person.remove(&self.person);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn user(name: &str) -> UserName {
        name.parse().expect("a name")
    }

    fn answer(large: &Large, name: &str, bytes: usize) -> Result<Response, String> {
        let answered = large.answer(user(name), vec![b' '; bytes], Response::new);
        answered.map_err(|failure| failure.to_string())
    }

    #[tokio::test]
    async fn an_answer_takes_its_room_until_it_was_read_or_dropped() {
        let large = Large::default();
        let small: Vec<_> =
            (0..1000).map(|_| answer(&large, "ana", 1000).expect("it is small")).collect();
        assert_eq!(large.lock().total, 0);
        drop(small);
        let most = BYTES_OF_ONE_MAX;
        let first = answer(&large, "ana", most).expect("she has none on its way");
        let busy = "busy: large answers";
        assert_eq!(answer(&large, "ana", LARGE_BYTES).expect_err("hers are enough"), busy);
        drop(answer(&large, "bo", most).expect("he has none"));
        let length = first.headers()[header::CONTENT_LENGTH].to_str().map(str::to_owned);
        assert_eq!(length.expect("it is text"), most.to_string());
        let body = axum::body::to_bytes(first.into_body(), usize::MAX).await.expect("a body");
        assert_eq!(body.len(), most);
        drop(answer(&large, "ana", LARGE_BYTES).expect("the first one was read"));
        let open = large.lock();
        assert_eq!((open.total, open.by_person.len()), (0, 0));
    }

    #[tokio::test]
    async fn a_person_has_one_answer_made_at_a_time() {
        use std::future::{Future as _, poll_fn};
        use std::task::Poll;

        let large = Large::default();
        let (ana, bo) = (user("ana"), user("bo"));
        let first = large.turn(&ana).await;
        let mut second = Box::pin(large.turn(&ana));
        let is_pending = poll_fn(|context| Poll::Ready(second.as_mut().poll(context).is_pending()));
        assert!(is_pending.await, "hers is being made");
        drop(large.turn(&bo).await);
        drop(first);
        drop(second.await);
        for n in 0..2 * TURNS_KEPT {
            drop(large.turn(&user(&format!("u{n}"))).await);
        }
        assert!(large.lock().turns.len() <= TURNS_KEPT);
    }

    #[test]
    fn all_that_is_on_its_way_has_a_bound() {
        let large = Large::default();
        let taken: Vec<_> =
            (0..100).map_while(|n| large.enter(user(&format!("u{n}")), 60 << 20).ok()).collect();
        assert_eq!(taken.len(), 5, "the fifth begins within the bound");
        large.enter(user("ana"), LARGE_BYTES).expect_err("there is no room");
        drop(taken);
        let _room = large.enter(user("ana"), 2 * BYTES_MAX).expect("she has none on its way");
    }
}
