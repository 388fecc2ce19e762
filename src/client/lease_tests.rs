//! The task that keeps a lease, in paused time, against heartbeats that a test answers.

use std::cell::{Cell, OnceCell};
use std::sync::{Arc, Mutex};

use super::*;
use crate::client::fake::{HANGS, acquire, answer, json, lock, serve, ticket};
use crate::client::{GivenUp, Refused, fake};
use crate::domain::id::Sequence;
use crate::wire::problem::Problem;

thread_local! {
    static BEGAN: OnceCell<tokio::time::Instant> = const { OnceCell::new() };
    static ASLEEP: Cell<Duration> = const { Cell::new(Duration::ZERO) };
}

/// The clock of a test: its paused time, and how long its machine was asleep.
fn now() -> BootTime {
    let now = tokio::time::sleep(Duration::ZERO).deadline();
    let awake = now - BEGAN.with(|began| *began.get_or_init(|| now));
    BootTime::default().plus(awake + ASLEEP.get())
}

fn at(seconds: u64) -> BootTime {
    BootTime::default().plus_millis(seconds * 1000)
}

const LEASE: Duration = Duration::from_secs(60);

/// What comes of a heartbeat.
#[derive(Debug, Clone, Copy)]
enum Then {
    Held,
    Refused,
    NoConnection,
    Silence,
}

fn problem(code: Code) -> ClientError {
    let (json, sent_at) = (String::new(), BootTime::default());
    let refused = Refused { problem: Problem::new(code, ""), json, sent_at, is_replay: false };
    ClientError::Problem(Box::new(refused))
}

