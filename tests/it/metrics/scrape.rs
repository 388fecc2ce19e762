//! Reads the text of the metrics as its format has it: OpenMetrics 1.0, line by line, with
//! nothing that it doesn't allow. Shares no code with what writes it.

use std::collections::{BTreeMap, BTreeSet};

/// What was read at one moment.
pub(super) struct Scrape {
    pub(super) text: String,
    /// The value of each series, by its name with its labels.
    samples: BTreeMap<String, f64>,
}

/// Samples of one name, under the lines that describe them.
#[derive(Debug)]
struct Family {
    name: String,
    kind: Option<String>,
    unit: Option<String>,
}

impl Family {
    /// Which suffixes the samples of its kind have.
    fn suffixes(&self) -> &'static [&'static str] {
        match self.kind.as_deref() {
            Some("counter") => &["_total"],
            Some("gauge") => &[""],
            Some("histogram") => &["_bucket", "_sum", "_count"],
            Some("info") => &["_info"],
            kind => panic!("{}: {kind:?}", self.name),
        }
    }
}

impl Scrape {
    pub(super) fn read(text: String) -> Self {
        let mut samples = BTreeMap::new();
        let mut names = BTreeSet::new();
        let mut family: Option<Family> = None;
        let body = text.strip_suffix("# EOF\n").expect("the end is marked");
        assert!(body.ends_with('\n') && !body.contains(['\r', '\t']), "{text}");
        for line in body.lines() {
            if let Some(described) = line.strip_prefix("# ") {
                let mut words = described.splitn(3, ' ');
                let mut word = || words.next().expect("a description has three parts").to_owned();
                let (keyword, name, rest) = (word(), word(), word());
                if keyword == "HELP" {
                    assert!(names.insert(name.clone()), "{name} comes twice");
                    assert!(rest.len() > 10 && !rest.contains('\\'), "{line}");
                    family = Some(Family { name: name.clone(), kind: None, unit: None });
                }
                let family = family.as_mut().expect("the help comes first");
                assert_eq!(family.name, name, "{line}");
                match keyword.as_str() {
                    "HELP" => {}
                    "TYPE" => family.kind = Some(rest),
                    "UNIT" => {
                        assert!(name.ends_with(&format!("_{rest}")), "{line}");
                        family.unit = Some(rest);
                    }
                    _ => panic!("{line}"),
                }
            } else {
                let family = family.as_ref().expect("a sample is described");
                let (series, value) = line.rsplit_once(' ').expect("a sample has a value");
                let (name, labels) = series.split_once('{').unwrap_or((series, "}"));
                let suffix = name.strip_prefix(family.name.as_str()).expect(line);
                assert!(family.suffixes().contains(&suffix), "{line}");
                check_labels(labels);
                let value: f64 = value.parse().expect("a value is a number");
                assert!(value.is_finite() && value >= 0.0, "{line}");
                assert_eq!(samples.insert(series.to_owned(), value), None, "{line}");
                for (unit, ending) in [("seconds", "_seconds"), ("bytes", "_bytes")] {
                    let is_said = family.unit.as_deref() == Some(unit);
                    assert_eq!(is_said, family.name.ends_with(ending), "{line}");
                }
            }
        }
        let scrape = Self { text, samples };
        scrape.check_histograms();
        scrape
    }

    /// The buckets of each histogram count up to all.
    fn check_histograms(&self) {
        let counts = self.samples.iter().filter(|(series, _)| series.ends_with("_count"));
        for (series, count) in counts {
            let name = series.strip_suffix("_count").expect("it was looked for");
            let mut buckets: Vec<(f64, f64)> = Vec::new();
            for (series, value) in &self.samples {
                let bound = series.strip_prefix(&format!("{name}_bucket{{le=\""));
                if let Some(bound) = bound.and_then(|bound| bound.strip_suffix("\"}")) {
                    buckets.push((bound.parse().expect("a bound is a number"), *value));
                }
            }
            buckets.sort_by(|a, b| a.0.total_cmp(&b.0));
            assert!(buckets.is_sorted_by(|a, b| a.1 <= b.1), "{name}: {buckets:?}");
            assert_eq!(buckets.last(), Some(&(f64::INFINITY, *count)), "{name}");
        }
    }

    /// The value of a series; 0 if it isn't there, as nothing was counted yet.
    pub(super) fn get(&self, series: &str) -> f64 {
        self.samples.get(series).copied().unwrap_or(0.0)
    }

    /// How often an operation was answered, by outcome.
    pub(super) fn answers(&self, operation: &str) -> Vec<(&str, f64)> {
        let start = format!("pearing_answers_total{{operation=\"{operation}\",outcome=\"");
        let outcome = |series: &'_ String| series.strip_prefix(&start).map(str::len);
        let found = self.samples.iter().filter_map(|(series, value)| {
            let rest = &series[series.len() - outcome(series)?..];
            Some((rest.trim_end_matches("\"}"), *value))
        });
        found.collect()
    }

    /// The name and labels of every series.
    pub(super) fn series(&self) -> BTreeSet<&str> {
        self.samples.keys().map(String::as_str).collect()
    }
}

/// What stands after the brace of a sample: labels and the other brace.
fn check_labels(text: &str) {
    let mut rest = text.strip_suffix('}').expect("the brace is closed");
    while !rest.is_empty() {
        let (label, after) = rest.split_once("=\"").expect("a label has a value in quotes");
        assert!(label.bytes().all(|b| b.is_ascii_lowercase() || b == b'_'), "{text}");
        let (value, after) = after.split_once('"').expect("the quote is closed");
        assert!(!value.is_empty() && !value.contains('\\'), "{text}");
        rest = after.strip_prefix(',').unwrap_or(after);
    }
}

#[test]
fn what_is_wrong_in_a_text_is_found() {
    let good = "# HELP a how much of it\n# TYPE a counter\na_total{b=\"c\"} 1\n# EOF\n";
    assert_eq!(Scrape::read(good.to_owned()).get("a_total{b=\"c\"}"), 1.0);
    for (from, to) in [
        ("# EOF\n", ""),
        ("# EOF\n", "# EOF"),
        ("a_total{", "a{"),
        ("a_total{", "b_total{"),
        ("counter", "number"),
        ("# TYPE a counter\n", ""),
        ("\"c\"", "c"),
        (" 1\n", " one\n"),
        (" 1\n", " -1\n"),
        (" 1\n", " 1\r\n"),
        ("\"} 1\n", "\"} 1\na_total{b=\"c\"} 2\n"),
        ("counter\n", "counter\n# UNIT a seconds\n"),
    ] {
        let bad = good.replace(from, to);
        assert_ne!(bad, good);
        let read = std::panic::catch_unwind(|| Scrape::read(bad.clone()));
        assert!(read.is_err(), "{bad}");
    }
}
