//! Pearing: one identity at a time holds a time-limited claim on named work, and every step of it
//! is an event in a durable ledger.
//!
//! ```text
//!  HTTP   CLI ─► client          surfaces: parse, authenticate, render; no rules
//!    │      └───────┘
//!  service ────────── command ─► domain::decide ─► events      pure: no clock, no ids, no IO
//!    │  one writer                                    │
//!    │                           ledger::append ◄─────┘        one synced batch for many commands
//!    │                                │ durable
//!    │                           projections (same batch), answers, feed
//!    └─ answers the caller ◄──────────┘
//! ```
//!
//! # Where to read, in the order of the flow
//!
//! | module | what it is |
//! | --- | --- |
//! | [`http`] | all routes on one page; a file for each noun |
//! | [`service`] | one method for each operation; read `service/writer.rs`, the pipeline, first |
//! | [`domain`] | the rules: [`decide`], [`settle`], [`State::apply`] |
//! | [`ledger`] | records, their hash chain, RocksDB, and a ledger in memory for tests |
//! | [`projection`] | what is looked up about the past, written in the append of its events |
//! | [`audit`] | proves and explains what happened, from the ledger alone |
//! | [`feed`] | one reader's way through the ledger, from any sequence to the present and on |
//! | [`wire`] | JSON on the wire; the tables of problems and operations; contracts made of them |
//! | [`mcp`] | tools, resources and prompts for agents' models, over stdio and HTTP |
//! | [`client`], [`cli`] | a typed client, and `pearing-cli` on top of it |
//! | [`guard`] | what makes a target refuse a late write: PostgreSQL, Redis, Git, HTTP services |
//! | [`server`], [`config`], [`telemetry`] | `pearing` from its command line to its exit code |
//! | [`metrics`] | what the server measures of itself, in one table |
//! | [`flags`], [`columns`], [`manual`] | what both programs have: flags, tables, man pages |
//! | [`clock`], [`random`] | the only readers of clocks, the only source of randomness |
//!
//! # What is always true
//!
//! 1. At most one identity holds a lock, and a lock with waiters is held.
//! 2. A new hold's fence token is greater than that of every earlier hold, of any lock; within a
//!    hold it stays the same.
//! 3. Depth is the number of held tickets, and at least 1 while a hold lasts.
//! 4. Locks are handed over in the order of places.
//! 5. Nobody waits, over any number of steps, for itself.
//! 6. A ticket ends once, and a request UUID of an identity names one ticket.
//! 7. Sequences have no gap and no repeat, but for `ledger.restored`; ledger time never goes back.
//! 8. The state rebuilt from the ledger is the live state, at every sequence.
//! 9. What a client was told is in the ledger, whatever crashes after it.
//! 10. Nothing is appended for a command that was refused.
//!
//! 1 to 5 and 7 are functions ([`domain::invariant`]); the simulator checks all ten after every
//! event.
//!
//! # Deliberately absent
//!
//! Consensus: one server, one ledger. A lock around the state: one thread owns it. A background
//! retry of failed writes: a storage error ends the process. Renaming and deleting: a name is
//! never used again for something else.
//!
//! [`decide`]: domain::decide
//! [`settle`]: domain::settle
//! [`State::apply`]: domain::State::apply
#[cfg(feature = "server")]
pub mod audit;
#[cfg(feature = "client")]
pub mod cli;
#[cfg(feature = "client")]
pub mod client;
pub mod clock;
pub mod columns;
#[cfg(feature = "server")]
pub mod config;
pub mod domain;
#[cfg(feature = "server")]
pub mod feed;
#[cfg(any(feature = "server", feature = "client"))]
pub mod flags;
#[cfg(any(feature = "client", feature = "guard"))]
pub mod guard;
#[cfg(feature = "server")]
pub mod http;
pub mod ledger;
#[cfg(any(feature = "server", feature = "client"))]
pub mod manual;
#[cfg(any(feature = "server", feature = "client"))]
pub mod mcp;
#[cfg(feature = "server")]
pub mod metrics;
#[cfg(feature = "server")]
pub mod projection;
pub mod random;
#[cfg(feature = "server")]
pub mod server;
#[cfg(feature = "server")]
pub mod service;
#[cfg(feature = "server")]
pub mod telemetry;
pub mod wire;
