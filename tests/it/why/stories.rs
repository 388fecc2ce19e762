//! A story for each way in which a ticket can go. Each stands in a file, as a person reads it.

use pearing::audit::why::why;
use pearing::ledger::pending::Gap;
use pearing::service::recover;

use crate::scenario::{Told, told};

/// Everyone, and where the locks are.
const GIVEN: &str = "
given admins root
given users ana bo cy dee
given team platform
given members platform write ana bo cy dee
given repo teams/platform/website
given locks in teams/platform/website
scenario: one
";

fn played(story: &str) -> Told {
    told(&format!("{GIVEN}{story}"))
}

/// The story of the ticket that a scenario calls `ticket`, as text.
fn text_of(told: &Told, ticket: &str) -> String {
    let told = why(&told.ledger, &told.state, told.tickets[ticket]).expect("it can be read");
    told.expect("there is such a ticket").to_string()
}

fn snapshot(name: &str, text: &str) {
    insta::with_settings!({ prepend_module_to_snapshot => false, omit_expression => true }, {
        insta::assert_snapshot!(name, text);
    });
}

/// Compares the story of ticket `T` with the one that stands in a file.
fn check(name: &str, story: &str) {
    let lines: Vec<&str> = story.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let text = text_of(&played(story), "T");
    insta::with_settings!({
        prepend_module_to_snapshot => false,
        omit_expression => true,
        description => lines.join("\n"),
    }, {
        insta::assert_snapshot!(name, text);
    });
}

#[test]
fn a_ticket_that_was_released() {
    check(
        "released",
        "
        at 0s   ana  acquires build lease 60 note \"nightly build\" as T -> held
        at 20s  ana  heartbeats T            -> heartbeat
        at 39.5s ana heartbeats T            -> heartbeat
        at 41s  ana  releases T              -> released
        ",
    );
}

#[test]
fn a_ticket_that_waited_and_was_released() {
    check(
        "released_after_a_wait",
        "
        at 0s   ana  acquires build lease 60 note \"nightly build\" as T1 -> held
        at 1.25s bo  acquires build lease 30 wait 90 as T -> waiting position 1
        at 2s   cy   acquires build wait 90 as T3         -> waiting position 2
        at 12s  ana  releases T1             -> released; promoted bo T
        at 22s  bo   heartbeats T lease 5    -> heartbeat
        at 24.007s bo releases T             -> released; promoted cy T3
        ",
    );
}

#[test]
fn a_ticket_that_was_promoted_after_several_others() {
    check(
        "promoted_after_several_others",
        "
        at 0s   ana  acquires build lease 10 as T1 -> held
        at 1s   bo   acquires build lease 20 wait 90 as T2 -> waiting position 1
        at 2s   cy   acquires build wait 90 as T3 -> waiting position 2
        at 3s   root acquires build wait 5 as T4 -> waiting position 3
        at 4s   dee  acquires build lease 30 wait 90 note \"deploy\" as T -> waiting position 4
        at 8s   settle                       -> timed_out root T4
        at 10.003s settle                    -> expired ana T1; promoted bo T2
        at 11s  cy   releases T3             -> cancelled cy T3
        at 25s  bo   releases T2             -> released; promoted dee T
        at 30s  dee  heartbeats T            -> heartbeat
        ",
    );
}

#[test]
fn a_ticket_that_expired_without_a_heartbeat() {
    check(
        "expired",
        "
        at 0s   ana  acquires build lease 60 as T -> held
        at 1s   bo   acquires build wait 90 as T2 -> waiting position 1
        at 60.004s settle                    -> expired ana T; promoted bo T2
        ",
    );
}

#[test]
fn a_ticket_that_expired_after_a_heartbeat() {
    check(
        "expired_after_a_heartbeat",
        "
        at 0s   ana  acquires build lease 60 as T -> held
        at 20s  ana  heartbeats T            -> heartbeat
        at 40s  ana  heartbeats T            -> heartbeat
        at 41s  ana  heartbeats T lease 5    -> heartbeat
        at 100s settle                       -> expired ana T
        ",
    );
}

#[test]
fn a_ticket_that_expired_after_the_grace_of_a_restart() {
    check(
        "expired_after_a_grace",
        "
        at 0s   ana  acquires build lease 60 as T -> held
        at 50s  ana  heartbeats T            -> heartbeat
        at 300s restart                      -> recovered
        at 305s restart                      -> recovered
        at 310.02s settle                    -> expired ana T
        ",
    );
}

