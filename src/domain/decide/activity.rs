//! What the caller says it is doing.
//!
//! An update that was made under a request UUID is made once: its retry, however late, finds it
//! done and doesn't undo what was said or cleared since.

use super::{Answer, Context};
use crate::domain::event::{ActivityCleared, ActivityUpdated, Event};
use crate::domain::id::RequestUuid;
use crate::domain::refusal::Refusal;
use crate::domain::text::ActivityText;

pub(super) fn update(
    context: &Context<'_>,
    activity: &ActivityText,
    request_uuid: Option<RequestUuid>,
) -> Result<(Vec<Event>, Answer), Refusal> {
    let user = context.user()?.clone();
    let event = Event::ActivityUpdated(ActivityUpdated {
        user: user.clone(),
        activity: activity.clone(),
        request_uuid,
    });
    let written = context.past.written.as_ref();
    #[cfg(feature = "planted-bugs")]
    let written = written.filter(|written| {
        let is_cleared = written.event == event && context.state.activity(&user).is_none();
        !(is_cleared && crate::domain::planted::is_cleared_activity_set_again())
    });
    match written {
        None => Ok((vec![event], Answer::Activity { user, is_replay: false })),
        Some(written) if written.event == event => {
            Ok((Vec::new(), Answer::Activity { user, is_replay: true }))
        }
        Some(_) => Err(Refusal::RequestUuidReused),
    }
}

pub(super) fn clear(context: &Context<'_>) -> Result<(Vec<Event>, Answer), Refusal> {
    let user = context.user()?.clone();
    let is_set = context.state.activity(&user).is_some();
    let cleared = Event::ActivityCleared(ActivityCleared { user: user.clone() });
    let events = is_set.then_some(cleared).into_iter().collect();
    Ok((events, Answer::Activity { user, is_replay: false }))
}
