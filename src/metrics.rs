//! What the server measures of itself, for Prometheus and its kin. Names, kinds and helps stand
//! in one table, below.
//!
//! What follows from events is counted from the records of an append once they are durable, so it
//! can't part ways with the ledger. What the state shows is not counted: it is read from there
//! when somebody asks, so a restart changes nothing in it.
//!
//! Deliberately absent: names. No lock, scope, user, thread or token is a label: whoever reads the
//! metrics learns nothing of what is worked on, and however much there is, the series are as many
//! as there are operations and outcomes.

use std::fmt::Write as _;
use std::sync::atomic::AtomicU64;

use prometheus_client::encoding::{
    EncodeLabelSet, EncodeLabelValue, EncodeMetric, LabelValueEncoder, MetricEncoder, text,
};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Metric, Registry, Unit};

/// The media type of the text.
pub const MEDIA_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// For what users wait for: from a hundredth of a second to some hours.
const WORK_SECONDS: [f64; 12] =
    [0.01, 0.1, 0.5, 1.0, 5.0, 15.0, 60.0, 300.0, 900.0, 3600.0, 14_400.0, 86_400.0];

/// For what a disk does: from a tenth of a millisecond to ten seconds.
const DISK_SECONDS: [f64; 15] = [
    0.0001, 0.000_25, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5,
    10.0,
];

/// For how many there are at once.
const COUNTS: [f64; 13] =
    [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0, 1024.0, 2048.0, 4096.0];

/// What an answer is counted under.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct Answer {
    /// What was asked.
    pub operation: Operation,
    /// What came of it: the state of the ticket, the code of the problem, or `ok`.
    pub outcome: &'static str,
}

/// What was asked: a route. As a label it is the two words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Operation {
    /// The route's method.
    pub method: &'static str,
    /// The route's path, with the names of its parts and never their values.
    pub path: &'static str,
}

impl Operation {
    /// What is at no route.
    pub const NONE: Self = Self { method: "any", path: "none" };
}

impl EncodeLabelValue for Operation {
    fn encode(&self, encoder: &mut LabelValueEncoder) -> std::fmt::Result {
        write!(encoder, "{} {}", self.method, self.path)
    }
}

/// What waiting commands are counted under.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct Lane {
    /// `holders`, for heartbeats and releases, or `others`.
    pub lane: &'static str,
}

/// Which build this is, which is all in its labels.
#[derive(Debug, Clone, Copy, EncodeLabelSet)]
pub struct Build {
    version: &'static str,
}

impl EncodeMetric for Build {
    fn encode(&self, mut encoder: MetricEncoder) -> std::fmt::Result {
        encoder.encode_info(self)
    }

    fn metric_type(&self) -> MetricType {
        MetricType::Info
    }
}

/// A metric, as the table has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Described {
    /// Its name. A histogram's series have `_bucket`, `_sum` and `_count` behind it.
    pub name: &'static str,
    /// `counter`, `gauge`, `histogram` or `info`.
    pub kind: &'static str,
    /// Its labels.
    pub labels: &'static [&'static str],
    /// What it says.
    pub help: &'static str,
}