#[test]
fn a_ticket_that_was_broken() {
    check(
        "broken",
        "
        at 0s   ana  acquires build lease 300 note \"nightly build\" as T -> held fence F
        at 5s   ana  acquires build lease 300 as T2 -> held depth 2
        at 6s   bo   acquires build wait 300 as T3 -> waiting position 1
        at 90s  root breaks build fence F reason \"its runner is gone\"
                -> broken ana T; broken ana T2; promoted bo T3
        ",
    );
}

#[test]
fn a_ticket_whose_owner_gave_up() {
    check(
        "cancelled",
        "
        at 0s   ana  acquires build lease 300 as T1 -> held
        at 1s   bo   acquires build wait 300 as T2 -> waiting position 1
        at 2s   cy   acquires build wait 300 as T -> waiting position 2
        at 14.5s cy  releases T              -> cancelled cy T
        ",
    );
}

#[test]
fn a_ticket_whose_access_was_revoked() {
    check(
        "cancelled_by_lost_access",
        "
        at 0s   ana  acquires build lease 300 as T1 -> held
        at 0s   ana  acquires other lease 300 as T2 -> held
        at 1s   bo   acquires other wait 300 as T3 -> waiting position 1
        at 1s   bo   acquires build wait 300 as T -> waiting position 1
        at 9s   root removes bo from platform
                -> team.member_removed bo
                -> cancelled bo T3 reason \"access-revoked\"
                -> cancelled bo T reason \"access-revoked\"
        ",
    );
}

#[test]
fn a_ticket_whose_user_was_disabled() {
    check(
        "cancelled_by_a_disabled_user",
        "
        at 0s   ana  acquires build lease 300 as T1 -> held
        at 1s   bo   acquires build wait 300 as T -> waiting position 1
        at 9s   root disables bo
                -> user.disabled bo; cancelled bo T reason \"user-disabled\"
        ",
    );
}

#[test]
fn a_ticket_whose_agent_was_disabled_with_its_person() {
    let story = "
        at 0s   ana  acquires build lease 300 as T1 -> held
        at 1s   bo.helper acquires build wait 300 as T -> waiting position 1
        at 9s   root adds bo to platform as read
                -> team.member_added bo; cancelled bo.helper T reason \"access-revoked\"
        ";
    let given = GIVEN.replace("scenario: one", "given agents bo.helper\nscenario: one");
    let text = text_of(&told(&format!("{given}{story}")), "T");
    snapshot("cancelled_with_its_person", &text);
}

#[test]
fn a_ticket_that_timed_out() {
    check(
        "timed_out",
        "
        at 0s   ana  acquires build lease 20 as T1 -> held
        at 1s   bo   acquires build lease 60 wait 90 as T2 -> waiting position 1
        at 2s   cy   acquires build wait 90 as T3 -> waiting position 2
        at 3s   dee  acquires build wait 30 as T -> waiting position 3
        at 20s  settle                       -> expired ana T1; promoted bo T2
        at 33.001s settle                    -> timed_out dee T
        ",
    );
}

#[test]
fn a_ticket_that_was_contended() {
    check(
        "contended",
        "
        at 0s   ana  acquires build lease 20 note \"nightly build\" as T1 -> held
        at 1s   bo   acquires build as T     -> contended holder ana
        ",
    );
}

#[test]
fn a_ticket_that_contended_with_a_hold_of_its_own() {
    check(
        "contended_with_its_own_hold",
        "
        at 0s   ana  acquires build lease 60 wait 60 note \"nightly build\" as T1 -> held
        at 1s   ana  acquires build wait 60 not-reentrant as T -> contended holder ana
        ",
    );
}

#[test]
fn a_ticket_that_contended_with_a_place_of_its_own() {
    check(
        "contended_with_its_own_place",
        "
        at 0s   ana  acquires build lease 60 as T1 -> held
        at 1s   bo   acquires build wait 60 as T2 -> waiting position 1
        at 2s   bo   acquires build wait 60 not-reentrant as T -> contended holder ana
        ",
    );
}