fn held_answer() -> Answer {
    let held =
        ticket("held").replace(r#""lease_remaining_ms":null"#, r#""lease_remaining_ms":60000"#);
    let answer = format!(r#"{{"ticket":{held},"answered_after_ms":0}}"#);
    serde_json::from_str(&answer).expect("an answer")
}

/// A lease of a minute that was asked for now, its heartbeats answered by `then` (by its last
/// word from then on), and when they were sent.
struct Kept {
    watch: LeaseWatch,
    let_go: oneshot::Sender<()>,
    task: JoinHandle<()>,
    beats: Arc<Mutex<Vec<BootTime>>>,
}

fn kept(then: &'static [Then]) -> Kept {
    let beats = Arc::new(Mutex::new(Vec::new()));
    let beats_of = Arc::clone(&beats);
    let beat = move || {
        let mut sent = beats_of.lock().expect("nobody panics with it");
        let then = then[sent.len().min(then.len() - 1)];
        sent.push(now());
        async move {
            match then {
                Then::Held => Ok(held_answer()),
                Then::Refused => Err(problem(Code::TicketNotHeld)),
                Then::NoConnection => Err(ClientError::NoConnection("refused".to_owned())),
                Then::Silence => std::future::pending().await,
            }
        }
    };
    let keeper = Keeper::new(now(), LEASE, Duration::from_secs(20), 0.0);
    let (watch, (let_go, task)) = super::start(keeper, beat, now);
    Kept { watch, let_go, task, beats }
}

fn sent(beats: &Mutex<Vec<BootTime>>) -> Vec<BootTime> {
    beats.lock().expect("nobody panics with it").clone()
}

#[tokio::test(start_paused = true)]
async fn it_is_kept_by_a_heartbeat_each_third_of_the_lease() {
    let kept = kept(&[Then::Held]);
    tokio::time::sleep(Duration::from_secs(3650)).await;
    assert_eq!(kept.watch.state(), LeaseState::Held { deadline: at(3640 + 60) });
    let expected: Vec<BootTime> = (1..=182).map(|n| at(n * 20)).collect();
    assert_eq!(sent(&kept.beats), expected);
    // A grace that it never comes near is never met.
    let near = tokio::time::timeout(10 * LEASE, kept.watch.until(LEASE / 2)).await;
    assert!(near.is_err(), "{near:?}");
}

#[tokio::test(start_paused = true)]
async fn a_silent_server_makes_it_doubtful_and_at_its_deadline_lost() {
    let kept = kept(&[Then::Held, Then::Silence]);
    let mut watch = kept.watch.clone();
    assert_eq!(watch.changed().await, LeaseState::Held { deadline: at(80) });
    assert_eq!(now(), at(20));
    let LeaseState::InDoubt { deadline, why } = watch.changed().await else { panic!("doubt") };
    assert_eq!((now(), deadline, why.as_str()), (at(50), at(80), "no answer in time"));
    // What must not outlast it has its time to end.
    let near = kept.watch.until(Duration::from_secs(10)).await;
    assert!(matches!(near, LeaseState::InDoubt { .. }), "{near:?}");
    assert_eq!(now(), at(70));
    assert_eq!(kept.watch.lost().await, Lost::Deadline);
    assert_eq!(now(), at(80));
    kept.task.await.expect("it ends by itself");
    let beats = sent(&kept.beats);
    assert!(beats.len() > 4 && beats.iter().all(|sent| *sent < at(80)), "{beats:?}");
    drop(kept.let_go);
}

#[tokio::test(start_paused = true)]
async fn one_failed_heartbeat_does_not_give_it_up() {
    let kept = kept(&[Then::NoConnection, Then::NoConnection, Then::Held]);
    let mut watch = kept.watch.clone();
    assert!(matches!(watch.changed().await, LeaseState::InDoubt { .. }));
    let state = watch.changed().await;
    assert!(matches!(state, LeaseState::Held { deadline } if deadline > at(80)), "{state:?}");
    assert!(now() < at(21), "the pauses are short");
}

#[tokio::test(start_paused = true)]
async fn a_refusal_is_a_loss_at_once() {
    let kept = kept(&[Then::Refused]);
    assert_eq!(kept.watch.lost().await, Lost::Refused(Code::TicketNotHeld));
    assert_eq!((now(), sent(&kept.beats).len()), (at(20), 1));
}

#[tokio::test(start_paused = true)]
async fn a_machine_that_was_asleep_knows_it_when_asked_and_says_it_soon() {
    let kept = kept(&[Then::Held]);
    tokio::time::sleep(Duration::from_secs(5)).await;
    let woken = tokio::time::sleep(Duration::ZERO).deadline();
    ASLEEP.set(LEASE);
    assert_eq!(kept.watch.state(), LeaseState::Lost(Lost::Deadline));
    assert_eq!(kept.watch.lost().await, Lost::Deadline);
    kept.task.await.expect("it ends by itself");
    let took = tokio::time::sleep(Duration::ZERO).deadline() - woken;
    assert!(took <= LOOK_EVERY, "{took:?}");
    assert_eq!(sent(&kept.beats), [], "it is too late for one");
    drop(kept.let_go);
}

#[tokio::test(start_paused = true)]
async fn who_lets_go_ends_the_heartbeats_and_whoever_watches_is_told() {
    for then in [&[Then::Held], &[Then::Silence]] {
        let (kept, began) = (kept(then), now());
        tokio::time::sleep(Duration::from_secs(21)).await;
        drop(kept.let_go);
        assert_eq!(kept.watch.lost().await, Lost::LetGo);
        kept.task.await.expect("it ends by itself");
        tokio::time::sleep(10 * LEASE).await;
        assert_eq!(sent(&kept.beats), [began.plus_millis(20_000)]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_task_that_is_gone_does_not_make_it_last() {
    let kept = kept(&[Then::Held]);
    kept.task.abort();
    let mut watch = kept.watch.clone();
    assert_eq!(watch.state(), LeaseState::Held { deadline: at(60) });
    assert_eq!(watch.changed().await, LeaseState::Lost(Lost::Deadline));
    assert_eq!((now(), kept.watch.lost().await), (at(60), Lost::Deadline));
    drop(kept.let_go);
}

#[test]
fn each_answer_is_a_yes_a_no_or_nothing() {
    let sent_at = at(7);
    let says = |answer| super::heard(answer, sent_at);
    let expected = Heard::Held { as_of: sent_at, remaining: LEASE };
    assert_eq!(says(Ok(held_answer())), expected);
    let mut ended = held_answer();
    (ended.ticket.state, ended.ticket.lease_remaining_ms) = (State::Expired, None);
    assert_eq!(says(Ok(ended)), Heard::Refused(Code::TicketEnded));
    for code in Code::ALL {
        let is_no = matches!(code, Code::TicketNotHeld | Code::TicketEnded | Code::NotFound);
        let said = says(Err(problem(*code)));
        assert_eq!(matches!(said, Heard::Refused(_)), is_no, "{code}");
    }
    for error in [
        ClientError::NoConnection(String::new()),
        ClientError::Unreachable(String::new()),
        ClientError::Unexpected("HTTP 401 without a problem".to_owned()),
    ] {
        assert!(matches!(says(Err(error)), Heard::Nothing { .. }));
    }
}

fn told(status: u16, state: &str, lease_remaining_ms: &str) -> String {
    let ticket = ticket(state)
        .replace(
            r#""lease_remaining_ms":null"#,
            &format!(r#""lease_remaining_ms":{lease_remaining_ms}"#),
        )
        .replace(r#""fence_token":null"#, r#""fence_token":41"#);
    answer(status, "", &format!(r#"{{"ticket":{ticket},"answered_after_ms":0}}"#))
}

#[tokio::test]
async fn a_lock_is_waited_for_held_and_released() {
    let (listener, client) = fake::start().await;
    let answers = vec![
        told(202, "waiting", "null"),
        told(200, "waiting", "null"),
        String::new(),
        told(200, "held", "60000"),
        told(200, "released", "null"),
        told(200, "released", "null"),
    ];
    let calls = async {
        let never = std::future::pending::<()>();
        let mut lease = client.hold(&lock(), &acquire(), never).await.expect("it is held");
        assert!(matches!(lease.state(), LeaseState::Held { .. }));
        assert_eq!(lease.fence_token(), FenceToken(Sequence(41)));
        lease.release().await.expect("an answer");
        assert_eq!(lease.state(), LeaseState::Lost(Lost::LetGo));
        lease.release().await.expect("it can be repeated");
    };
    let (asked, ()) = tokio::join!(serve(listener, answers), calls);
    let methods: Vec<&str> = asked.iter().filter_map(|a| a.split(' ').next()).collect();
    assert_eq!(methods, ["POST", "GET", "GET", "GET", "DELETE", "DELETE"]);
}

#[tokio::test(start_paused = true)]
async fn a_wait_that_is_stopped_gives_its_ticket_up() {
    let (listener, client) = fake::start().await;
    let answers =
        vec![told(202, "waiting", "null"), HANGS.to_owned(), told(200, "cancelled", "null")];
    let mut was_waiting = false;
    let calls = async {
        let (lock, ask) = (lock(), acquire());
        // In paused time: when nothing else happens any more.
        let stop = tokio::time::sleep(Duration::from_secs(1));
        client.acquire_in_turn(&lock, &ask, stop, |_| was_waiting = true).await.expect("no error")
    };
    let (asked, turn) = tokio::join!(serve(listener, answers), calls);
    assert!(was_waiting);
    let ticket_id = "6bb65939-0db9-4fe2-83a7-ff6dfc3b00af".parse().expect("a UUID");
    assert!(
        matches!(turn, Turn::Stopped { ticket: GivenUp::Done(id), .. } if id == ticket_id),
        "{turn:?}"
    );
    assert!(asked[2].starts_with("DELETE "), "{asked:?}");
}

#[tokio::test]
async fn what_is_not_held_is_not_kept() {
    let (listener, client) = fake::start().await;
    let contended = json(&Problem::new(Code::LockContended, "taken"))
        .replace("\"code\":", &format!("\"ticket\":{},\"code\":", ticket("contended")));
    let answers =
        vec![answer(409, "", &contended), told(200, "held", "0"), told(200, "held", "null")];
    let calls = async {
        for expected in ["Lock is taken", "the lease ran out before the answer arrived"] {
            let never = std::future::pending::<()>();
            let error = client.hold(&lock(), &acquire(), never).await.expect_err("no lease");
            assert_eq!(error.to_string(), expected);
        }
        let reply = client.acquire(&lock(), &acquire()).await.expect("an answer");
        assert!(client.keep(&reply).is_none());
    };
    tokio::join!(serve(listener, answers), calls);
}
