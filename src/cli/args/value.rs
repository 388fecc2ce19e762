//! Parsers of values: each gives the type that can't be wrong, or says the rule in the server's
//! words.

use clap::builder::{PossibleValuesParser, TypedValueParser};

use crate::client::ServerUrl;
use crate::domain::access::Role;
use crate::domain::id::{FenceToken, Sequence};
use crate::domain::text::ShortText;
use crate::domain::thread::ThreadState;
use crate::domain::time::{LeaseSeconds, WaitSeconds};
use crate::flags::{Parsed, invalid};

pub(super) fn short_text(
    field: &'static str,
) -> impl Fn(&str) -> Parsed<ShortText> + Clone + Send + Sync + 'static {
    move |text| ShortText::try_from(text.to_owned()).map_err(|rule| invalid(field, rule))
}

pub(super) fn lease(text: &str) -> Parsed<LeaseSeconds> {
    let rule = || invalid("lease_seconds", LeaseSeconds::RULE);
    let seconds: u64 = text.parse().map_err(|_| rule())?;
    LeaseSeconds::try_from(seconds).map_err(|_| rule())
}

pub(super) fn wait(text: &str) -> Parsed<WaitSeconds> {
    let rule = || invalid("wait_seconds", WaitSeconds::RULE);
    let seconds: u64 = text.parse().map_err(|_| rule())?;
    WaitSeconds::try_from(seconds).map_err(|_| rule())
}

pub(super) fn limit(text: &str) -> Parsed<u32> {
    let limit = text.parse().ok().filter(|limit| (1..=1000).contains(limit));
    limit.ok_or_else(|| invalid("limit", "must be a whole number from 1 to 1000"))
}

pub(super) fn server_url(text: &str) -> Parsed<ServerUrl> {
    text.parse().map_err(|why: String| invalid("url", why))
}

/// A role, of those that a shell can complete.
pub(super) fn role() -> impl TypedValueParser<Value = Role> {
    let roles = [Role::Read, Role::Write, Role::Admin].map(Role::as_str);
    PossibleValuesParser::new(roles).try_map(|word| word.parse::<Role>())
}

/// A thread's state, of those that a shell can complete.
pub(super) fn thread_state() -> impl TypedValueParser<Value = ThreadState> {
    let states = [ThreadState::Open, ThreadState::Closed].map(ThreadState::as_str);
    PossibleValuesParser::new(states).try_map(|word| word.parse::<ThreadState>())
}

pub(super) fn sequence(text: &str) -> Parsed<Sequence> {
    text.parse().map(Sequence).map_err(|_| invalid("after", "must be a sequence"))
}

pub(super) fn fence_token(text: &str) -> Parsed<FenceToken> {
    text.parse()
        .map(|fence| FenceToken(Sequence(fence)))
        .map_err(|_| invalid("fence_token", "must be a whole number"))
}
