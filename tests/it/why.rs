//! Why a ticket went as it did: the stories are read from ledgers that the real core made.

mod bounds;
mod programs;
mod stories;
