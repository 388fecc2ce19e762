//! What happened to locks, as the server draws it.

use super::error::ClientError;
use super::transport::{Call, Client};
use crate::domain::name::LockName;
use crate::domain::scope::Scope;

/// How it is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Drawing {
    /// As a picture.
    Svg,
    /// As text, of so many columns if that is given.
    Text(Option<usize>),
}

/// What is drawn. What is `None` is left to the server.
#[derive(Debug, Clone)]
pub struct Timeline {
    /// The scope.
    pub scope: Scope,
    /// One of its locks; all without it.
    pub lock_name: Option<LockName>,
    /// Where it begins: a sequence or a time.
    pub from: Option<String>,
    /// Where it ends: a sequence or a time.
    pub to: Option<String>,
}

impl Client {
    /// Draws what happened to a lock, or to all locks of a scope.
    ///
    /// # Errors
    /// As for every call.
    pub async fn timeline(
        &self,
        timeline: &Timeline,
        drawing: Drawing,
    ) -> Result<String, ClientError> {
        let Timeline { scope, lock_name, from, to } = timeline;
        let (accept, width) = match drawing {
            Drawing::Svg => ("image/svg+xml", None),
            Drawing::Text(width) => ("text/plain", width),
        };
        let call = Call::get(&["timeline"]).at(scope).with("lock", lock_name.as_ref());
        let call = call.with("from", from.as_ref()).with("to", to.as_ref()).with("width", width);
        Ok(self.call_raw(Call { accept: Some(accept), ..call }).await?.json)
    }
}
