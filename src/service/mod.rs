//! The pipeline.
pub mod batch;
