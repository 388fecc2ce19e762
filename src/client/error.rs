//! Why a call has no answer that it can use.

use std::time::Duration;

use crate::clock::BootTime;
use crate::wire::problem::{Code, EXIT_OTHER, EXIT_UNREACHABLE, Problem};

/// A problem, and the JSON that it was read from.
#[derive(Debug)]
pub struct Refused {
    /// The problem.
    pub problem: Problem,
    /// The JSON as it came.
    pub json: String,
    /// When the request was sent, on the client's clock.
    pub sent_at: BootTime,
    /// Whether an acquire met a request that was made before.
    pub is_replay: bool,
}

/// Why a call failed.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The server said no, in the words of its one table.
    #[error("{}: {}", .0.problem.code, .0.problem.detail)]
    Problem(Box<Refused>),
    /// No connection came about, at no attempt: nothing was sent.
    #[error("unreachable: {0}")]
    NoConnection(String),
    /// No answer came: whether the call was carried out is unknown. Retry it as it was.
    #[error("unreachable: {0}")]
    Unreachable(String),
    /// An answer came that is none of this service's.
    #[error("unexpected answer: {0}")]
    Unexpected(String),
    /// The address or the token can't be used, so nothing was sent.
    #[error("{0}")]
    Setup(String),
}

impl ClientError {
    /// Whether the same read may well be answered a little later: the server is busy, or away, or
    /// it was asked too often.
    pub fn is_passing(&self) -> bool {
        match self {
            Self::NoConnection(_) | Self::Unreachable(_) => true,
            Self::Problem(refused) => {
                matches!(refused.problem.code, Code::Busy | Code::LimitReached)
            }
            Self::Unexpected(_) | Self::Setup(_) => false,
        }
    }

    /// After how long the server said that it is worth asking again.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Problem(refused) => refused.problem.retry_after_seconds.map(Duration::from_secs),
            Self::NoConnection(_) | Self::Unreachable(_) | Self::Unexpected(_) | Self::Setup(_) => {
                None
            }
        }
    }

    /// The exit code of the command line.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Problem(refused) => refused.problem.code.exit_code(),
            Self::NoConnection(_) | Self::Unreachable(_) => EXIT_UNREACHABLE,
            Self::Unexpected(_) | Self::Setup(_) => EXIT_OTHER,
        }
    }
}
