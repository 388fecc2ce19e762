//! The operations: one row for each HTTP call, from which every surface takes what it needs.
//!
//! The routes have their methods and paths from here, and OpenAPI all that it says. The command
//! of `pearing-cli` has the operation's name with dashes, and a tool for agents has it as it is.
//! Deliberately absent: who may call it, which the routes say, and what it does.

/// Declares operations once: a constant for each, and all of them.
macro_rules! operations {
    ($($(#[$doc:meta])* $name:ident = $operation:expr;)*) => {
        $($(#[$doc])* pub const $name: Operation = $operation;)*

        /// Those of this table.
        pub(super) const TABLE: &[Operation] = &[$($name,)*];
    };
}

mod audit;
mod parameter;
mod table;

use schemars::{JsonSchema, Schema, SchemaGenerator};

use super::problem::Code;
pub use audit::*;
pub(crate) use parameter::MOMENT_PATTERN;
pub use parameter::{Parameter, Place};
pub use table::*;

/// Every operation.
pub fn all() -> impl Iterator<Item = &'static Operation> + Clone {
    table::TABLE.iter().chain(audit::TABLE)
}

/// How a shape of JSON is described.
pub type Described = fn(&mut SchemaGenerator) -> Schema;

/// An HTTP method.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Method {
    /// Reads.
    Get,
    /// Makes, or does.
    Post,
    /// Sets.
    Put,
    /// Ends.
    Delete,
}

impl Method {
    /// The method on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Post => "POST",
            Self::Put => "PUT",
            Self::Delete => "DELETE",
        }
    }
}

/// How a call names a scope.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ScopeIn {
    /// It doesn't.
    Nothing,
    /// By exactly one of `repo`, `team` and `user`.
    One,
    /// By at most one of them.
    OneAtMost,
    /// By `repo`.
    Repo,
}

/// What an answer holds.
#[derive(Debug, Clone, Copy)]
pub enum Content {
    /// JSON.
    Json(Described),
    /// The feed's frames.
    Feed,
    /// Text of one of some media types: a page, a picture, or numbers for a machine.
    Text(&'static [&'static str]),
    /// Nothing: it points elsewhere.
    Nothing,
}

/// An answer that is no problem.
#[derive(Debug, Clone, Copy)]
pub struct Answer {
    /// The HTTP status.
    pub status: u16,
    /// When it is given.
    pub when: &'static str,
    /// What it holds.
    pub content: Content,
}

impl Answer {
    const fn json<T: JsonSchema>(status: u16, when: &'static str) -> Self {
        Self { status, when, content: Content::Json(SchemaGenerator::subschema_for::<T>) }
    }
}

/// Of which kind an operation is, for whoever looks for one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Group {
    /// Locks and tickets.
    Locks,
    /// Threads.
    Threads,
    /// What users say they are doing.
    Activity,
    /// What concerns the caller.
    Caller,
    /// Events.
    Events,
    /// Identities, scopes and access.
    Administration,
    /// What an operator asks.
    Operations,
    /// What the API is.
    Contracts,
}

impl Group {
    /// Every group.
    pub const ALL: &[Self] = &[
        Self::Locks,
        Self::Threads,
        Self::Activity,
        Self::Caller,
        Self::Events,
        Self::Administration,
        Self::Operations,
        Self::Contracts,
    ];

    /// Its name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Locks => "locks",
            Self::Threads => "threads",
            Self::Activity => "activity",
            Self::Caller => "caller",
            Self::Events => "events",
            Self::Administration => "administration",
            Self::Operations => "operations",
            Self::Contracts => "contracts",
        }
    }
}