#[test]
fn a_ticket_that_was_rejected_as_a_deadlock() {
    check(
        "deadlock_rejected",
        "
        at 0s   ana  acquires build as T1    -> held
        at 0s   bo   acquires deploy as T2   -> held
        at 0s   cy   acquires wiki in teams/platform as T3 -> held
        at 1s   ana  acquires deploy wait 30 as T4 -> waiting
        at 2s   bo   acquires wiki in teams/platform wait 30 as T5 -> waiting
        at 3s   cy   acquires build wait 30 as T -> deadlock_rejected cycle T T4 T5
        ",
    );
}

#[test]
fn a_ticket_that_is_held() {
    check(
        "held",
        "
        at 0s   ana  acquires build lease 60 as T -> held
        at 20s  restart                      -> recovered
        at 30s  bo   acquires build as T2    -> contended
        ",
    );
}

#[test]
fn a_ticket_that_waits() {
    check(
        "waiting",
        "
        at 0s   ana  acquires build lease 60 as T1 -> held
        at 1s   bo   acquires build wait 600 as T2 -> waiting position 1
        at 2s   cy   acquires build wait 600 as T3 -> waiting position 2
        at 3s   dee  acquires build wait 600 as T -> waiting position 3
        at 30s  ana  releases T1             -> released; promoted bo T2
        at 40s  restart                      -> recovered
        ",
    );
}

#[test]
fn a_ticket_that_joined_a_hold() {
    check(
        "joined",
        "
        at 0s   ana  acquires build lease 60 note \"nightly build\" as T1 -> held fence F
        at 5s   bo   acquires build wait 60 as T2 -> waiting
        at 10s  ana  acquires build lease 30 note \"its tests\" as T -> held fence F depth 2
        at 22s  ana  releases T              -> released depth 1
        ",
    );
}

#[test]
fn a_ticket_that_shared_a_place_and_was_promoted_with_another() {
    check(
        "shared_a_place",
        "
        at 0s   ana  acquires build lease 60 as T1 -> held
        at 1s   bo   acquires build wait 60 as T2 -> waiting position 1
        at 2s   cy   acquires build wait 60 as T3 -> waiting position 2
        at 3s   cy   acquires build wait 20 as T4 -> waiting position 2
        at 4s   dee  acquires build wait 60 as T5 -> waiting position 3
        at 5s   cy   acquires build wait 60 as T -> waiting position 2
        at 10s  bo   acquires build wait 600 as T7 -> waiting position 1
        at 11s  bo   releases T2             -> cancelled
        at 23s  settle                       -> timed_out cy T4
        at 24s  bo   releases T7             -> cancelled
        at 30s  ana  releases T1
                -> released; promoted cy T3 fence F; promoted cy T fence F
        at 31s  cy   releases T3             -> released depth 1
        ",
    );
}

#[test]
fn a_ticket_that_was_held_over_midnight() {
    check(
        "held_over_midnight",
        "
        at 86390s ana acquires build lease 30 as T -> held
        at 86410s ana heartbeats T            -> heartbeat
        at 86420s ana releases T              -> released
        ",
    );
}

#[test]
fn a_ticket_that_was_held_over_a_gap_in_the_ledger() {
    let mut told = played(
        "
        at 0s   ana  acquires build lease 60 as T -> held
        at 20s  bo   acquires build wait 600 as T2 -> waiting
        ",
    );
    let now = told.state.time().plus_seconds(100);
    recover::resume(&mut told.state, &told.ledger, Some(Gap::TornTailDropped), now)
        .expect("the memory doesn't fail");
    snapshot("held_over_a_gap", &text_of(&told, "T"));
    snapshot("waiting_over_a_gap", &text_of(&told, "T2"));
}

#[test]
fn a_cycle_of_many_is_drawn_in_part() {
    let users: Vec<String> = (1..=30).map(|n| format!("u{n:02}")).collect();
    let mut story = "given team platform\ngiven locks in teams/platform\n".to_owned();
    for user in &users {
        story += &format!("given users {user}\ngiven members platform write {user}\n");
    }
    story += "scenario: one\n";
    for user in &users {
        story += &format!("at 0s {user} acquires of.{user} -> held\n");
    }
    for two in users.windows(2) {
        story += &format!("at 1s {} acquires of.{} wait 60 -> waiting\n", two[0], two[1]);
    }
    story += "at 2s u30 acquires of.u01 wait 60 as T -> deadlock_rejected\n";
    snapshot("cycle_of_many", &text_of(&told(&story), "T"));
}
