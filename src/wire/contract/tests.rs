//! The files below `schemas/` are what is made from the types, and describe what there is.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use jsonschema::Validator;

use super::*;
use crate::domain::access::TokenHash;
use crate::domain::id::{LedgerId, RequestUuid};
use crate::domain::name::{Actor, LockName, TeamName, UserName};
use crate::domain::scope::Scope;
use crate::domain::text::{ActivityText, ReplyBody, ShortText, ThreadBody};
use crate::domain::thread::{Link, Links, ReplyKind, ThreadNumber};
use crate::domain::time::{LeaseSeconds, Time, WaitSeconds};
use crate::ledger::{Hash, Stored, samples};
use crate::wire::request::Days;

/// Set to anything, it has the files written anew instead of compared.
const WRITE: &str = "PEARING_WRITE_SCHEMAS";

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("schemas")
}

/// The files below a folder, by their paths from there.
fn files_below(folder: &Path) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for entry in fs::read_dir(folder).into_iter().flatten() {
        let entry = entry.expect("an entry can be read");
        let name = entry.file_name().into_string().expect("a name is text");
        if entry.path().is_dir() {
            let below = files_below(&entry.path());
            found.extend(below.into_iter().map(|file| format!("{name}/{file}")));
        } else {
            found.insert(name);
        }
    }
    found
}

#[test]
fn the_files_are_what_the_types_say() {
    let texts: BTreeMap<String, String> = files()
        .into_iter()
        .map(|(file, value)| {
            (file, format!("{}\n", serde_json::to_string_pretty(&value).expect("it is JSON")))
        })
        .collect();
    if std::env::var_os(WRITE).is_some() {
        let _ = fs::remove_dir_all(folder());
        for (file, text) in &texts {
            let path = folder().join(file);
            fs::create_dir_all(path.parent().expect("it is below a folder")).expect("a folder");
            fs::write(path, text).expect("a file");
        }
    }
    let known: BTreeSet<String> = texts.keys().cloned().collect();
    let hint = format!("run this test with {WRITE}=1, and look at what changes");
    assert_eq!(files_below(&folder()), known, "{hint}");
    for (file, text) in &texts {
        let checked_in = fs::read_to_string(folder().join(file)).expect("a file that was listed");
        let first = checked_in.lines().zip(text.lines()).find(|(old, new)| old != new);
        assert!(checked_in == *text, "schemas/{file} differs, first in {first:?}: {hint}");
    }
}

fn validator(schema: &Value) -> Validator {
    let options = jsonschema::options().should_validate_formats(true);
    options.build(schema).unwrap_or_else(|error| panic!("{error}: {schema}"))
}

/// Whether a text or number is what a type is described as, asked with and answered.
fn is_described<T: JsonSchema>(value: &Value) -> [bool; 2] {
    [Contract::Deserialize, Contract::Serialize].map(|contract| {
        let mut schema = Value::from(T::json_schema(&mut generator(contract, "#/$defs/")));
        tidy(&mut schema);
        validator(&schema).is_valid(value)
    })
}

/// A parser and a description say the same of each sample.
fn agree<T: JsonSchema + serde::de::DeserializeOwned>(samples: &[&str]) {
    let (mut good, mut bad) = (0, 0);
    for sample in samples {
        let is_number = sample.bytes().all(|b| b.is_ascii_digit()) && !sample.is_empty();
        let mut values = vec![Value::from(*sample)];
        values.extend(is_number.then(|| serde_json::from_str(sample).expect("a number")));
        for value in values {
            let is_parsed = serde_json::from_value::<T>(value.clone()).is_ok();
            assert_eq!(
                is_described::<T>(&value),
                [is_parsed; 2],
                "{value} as {}",
                T::schema_name()
            );
            if is_parsed { good += 1 } else { bad += 1 }
        }
    }
    assert!(good > 0 && bad > 0, "{}: {good} good samples, {bad} bad ones", T::schema_name());
}

#[test]
fn names_are_described_as_they_are_parsed() {
    let longest = ["a".repeat(64), "a".repeat(65), "a".repeat(128), "a".repeat(129)];
    let mut samples = vec![
        "",
        "a",
        "0",
        "a.b_c-d",
        "thread-work.42",
        "a:b",
        "a__b",
        "Z",
        "ledger",
        "ledgers",
        ".a",
        "-a",
        "_a",
        ":a",
        "a/b",
        "../x",
        "a%2eb",
        "A",
        "a b",
        "a\n",
        "a\0",
        "ä",
        "é",
        "a\u{200b}",
    ];
    samples.extend(longest.iter().map(String::as_str));
    agree::<UserName>(&samples);
    agree::<TeamName>(&samples);
    agree::<LockName>(&samples);
    agree::<Actor>(&samples);
    samples.extend(["implementation", "a-b_2", "2a"]);
    agree::<ReplyKind>(&samples);
    agree::<Scope>(&[
        "",
        "users",
        "users/",
        "teams/a",
        "teams/a/",
        "users/ana",
        "users/ledger",
        "users/ledgers",
        "users/ledger/a",
        "teams/ledger",
        "teams/a/b",
        "teams/a/b/c",
        "x/a",
        "/users/a",
        "teams/A/b",
        "teams/a/.b",
    ]);
}

