//! The one integration binary: what no single module can promise alone.
mod scenario;
mod tidy;