macro_rules! metrics {
    ($(
        $kind:ident $field:ident: $type:ty = $new:expr,
        $name:literal, [$($label:literal),*], $help:literal;
    )*) => {
        /// All that is measured. Counting is atomic, and takes no longer than that.
        #[derive(Debug)]
        pub struct Metrics {
            registry: Registry,
            $(#[doc = $help] pub $field: $type,)*
        }

        impl Metrics {
            /// Every metric.
            pub const TABLE: &[Described] = &[$(Described {
                name: $name,
                kind: stringify!($kind),
                labels: &[$($label),*],
                help: $help,
            },)*];
        }

        impl Default for Metrics {
            /// Nothing was counted yet.
            fn default() -> Self {
                let mut registry = Registry::default();
                $(
                    let $field: $type = $new;
                    register(&mut registry, $name, $help, $field.clone());
                )*
                Self { registry, $($field,)* }
            }
        }
    };
}

metrics! {
    counter answers: Family<Answer, Counter> = Family::default(),
        "pearing_answers_total", ["operation", "outcome"],
        "answers, by what was asked and by the ticket's state, the problem's code, or ok";
    histogram wait: Histogram = Histogram::new(WORK_SECONDS),
        "pearing_wait_seconds", [],
        "how long promoted tickets had waited";
    histogram hold: Histogram = Histogram::new(WORK_SECONDS),
        "pearing_hold_seconds", [],
        "how long holds lasted that have ended, from the first ticket to the end of the last";
    gauge held_locks: Gauge = Gauge::default(),
        "pearing_held_locks", [],
        "locks that are held";
    gauge held_tickets: Gauge = Gauge::default(),
        "pearing_held_tickets", [],
        "tickets that are held";
    gauge waiting_tickets: Gauge = Gauge::default(),
        "pearing_waiting_tickets", [],
        "tickets that wait";
    counter promoted: Counter = Counter::default(),
        "pearing_promoted_total", [],
        "tickets that were promoted from waiting to held";
    counter expired: Counter = Counter::default(),
        "pearing_expired_total", [],
        "held tickets whose lease ran out";
    counter wait_timed_out: Counter = Counter::default(),
        "pearing_wait_timed_out_total", [],
        "tickets whose wait ran out";
    counter deadlocks: Counter = Counter::default(),
        "pearing_deadlocks_total", [],
        "tickets that were rejected since their wait would have closed a cycle";
    gauge queue_depth: Family<Lane, Gauge> = Family::default(),
        "pearing_queue_depth", ["lane"],
        "commands that wait for the writer";
    histogram batch_commands: Histogram = Histogram::new(COUNTS),
        "pearing_batch_commands", [],
        "commands that were decided together";
    histogram batch_events: Histogram = Histogram::new(COUNTS),
        "pearing_batch_events", [],
        "events of one append";
    histogram append: Histogram = Histogram::new(DISK_SECONDS),
        "pearing_append_seconds", [],
        "how long appends of events took, the sync included";
    histogram sync: Histogram = Histogram::new(DISK_SECONDS),
        "pearing_sync_seconds", [],
        "how long such an append wrote and synced the log, the rest being work in memory";
    gauge head_sequence: Gauge = Gauge::default(),
        "pearing_head_sequence", [],
        "the sequence of the last event that can be read";
    gauge feed_readers: Gauge = Gauge::default(),
        "pearing_feed_readers", [],
        "feeds that are open";
    gauge feed_lag: Gauge = Gauge::default(),
        "pearing_feed_lag_events", [],
        "how many sequences the slowest open feed is behind the head";
    gauge verified_sequence: Gauge = Gauge::default(),
        "pearing_verified_sequence", [],
        "the sequence up to which the last verification of the ledger found everything good";
    counter ledger_faults: Counter = Counter::default(),
        "pearing_ledger_faults_total", [],
        "verifications of the ledger that found a fault";
    gauge checkpoint_sequence: Gauge = Gauge::default(),
        "pearing_checkpoint_sequence", [],
        "the sequence of the last signed checkpoint that was kept, or 0";
    counter checkpoint_failures: Counter = Counter::default(),
        "pearing_checkpoint_failures_total", [],
        "signed checkpoints that could not be kept";
    gauge uptime: Gauge<f64, AtomicU64> = Gauge::default(),
        "pearing_uptime_seconds", [],
        "how long the server has served";
    gauge resident_memory: Gauge = Gauge::default(),
        "pearing_resident_memory_bytes", [],
        "memory of the process that is in RAM";
    info build: Build = Build { version: env!("CARGO_PKG_VERSION") },
        "pearing_build_info", ["version"],
        "the version of the server";
}

impl Metrics {
    /// All metrics as text, in the format of OpenMetrics.
    pub fn to_text(&self) -> String {
        let mut text = String::new();
        text::encode(&mut text, &self.registry).expect("a string takes any text");
        text
    }
}

/// Registers a metric by its full name. The registry puts the suffixes there itself.
fn register(registry: &mut Registry, name: &'static str, help: &'static str, metric: impl Metric) {
    let base = name.strip_suffix("_total").or(name.strip_suffix("_info")).unwrap_or(name);
    let units = [("_seconds", Unit::Seconds), ("_bytes", Unit::Bytes)];
    for (suffix, unit) in units {
        if let Some(base) = base.strip_suffix(suffix) {
            return registry.register_with_unit(base, help, unit, metric);
        }
    }
    registry.register(base, help, metric);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_has_every_metric_of_the_table_as_it_is_described_and_no_other() {
        let metrics = Metrics::default();
        let operation = Operation { method: "GET", path: "/v1/locks/{lock_name}" };
        metrics.answers.get_or_create(&Answer { operation, outcome: "ok" }).inc();
        metrics.queue_depth.get_or_create(&Lane { lane: "others" }).set(2);
        metrics.wait.observe(0.5);
        let text = metrics.to_text();
        for line in [
            "pearing_answers_total{operation=\"GET /v1/locks/{lock_name}\",outcome=\"ok\"} 1",
            "pearing_queue_depth{lane=\"others\"} 2",
            "pearing_wait_seconds_bucket{le=\"0.5\"} 1",
            "pearing_wait_seconds_bucket{le=\"0.1\"} 0",
            "# UNIT pearing_resident_memory_bytes bytes",
            "# EOF",
        ] {
            assert!(text.lines().any(|said| said == line), "{line} isn't in:\n{text}");
        }
        let said = |mark: &str| text.lines().filter_map(|l| l.strip_prefix(mark)).collect();
        let (types, helps): (Vec<&str>, Vec<&str>) = (said("# TYPE "), said("# HELP "));
        let family = |row: &Described| {
            let suffix = if row.kind == "counter" { "_total" } else { "_info" };
            row.name.strip_suffix(suffix).unwrap_or(row.name).to_owned()
        };
        let with = |what: fn(&Described) -> &'static str| -> Vec<String> {
            Metrics::TABLE.iter().map(|row| format!("{} {}", family(row), what(row))).collect()
        };
        assert_eq!(types, with(|row| row.kind));
        let helps: Vec<&str> = helps.iter().map(|help| help.trim_end_matches('.')).collect();
        assert_eq!(helps, with(|row| row.help));
    }
}