#[test]
fn texts_are_described_as_they_are_parsed() {
    let long = |n: usize| "ü".repeat(n);
    let lengths = [200, 201, 500, 501, 16_384, 16_385].map(long);
    let mut samples = vec![
        "",
        "a",
        "a b",
        "grüß",
        "日本",
        "a\nb",
        "a\tb",
        "a\rb",
        "a\0",
        "a\u{1b}[2J",
        "a\u{7f}",
        "a\u{85}",
        "a\u{a0}",
        "a\u{200e}",
        "a\u{202a}",
        "a\u{202e}b",
        "a\u{2028}b",
        "a\u{202f}",
        "a\u{2066}",
        "a\u{206a}",
        "a\u{1f600}",
    ];
    samples.extend(lengths.iter().map(String::as_str));
    agree::<ShortText>(&samples);
    agree::<ActivityText>(&samples);
    agree::<ThreadBody>(&samples);
    agree::<ReplyBody>(&samples);
}

#[test]
fn numbers_hashes_and_times_are_described_as_they_are_parsed() {
    agree::<LeaseSeconds>(&["0", "4", "5", "60", "300", "301", "9007199254740991"]);
    agree::<WaitSeconds>(&["0", "3600", "3601"]);
    agree::<ThreadNumber>(&["0", "1", "42", "1000000000", "1000000001"]);
    agree::<Days>(&["0", "1", "36500", "36501"]);
    let hash = "0a".repeat(32);
    agree::<TokenHash>(&[&hash, &hash.to_uppercase(), "0a", ""]);
    agree::<Time>(&["2025-11-29T15:54:55.007Z", "2025-13-29T15:54:55.007Z", "2025-11-29", ""]);
    let uuid = "0191d1f0-0000-7000-8000-00000000000a";
    agree::<RequestUuid>(&[uuid, "0191d1f0-0000-7000-8000-00000000000", "x", ""]);
    // Asked with, it may be in any case; it is shown in lower case.
    assert_eq!(is_described::<RequestUuid>(&uuid.to_uppercase().into()), [true, false]);
}

#[test]
fn links_are_described_as_they_are_parsed() {
    let longest =
        [format!("url:https://{}", "a".repeat(988)), "branch:".to_owned() + &"a".repeat(994)];
    let mut samples = vec![
        "",
        "branch:",
        "branch:a",
        "branch:codex/thread-42",
        "branch:a.b/c@d",
        "branch:größe",
        "branch:日本",
        "branch:-a",
        "branch:a-",
        "branch:a.",
        "branch:.a",
        "branch:a/.b",
        "branch:a./b",
        "branch:a..b",
        "branch:a//b",
        "branch:/a",
        "branch:a/",
        "branch:@",
        "branch:@a",
        "branch:a@{b",
        "branch:a{b",
        "branch:a.lock",
        "branch:a.lock/b",
        "branch:a.locks",
        "branch:a b",
        "branch:a~b",
        "branch:a^b",
        "branch:a:b",
        "branch:a?b",
        "branch:a*b",
        "branch:a[b",
        "branch:a]b",
        "branch:a\\b",
        "commit:abcdef",
        "commit:abcdef0",
        "commit:ABCDEF0",
        "commit:",
        "pull:7",
        "pull:0",
        "pull:07",
        "pull:-1",
        "pull:1000000000",
        "pull:1000000001",
        "pull:x",
        "url:https://a",
        "url:http://a/b?c#d",
        "url:ftp://a",
        "url:javascript:alert(1)",
        "url:https://",
        "url:https:///a",
        "url:https://a b",
        "Branch:a",
        "tree:a",
        "branch:a\u{200b}",
    ];
    samples.extend(longest.iter().map(String::as_str));
    for sample in &samples {
        let is_parsed = sample.parse::<Link>().is_ok();
        let [asked, answered] = is_described::<Link>(&Value::from(*sample));
        assert_eq!(asked, is_parsed, "{sample}");
        // Which letters of all scripts there are is beyond a pattern.
        assert!(answered || !is_parsed, "{sample}");
    }
    let links = |n: usize| serde_json::to_value(vec!["pull:1"; n]).expect("a list");
    assert_eq!(is_described::<Links>(&links(20)), [true; 2]);
    assert_eq!(is_described::<Links>(&links(21)), [false; 2]);
    // Whatever passes for a letter in a request is one.
    for c in '\u{a1}'..='\u{ffff}' {
        let link = format!("branch:{c}");
        let is_parsed = link.parse::<Link>().is_ok();
        let asked = LETTERS_ASKED.with(|validator| validator.is_valid(&link.into()));
        assert!(is_parsed || !asked, "{c:?}");
    }
}

thread_local! {
    static LETTERS_ASKED: Validator = {
        let schema = Link::json_schema(&mut generator(Contract::Deserialize, "#/$defs/"));
        validator(schema.as_value())
    };
}