/// An operation.
#[derive(Debug, Clone, Copy)]
pub struct Operation {
    /// Its name, in words with underscores.
    pub name: &'static str,
    /// Its kind.
    pub group: Group,
    /// The HTTP method.
    pub method: Method,
    /// The path, with its parts in braces.
    pub path: &'static str,
    /// What it does, in one line.
    pub summary: &'static str,
    /// Whether it needs no token.
    pub is_open: bool,
    /// How it names a scope.
    pub scope: ScopeIn,
    /// Whether its answer comes in pages: `limit` and `cursor`.
    pub is_paged: bool,
    /// Whether it can show the past: `as_of`.
    pub has_as_of: bool,
    /// Its other parameters.
    pub parameters: &'static [Parameter],
    /// Its body.
    pub body: Option<Described>,
    /// Its answers.
    pub answers: &'static [Answer],
    /// The problems that not every operation can answer with.
    pub problems: &'static [Code],
    /// The command of `pearing-cli` that calls it, in words with underscores.
    pub command: Option<&'static str>,
    /// Whether agents are to have a tool for it. A feed never ends, a token that was answered would
    /// stay in a model's context, and administration is for people.
    pub has_tool: bool,
}

impl Operation {
    const fn new(
        group: Group,
        method: Method,
        path: &'static str,
        name: &'static str,
        summary: &'static str,
    ) -> Self {
        Self {
            name,
            group,
            method,
            path,
            summary,
            is_open: false,
            scope: ScopeIn::Nothing,
            is_paged: false,
            has_as_of: false,
            parameters: &[],
            body: None,
            answers: &[],
            problems: &[],
            command: Some(name),
            has_tool: !matches!(group, Group::Administration),
        }
    }

    /// Open to anyone, and asked by operators and browsers only.
    const fn open(self) -> Self {
        Self { is_open: true, command: None, has_tool: false, ..self }
    }

    const fn scope(self, scope: ScopeIn) -> Self {
        Self { scope, ..self }
    }

    const fn paged(self) -> Self {
        Self { is_paged: true, ..self }
    }

    const fn as_of(self) -> Self {
        Self { has_as_of: true, ..self }
    }

    const fn parameters(self, parameters: &'static [Parameter]) -> Self {
        Self { parameters, ..self }
    }

    const fn body<T: JsonSchema>(self) -> Self {
        Self { body: Some(SchemaGenerator::subschema_for::<T>), ..self }
    }

    /// Answers 200 with a `T`.
    const fn ok<T: JsonSchema>(self) -> Self {
        self.answers(const { &[Answer::json::<T>(200, "As asked for.")] })
    }

    /// Answers 201 with a `T`.
    const fn made<T: JsonSchema>(self) -> Self {
        self.answers(const { &[Answer::json::<T>(201, "Made.")] })
    }

    /// Answers 201 with a `T`, and 200 where it was made before.
    const fn made_once<T: JsonSchema>(self) -> Self {
        self.answers(
            const {
                &[
                    Answer::json::<T>(200, "Made before, by the same request: as it is now."),
                    Answer::json::<T>(201, "Made."),
                ]
            },
        )
    }

    const fn answers(self, answers: &'static [Answer]) -> Self {
        Self { answers, ..self }
    }

    const fn problems(self, problems: &'static [Code]) -> Self {
        Self { problems, ..self }
    }

    const fn command(self, command: &'static str) -> Self {
        Self { command: Some(command), ..self }
    }

    const fn no_command(self) -> Self {
        Self { command: None, ..self }
    }

    const fn no_tool(self) -> Self {
        Self { has_tool: false, ..self }
    }

    const fn tool(self) -> Self {
        Self { has_tool: true, ..self }
    }

    /// The parts of the path that name something, in their order.
    pub fn path_parts(&self) -> impl Iterator<Item = &'static str> {
        self.path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'))
    }

    /// Every problem that it can answer with, in the order of the table of problems.
    pub fn codes(&self) -> Vec<Code> {
        /// Of whoever is no caller: the head of the request is wrong, or its body too large.
        const ANYONES: &[Code] = &[Code::Malformed, Code::Forbidden, Code::TooLarge];
        /// Of every caller.
        const CALLERS: &[Code] =
            &[Code::Unauthenticated, Code::InvalidArgument, Code::LimitReached, Code::Busy];
        let callers: &[Code] = if self.is_open { &[] } else { CALLERS };
        let is_given = |code: &&Code| [ANYONES, callers, self.problems].concat().contains(code);
        Code::ALL.iter().filter(is_given).copied().collect()
    }
}
