//! The one integration binary: what no single module can promise alone.
#[cfg(all(feature = "server", feature = "client"))]
mod crash;
#[cfg(all(feature = "server", feature = "client"))]
mod feed;
#[cfg(all(feature = "server", feature = "client"))]
mod http;
#[cfg(all(feature = "server", feature = "client"))]
mod race;
#[cfg(all(feature = "server", feature = "client"))]
mod support;
#[cfg(all(feature = "server", feature = "client"))]
mod sync;
mod tidy;
#[cfg(all(feature = "server", feature = "client"))]
mod timers;
