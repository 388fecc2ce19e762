//! The one integration binary: what no single module can promise alone.
mod tidy;