/// Each sample of an event on the wire, by its file.
fn sampled_events() -> Vec<(String, Value)> {
    let records = samples::records().into_iter();
    let sampled = records.map(|record| {
        let stored = Stored::new(&Hash::ZERO, &record);
        let id = LedgerId(uuid::Uuid::nil());
        let event = CloudEvent::from_stored(&stored.bytes, &stored.hash, id).expect("a record");
        let file = format!("events/{}.{}.json", record.event.type_name(), record.event.version());
        (file, serde_json::to_value(&event).expect("it is JSON"))
    });
    sampled.collect()
}

#[test]
fn every_event_is_as_its_schema_says_and_a_changed_one_is_not() {
    let files = files();
    let of_envelope = validator(&files["answers/cloud_event.json"]);
    for (file, event) in sampled_events() {
        let schema = &files[&file];
        assert_eq!(event["dataschema"], schema["$id"], "{file}");
        let of_data = validator(schema);
        let said: Vec<String> =
            of_data.iter_errors(&event["data"]).map(|e| e.to_string()).collect();
        assert_eq!(said, [""; 0], "{file}");
        assert!(of_envelope.is_valid(&event), "{file}");
        let mut changed = event.clone();
        changed["data"]["unknown"] = 1.into();
        assert!(!of_data.is_valid(&changed["data"]) && !of_envelope.is_valid(&changed), "{file}");
        for name in event["data"].as_object().expect("an object").keys() {
            let mut changed = event.clone();
            changed["data"].as_object_mut().expect("an object").remove(name);
            assert!(!of_data.is_valid(&changed["data"]), "{file} without {name}");
            assert!(!of_envelope.is_valid(&changed), "{file} without {name}");
            let mut changed = event.clone();
            changed["data"][name] = json!(-1.5);
            assert!(!of_data.is_valid(&changed["data"]), "{file} with another {name}");
        }
        for name in event.as_object().expect("an object").keys() {
            let mut changed = event.clone();
            changed.as_object_mut().expect("an object").remove(name);
            assert!(!of_envelope.is_valid(&changed), "{file} without {name}");
        }
        let mut changed = event.clone();
        changed["type"] = "pearing.other".into();
        assert!(!of_envelope.is_valid(&changed), "{file} of another type");
    }
}

#[test]
fn an_old_version_has_its_own_schema() {
    let files = files();
    let old = validator(&files["events/user.created.1.json"]);
    assert!(old.is_valid(&json!({ "user": "bo", "admin": true })));
    assert!(!old.is_valid(&json!({ "user": "bo", "admin": true, "person": null })));
}

/// Every reference in a document leads somewhere.
fn dangling(document: &Value, value: &Value, found: &mut Vec<String>) {
    match value {
        Value::Array(items) => items.iter().for_each(|item| dangling(document, item, found)),
        Value::Object(object) => {
            if let Some(Value::String(reference)) = object.get("$ref") {
                let pointer = reference.strip_prefix('#').unwrap_or("/no local reference");
                if document.pointer(pointer).is_none() {
                    found.push(reference.clone());
                }
            }
            object.values().for_each(|value| dangling(document, value, found));
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[test]
fn every_reference_leads_somewhere() {
    for (file, document) in files() {
        let mut found = Vec::new();
        dangling(&document, &document, &mut found);
        assert_eq!(found, [""; 0], "{file}");
    }
}

#[test]
fn every_link_leads_to_a_call_with_its_parameters() {
    for link in links::LINKS {
        let find = |name| operation::all().find(|operation| operation.name == name);
        let from = find(link.from).unwrap_or_else(|| panic!("no operation {}", link.from));
        let to = find(link.to).unwrap_or_else(|| panic!("no operation {}", link.to));
        for status in link.statuses {
            let is_given = from.answers.iter().any(|answer| answer.status == *status);
            assert!(is_given, "{} doesn't answer {status}", from.name);
        }
        let given: Value = serde_json::from_str(link.parameters).expect("it is JSON");
        let given: Vec<&String> = given.as_object().expect("an object").keys().collect();
        let known: Vec<&str> = to.path_parts().chain(["scope", "repo"]).collect();
        assert!(given.iter().all(|name| known.contains(&name.as_str())), "{} {given:?}", to.name);
    }
}

/// The examples are good ones.
#[test]
fn every_example_of_a_request_is_one() {
    for (file, schema) in files().iter().filter(|(file, _)| file.starts_with("requests/")) {
        let examples = schema["examples"].as_array().unwrap_or_else(|| panic!("{file} has none"));
        assert!(examples.iter().all(|example| validator(schema).is_valid(example)), "{file}");
    }
}

#[test]
fn an_operation_has_one_name_and_what_it_answers() {
    let names: BTreeSet<&str> = operation::all().map(|operation| operation.name).collect();
    assert_eq!(names.len(), operation::all().count());
    for operation in operation::all() {
        assert!(!operation.answers.is_empty(), "{}", operation.name);
        assert!(operation.summary.ends_with('.'), "{}", operation.name);
    }
}
