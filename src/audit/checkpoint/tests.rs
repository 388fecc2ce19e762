//! Notes, keys and folders, and what a ledger is proved to be or not to be.

use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

use super::*;
use crate::audit::{AuditError, Silent, verify};
use crate::domain::event::{Event, Record};
use crate::domain::name::Actor;
use crate::ledger::Stored;

fn key() -> Key {
    Key::from_random(&[7; 32])
}

fn folder() -> tempfile::TempDir {
    tempfile::tempdir().expect("there can be a temporary directory")
}

fn write(path: &Path, text: &str, mode: u32) {
    fs::write(path, text).expect("the directory is ours");
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("the file is ours");
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).expect("it is there")
}

fn names_in(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).expect("a folder can be read");
    let name = |entry: fs::DirEntry| entry.file_name().into_string().expect("a name is text");
    let mut names: Vec<String> = entries.map(|entry| name(entry.expect("an entry"))).collect();
    names.sort();
    names
}

/// A ledger that grows.
#[derive(Clone)]
struct Lines {
    text: String,
    last: Stored,
    notes: Vec<Checkpoint>,
}

impl Lines {
    fn open(ledger_id: u128) -> Self {
        let ledger_id = LedgerId(uuid::Uuid::from_u128(ledger_id));
        let none = Stored { sequence: Sequence::ZERO, hash: Hash::ZERO, bytes: Box::default() };
        let mut lines = Self { text: String::new(), last: none, notes: Vec::new() };
        lines.append(1, "ledger.opened", &format!(r#"{{"ledger_id":"{ledger_id}"}}"#));
        lines
    }

    /// With a team for each name.
    fn of_teams(ledger_id: u128, teams: &[&str]) -> Self {
        let mut lines = Self::open(ledger_id);
        for team in teams {
            lines.add_team(team);
        }
        lines
    }

    fn add_team(&mut self, team: &str) {
        let next = self.last.sequence.next().0;
        self.append(next, "team.created", &format!(r#"{{"team":"{team}"}}"#));
    }

    /// Its end is lost from here on, and it is said so.
    fn restore(&mut self) {
        let last = self.last.sequence;
        let data = format!(r#"{{"last_sequence":{last},"reason":"restored"}}"#);
        self.append(last.after_restore(self.time()).0, "ledger.restored", &data);
    }

    /// That of the next record: a second after the last one.
    fn time(&self) -> Time {
        let start = Time::from_millis(1_764_431_692_007);
        self.notes.last().map_or(start, |last| last.time.plus_seconds(1))
    }

    fn append(&mut self, sequence: u64, kind: &str, data: &str) {
        let (sequence, time) = (Sequence(sequence), self.time());
        let event = Event::from_data(kind, data).expect("a type").expect("its data");
        let record = Record { sequence, time, actor: Actor::Ledger, event };
        self.last = Stored::new(&self.last.hash, &record);
        let Stored { hash, bytes, .. } = &self.last;
        let _ = writeln!(self.text, "{hash} {}", String::from_utf8_lossy(bytes));
        let ledger_id = match &record.event {
            Event::LedgerOpened(opened) => opened.ledger_id,
            _ => self.notes[0].ledger_id,
        };
        self.notes.push(Checkpoint { ledger_id, sequence, hash: *hash, time });
    }

    /// What a verification with some notes finds: how many records are good, and the fault.
    fn proved(&self, notes: &[&str]) -> (u64, String) {
        let folder = folder();
        let files: Vec<PathBuf> =
            (1..=notes.len()).map(|n| folder.path().join(format!("note-{n}"))).collect();
        for (file, note) in files.iter().zip(notes) {
            fs::write(file, note).expect("the directory is ours");
        }
        let mut proof = Proof::read(&files, &key().public()).expect("they can be read");
        let found = verify::text(self.text.as_bytes(), &mut Silent, |checker| proof.see(checker));
        let found = proof.end(found.expect("a text can be read"));
        let said = found.fault.as_ref().map_or("good".to_owned(), |fault| {
            let place = fault.sequence.map_or("-".to_owned(), |sequence| sequence.to_string());
            format!("{} {place}: {}", fault.kind.as_str(), fault.what)
        });
        assert_eq!(found.is_good, found.fault.is_none());
        let files = format!("{}/", folder.path().display());
        (found.records, said.replace(&files, ""))
    }

    /// The note of a record, by its place from 0.
    fn note(&self, place: usize) -> String {
        key().sign(self.notes[place]).to_string()
    }
}

#[test]
fn a_note_says_what_it_says_for_ever() {
    let note = Lines::of_teams(0xa, &["core"]).note(1);
    insta::assert_snapshot!(note);
    let read: Note = note.parse().expect("it is one");
    assert_eq!(read.to_string(), note);
    assert!(key().public().has_signed(&read));
    assert!(!Key::from_random(&[8; 32]).public().has_signed(&read));
}

#[test]
fn no_bit_of_a_note_can_be_another() {
    let note = Lines::of_teams(0xa, &["core"]).note(1).into_bytes();
    let mut read = 0;
    for at in 0..note.len() * 8 {
        let mut changed = note.clone();
        changed[at / 8] ^= 1 << (at % 8);
        let Ok(text) = String::from_utf8(changed) else { continue };
        if let Ok(changed) = text.parse::<Note>() {
            read += 1;
            assert!(!key().public().has_signed(&changed), "{text}");
        }
    }
    // Else only the form would have been tried.
    assert!(read > 500, "{read}");
}

#[test]
fn a_note_has_one_form() {
    let note = Lines::of_teams(0xa, &["core"]).note(1);
    let of = |from: &str, to: &str| note.replacen(from, to, 1);
    let lines: Vec<&str> = note.lines().collect();
    let mut bad = vec![
        String::new(),
        note.trim_end().to_owned(),
        format!("{note}\n"),
        format!("{note}more\n"),
        format!("\n{note}"),
        note.repeat(2),
        note.replace('\n', "\r\n"),
        of("checkpoint 1", "checkpoint 2"),
        of("sequence 2", "sequence 02"),
        of("sequence 2", "sequence +2"),
        of("sequence 2", "sequence -2"),
        of("sequence 2", "sequence  2"),
        of(".007Z", ".007000Z"),
        of(".007Z", ".007+00:00"),
        of("00000000-0000", "000000000000"),
        of("-00000000000a", "-00000000000A"),
        of("hash ", "hash 00"),
        of("==\n", "=\n"),
    ];
    bad.extend((0..lines.len()).map(|left_out| {
        let rest = lines.iter().enumerate().filter(|(at, _)| *at != left_out);
        rest.map(|(_, line)| format!("{line}\n")).collect()
    }));
    for text in bad {
        assert_eq!(text.parse::<Note>(), Err(InvalidNote), "{text:?}");
    }
}

#[test]
fn a_ledger_that_goes_on_extends_all_its_checkpoints() {
    let mut ledger = Lines::of_teams(0xa, &["b", "c"]);
    ledger.restore();
    ledger.add_team("d");
    let notes: Vec<String> = (0..5).map(|place| ledger.note(place)).collect();
    let mut notes: Vec<&str> = notes.iter().map(String::as_str).collect();
    assert_eq!(ledger.proved(&notes), (5, "good".to_owned()));
    notes.reverse();
    notes.push(notes[1]);
    assert_eq!(ledger.proved(&notes), (5, "good".to_owned()));
    assert_eq!(ledger.proved(&[]), (5, "good".to_owned()));
}

#[test]
fn what_a_ledger_does_not_extend_is_told_with_its_place() {
    let known = Lines::of_teams(0xa, &["b", "c", "d"]);
    let signed = |place| known.note(place);
    let mut findings = String::new();
    let mut tell = |what: &str, ledger: &Lines, notes: &[&str]| {
        let (records, said) = ledger.proved(notes);
        let _ = writeln!(findings, "{what}, {records} good:\n  {said}");
    };
    let shorter = Lines::of_teams(0xa, &["b", "c"]);
    tell("its end is cut off", &shorter, &[&signed(1), &signed(3)]);
    let rewritten = Lines::of_teams(0xa, &["b", "x", "d", "e"]);
    tell("rewritten, the chain computed anew", &rewritten, &[&signed(3), &signed(2), &signed(1)]);
    tell("rewritten after all checkpoints", &rewritten, &[&signed(1)]);
    let mut restored = shorter.clone();
    restored.restore();
    restored.add_team("d");
    tell("lost in a restore", &restored, &[&signed(3)]);
    let other = Lines::of_teams(0xb, &["b", "c", "d"]);
    tell("another ledger", &other, &[&signed(3)]);
    tell("another ledger, that is shorter", &Lines::open(0xb), &[&signed(3)]);
    let foreign = Key::from_random(&[8; 32]).sign(known.notes[3]).to_string();
    tell("signed with another key", &known, &[&signed(1), &foreign]);
    tell("no note", &known, &[&signed(1), "pearing checkpoint 1\n"]);
    tell("something else first", &rewritten, &[&foreign, &signed(3)]);
    let later = Checkpoint { time: known.notes[3].time.plus_seconds(1), ..known.notes[3] };
    tell("another time", &known, &[&key().sign(later).to_string()]);
    let mut faulty = known.clone();
    faulty.text = faulty.text.replacen("\"team\":\"b\"", "\"team\":\"x\"", 1);
    tell("a fault before the checkpoint", &faulty, &[&signed(3), &foreign]);
    tell("a fault after the checkpoint", &faulty, &[&signed(0)]);
    insta::assert_snapshot!(findings);
}

#[test]
fn a_pair_of_keys_is_written_once_and_read_again() {
    let folder = folder();
    let path = folder.path().join("key");
    let public = key().write_pair(&path).expect("it can be written");
    assert_eq!(names_in(folder.path()), ["key", "key.pub"]);
    let mode = |path| fs::metadata(path).expect("it is there").permissions().mode() & 0o777;
    assert_eq!((mode(&path), mode(&public) & 0o077), (0o600, 0o044));
    let note = Key::read(&path).expect("it is one").sign(Lines::open(1).notes[0]);
    assert_eq!(note, key().sign(Lines::open(1).notes[0]));
    assert!(PublicKey::read(&public).expect("it is one").has_signed(&note));
    let (secret, known) = (read(&path), read(&public));
    Key::from_random(&[8; 32]).write_pair(&path).expect_err("the secret one is there");
    assert_eq!((read(&path), read(&public)), (secret, known.clone()));
    fs::remove_file(&path).expect("it is there");
    Key::from_random(&[8; 32]).write_pair(&path).expect_err("the public one is there");
    assert_eq!(names_in(folder.path()), ["key.pub"], "no half of a pair is left");
    assert_eq!(read(&public), known);
}

#[test]
fn a_key_that_others_can_read_and_what_is_no_key_are_refused_without_a_word_of_it() {
    let folder = folder();
    let path = folder.path().join("key");
    let public = key().write_pair(&path).expect("it can be written");
    let pem = read(&path);
    let body = pem.lines().nth(1).expect("it has lines").to_owned();
    let refused = |text: &str, mode: u32| {
        write(&path, text, mode);
        let error = Key::read(&path).expect_err("it is refused").to_string();
        assert!(!error.contains(&body[20..]), "{error}");
        error
    };
    for mode in [0o640, 0o604, 0o620, 0o601] {
        assert!(refused(&pem, mode).contains("chmod 600"), "{mode:o}");
    }
    for bad in ["", &body, &pem.replace("M", "N"), &pem[..60], &read(&public), "\u{0}"] {
        assert!(refused(bad, 0o600).contains("no private Ed25519 key"), "{bad}");
    }
    fs::write(&path, b"\xff\xfe").expect("it is ours");
    Key::read(&path).expect_err("it is no text");
    Key::read(folder.path()).expect_err("it is a folder");
    let said = |error: AuditError| error.to_string();
    write(&path, &pem, 0o600);
    let error = said(PublicKey::read(&path).expect_err("it is the secret one"));
    assert!(error.contains("private") && !error.contains(&body[20..]), "{error}");
    write(&path, "", 0o600);
    assert!(said(PublicKey::read(&path).expect_err("it is none")).contains("no public"));
    assert_eq!(format!("{:?}", key()), "Key(secret)");
}

#[test]
fn what_lies_in_the_data_directory_is_refused_by_whatever_way_it_is_named() {
    let folder = folder();
    let at = |name: &str| folder.path().join(name);
    for made in ["data/sub", "data2", "keys"] {
        fs::create_dir_all(at(made)).expect("the directory is ours");
    }
    write(&at("data/key"), "", 0o600);
    write(&at("keys/key"), "", 0o600);
    symlink(at("data"), at("link")).expect("the directory is ours");
    symlink(at("data/key"), at("keys/link")).expect("the directory is ours");
    symlink(at("keys/key"), at("data/out")).expect("the directory is ours");
    let is_refused = |name: &str, data: &str| match require_outside(&at(name), &at(data)) {
        Ok(()) => false,
        Err(AuditError::Asked(why)) => why.contains("must lie outside the data directory"),
        Err(error) => panic!("{name}: {error}"),
    };
    for data in ["data", "link", "keys/../data"] {
        for name in [
            "data",
            "data/key",
            "data/sub",
            "data/new",
            "data/sub/new",
            "link/key",
            "link/new",
            "keys/link",
            "keys/../data/key",
        ] {
            assert!(is_refused(name, data), "{name}");
        }
        for name in ["keys/key", "keys/new", "data2", "data2/key", "data-new", "data/out"] {
            assert!(!is_refused(name, data), "{name}");
        }
    }
    require_outside(&at("none/new"), &at("data")).expect_err("there is no such folder");
}

#[test]
fn a_folder_keeps_each_note_once_and_never_replaces_one() {
    let (folder, data) = (folder(), folder());
    let notes = Folder::open(folder.path(), data.path()).expect("it is there");
    let ledger = Lines::of_teams(0xa, &["b"]);
    let note = |place: usize| key().sign(ledger.notes[place]);
    write(&folder.path().join("2.checkpoint.new"), "left half written", 0o600);
    for place in [0, 1, 1, 0] {
        notes.keep(&note(place)).expect("it can be written");
    }
    assert_eq!(names_in(folder.path()), ["1.checkpoint", "2.checkpoint"]);
    let path = folder.path().join("2.checkpoint");
    assert_eq!(read(&path), ledger.note(1));
    let other = key().sign(Lines::of_teams(0xa, &["x"]).notes[1]);
    let error = notes.keep(&other).expect_err("another one is there");
    assert!(error.to_string().contains("2.checkpoint: is there, and another"), "{error}");
    assert_eq!(read(&path), ledger.note(1));
    fs::remove_dir_all(folder.path()).expect("it is ours");
    notes.keep(&note(0)).expect_err("the folder is gone");
    let none = Folder::open(folder.path(), data.path()).expect_err("it is gone");
    assert!(none.to_string().contains("is no folder"), "{none}");
    Folder::open(data.path(), data.path()).expect_err("it is the data directory");
    write_note(&data.path().join("note"), &note(0)).expect("it can be written");
    write_note(&data.path().join("note"), &note(1)).expect_err("it is there");
    assert_eq!(read(&data.path().join("note")), ledger.note(0));
}
