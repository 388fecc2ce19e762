//! Every role with every verb on every kind of object: who may do it, who is told that it may
//! not, and for whom the object looks as one that there isn't.

use super::play_text;

/// Team `t` has the repository `teams/t/r`. There `hal`, a writer, holds `build`, and began
/// thread 1. Everybody else is called as what it may do there.
const GIVEN: &str = "\
given admins root
given users stranger reader writer owner off hal dee
given team t
given repo teams/t/r
given members t write hal dee writer off
given members t read reader
given members t admin owner
given grant dee read in teams/t/r
given agents writer.a owner.a stranger.a
given locks in teams/t/r
";

const BEGINNING: &str = "\
at 0s hal acquires build as T1 -> held fence F
at 0s hal creates thread \"t\" -> thread.created number 1
at 0s hal replies to 1 as R1 -> thread.replied
at 0s root disables off -> user.disabled
";

/// Whoever acts, from the least to the most.
const WHO: [&str; 9] =
    ["stranger", "stranger.a", "off", "reader", "writer", "writer.a", "owner.a", "owner", "root"];

/// What comes of a verb: for whoever may do it, and who that is.
struct Row {
    does: &'static str,
    /// The same about something that isn't there, which a stranger can't tell apart.
    about_nothing: &'static str,
    then: &'static str,
    may: &'static [&'static str],
}

const WRITERS: &[&str] = &["writer", "writer.a", "owner.a", "owner", "root"];
const OWNERS: &[&str] = &["owner", "root"];

const ROWS: [Row; 16] = [
    Row {
        does: "acquires other",
        about_nothing: "acquires other in teams/t/none",
        then: "held",
        may: WRITERS,
    },
    Row {
        does: "acquires build wait 60",
        about_nothing: "acquires build wait 60 in teams/none/r",
        then: "waiting",
        may: WRITERS,
    },
    Row { does: "heartbeats T1", about_nothing: "heartbeats unknown at build", then: "", may: &[] },
    Row { does: "releases T1", about_nothing: "releases unknown at build", then: "", may: &[] },
    Row {
        does: "breaks build fence F reason \"stuck\"",
        about_nothing: "breaks build in teams/t/none fence F reason \"stuck\"",
        then: "broken hal T1",
        may: OWNERS,
    },
    Row {
        does: "creates thread \"u\"",
        about_nothing: "creates thread \"u\" in teams/t/none",
        then: "thread.created number 2",
        may: WRITERS,
    },
    Row {
        does: "creates thread \"u\" number 7",
        about_nothing: "creates thread \"u\" number 7 in teams/none/r",
        then: "thread.created number 7 mirror",
        may: WRITERS,
    },
    Row {
        does: "replies to 1",
        about_nothing: "replies to 99",
        then: "thread.replied",
        may: WRITERS,
    },
    Row {
        does: "replies to 1 to R1",
        about_nothing: "replies to 1 to unknown",
        then: "thread.replied parent R1",
        may: WRITERS,
    },
    Row {
        does: "closes 1",
        about_nothing: "closes 99",
        then: "thread.closed number 1",
        may: WRITERS,
    },
    Row {
        does: "reopens 1",
        about_nothing: "reopens 1 in teams/t/none",
        then: "still thread 1 open",
        may: WRITERS,
    },
    Row {
        does: "grants dee write in teams/t/r",
        about_nothing: "grants dee write in teams/t/none",
        then: "access.granted dee",
        may: OWNERS,
    },
    Row {
        does: "revokes dee in teams/t/r",
        about_nothing: "revokes dee in teams/t/none",
        then: "access.revoked dee",
        may: OWNERS,
    },
    Row {
        does: "creates repo teams/t/s",
        about_nothing: "creates repo teams/none/s",
        then: "repo.created teams/t/s",
        may: OWNERS,
    },
    Row {
        does: "adds dee to t as read",
        about_nothing: "adds dee to none as read",
        then: "team.member_added dee",
        may: OWNERS,
    },
    Row {
        does: "removes dee from t",
        about_nothing: "removes dee from none",
        then: "team.member_removed dee",
        may: OWNERS,
    },
];

/// What comes of it for `who`.
fn outcome(row: &Row, who: &str) -> String {
    match who {
        _ if row.may.contains(&who) => row.then.to_owned(),
        "stranger" | "stranger.a" => "refused not-found".to_owned(),
        _ => "refused forbidden".to_owned(),
    }
}

#[test]
fn every_role_with_every_verb_gets_its_answer() {
    for row in &ROWS {
        for who in WHO {
            let (does, then) = (row.does, outcome(row, who));
            let story = format!("{GIVEN}scenario: s\n{BEGINNING}at 1s {who} {does} -> {then}\n");
            if let Err(why) = play_text("matrix", &story) {
                panic!("{who} {does}: {why}");
            }
        }
    }
}

#[test]
fn what_a_stranger_may_not_see_looks_as_if_it_were_not_there() {
    for row in &ROWS {
        for who in ["stranger", "stranger.a"] {
            for does in [row.does, row.about_nothing] {
                let line = format!("at 1s {who} {does} -> refused not-found\n");
                let story = format!("{GIVEN}scenario: s\n{BEGINNING}{line}");
                if let Err(why) = play_text("matrix", &story) {
                    panic!("{who} {does}: {why}");
                }
            }
        }
    }
}

#[test]
fn a_token_that_was_revoked_gets_the_same_answer_to_every_verb() {
    for row in &ROWS {
        for does in [row.does, row.about_nothing] {
            let story = format!(
                "{GIVEN}given token old of owner\nscenario: s\n{BEGINNING}\
                 at 0s root revokes token old -> token.revoked\n\
                 at 1s old {does} -> refused unauthenticated\n"
            );
            if let Err(why) = play_text("matrix", &story) {
                panic!("{does}: {why}");
            }
        }
    }
}
