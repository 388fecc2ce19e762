//! Waits for a ticket to stop waiting, in slices that end before a client gives its call up.
//!
//! Every few seconds the client hears how it stands, if it asked to. A call that is cancelled, or
//! whose client has gone, ends; its ticket waits on, so that the same call again finds it.

use std::time::Duration;

use rmcp::model::ProgressNotificationParam;
use rmcp::service::{RequestContext, RoleServer};
use serde_json::{Map, Value, json};

use super::{Api, Told};
use crate::clock::BootTime;
use crate::wire::ask::Ask;

/// How long one look at a waiting ticket takes at the most, in seconds; then progress is told.
const SLICE_SECONDS: u32 = 5;

/// The pause between two looks, should an answer not be held back.
const PAUSE: Duration = Duration::from_millis(250);

/// Who called: whoever hears how far the call is, and may cancel it.
pub(super) struct Caller(pub(super) RequestContext<RoleServer>);

impl Caller {
    async fn tell(&self, seconds: f64, of: f64, message: String) {
        if let Some(token) = self.0.meta.get_progress_token() {
            let progress = ProgressNotificationParam::new(token, seconds);
            // A client that doesn't listen any more misses nothing.
            let _ =
                self.0.peer.notify_progress(progress.with_total(of).with_message(message)).await;
        }
    }

    /// Pauses; says whether the call goes on.
    async fn pause(&self, length: Duration) -> bool {
        tokio::select! {
            () = self.0.ct.cancelled() => false,
            () = tokio::time::sleep(length) => true,
        }
    }
}

/// How long the next look may be held back, with so many seconds left.
pub(super) fn slice(left: u64) -> u32 {
    u32::try_from(left).map_or(SLICE_SECONDS, |left| left.min(SLICE_SECONDS))
}

/// Makes a call that answers a ticket, and looks again while that waits, for so many seconds. A
/// ticket in any state is an answer. `on_ticket` sees the first one that lives, unless the
/// call was cancelled meanwhile.
pub(super) async fn turn<A: Api>(
    api: &A,
    ask: Ask,
    seconds: u64,
    caller: Caller,
    on_ticket: impl FnOnce(&Value),
) -> Told {
    let (began, query) = (BootTime::now(), ask.query.clone());
    let end = began.plus(Duration::from_secs(seconds));
    let mut answer = match ticket_answer(api.ask(ask).await) {
        Told::Answer(answer) => answer,
        other => return other,
    };
    let is_live = ["held", "waiting"].iter().any(|state| answer["ticket"]["state"] == *state);
    if is_live && !caller.0.ct.is_cancelled() {
        on_ticket(&answer["ticket"]);
    }
    while answer["ticket"]["state"] == "waiting" && !api.is_ending() {
        let left = BootTime::now().until(end);
        if left.is_zero() {
            break;
        }
        let passed = began.until(BootTime::now()).as_secs_f64();
        caller.tell(passed, as_f64(seconds), standing(&answer)).await;
        if !caller.pause(PAUSE.min(left)).await {
            break;
        }
        let name = |field: &str| answer["ticket"][field].as_str().unwrap_or_default();
        let path = ["locks", name("lock_name"), "tickets", name("ticket_id")];
        let mut look = Ask::get(&path, query.clone());
        // Rounded up: a rest of a second is worth one look more.
        look.wait_seconds = slice(BootTime::now().until(end).as_secs() + 1);
        match api.ask(look).await {
            Told::Answer(newer) => answer = newer,
            other => return other,
        }
    }
    Told::Answer(answer)
}

/// A ticket that has ended comes as a problem of an acquire. It is an answer all the same.
fn ticket_answer(told: Told) -> Told {
    let Told::Problem(problem) = told else { return told };
    let code = problem["code"].as_str().unwrap_or_default();
    let is_answer = ["lock-contended", "deadlock-rejected", "wait-ended", "ticket-ended"];
    if !is_answer.contains(&code) || !problem["ticket"].is_object() {
        return Told::Problem(problem);
    }
    let fields = ["ticket", "answered_after_ms", "holder", "retry_after_seconds", "cycle"];
    let kept =
        fields.iter().filter_map(|name| Some(((*name).to_owned(), problem.get(*name)?.clone())));
    let mut answer: Map<String, Value> = kept.collect();
    answer.entry("answered_after_ms").or_insert(json!(0));
    Told::Answer(answer.into())
}

/// How a waiting ticket stands, in a few words.
fn standing(answer: &Value) -> String {
    let position = &answer["ticket"]["queue_position"];
    match answer["holder"]["owner"].as_str() {
        Some(owner) => format!("waiting at position {position}; {owner} holds the lock"),
        None => format!("waiting at position {position}"),
    }
}

#[expect(clippy::cast_precision_loss, reason = "it is at most 45")]
fn as_f64(seconds: u64) -> f64 {
    seconds as f64
}
