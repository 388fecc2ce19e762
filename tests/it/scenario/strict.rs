//! That a scenario can fail: the grammar is strict, and so is the comparison.

use super::play_text;

const GIVEN: &str = "given users ana bo\ngiven team t\ngiven members t write ana bo\n\
                     given locks in teams/t\nscenario: s\n";

/// Plays a story over the usual givens.
fn play(story: &str) -> Result<usize, String> {
    play_text("sample.txt", &format!("{GIVEN}{story}\n"))
}

/// Plays a story that must fail, and say where and why.
fn fails(story: &str, line: usize, why: &str) {
    let failure = play(story).expect_err(story);
    let place = format!("sample.txt:{}: ", 5 + line);
    assert!(failure.contains(&place), "{failure:?} should be at {place}");
    assert!(failure.contains(why), "{failure:?} should say {why:?}");
}

#[test]
fn a_story_that_is_true_passes() {
    let story = "at 0s ana acquires build as T1 -> held ana T1 fence F depth 1 expires at 60s\n\
                 at 1s bo acquires build wait 9 as T2\n\
                 -> waiting T2 position 1 until 10s holder ana";
    assert_eq!(play(story), Ok(1));
}

#[test]
fn what_nobody_asked_for_is_an_error() {
    fails("at 0s ana acquires build blurb -> held", 1, "unknown word \"blurb\"");
    fails("at 0s ana grabs build -> held", 1, "unknown verb \"grabs\"");
    fails("at 0s ana acquires build -> holds", 1, "unknown word \"holds\"");
    fails("at 0s ana acquires build", 1, "without ->");
    fails("at 0s ana acquires build ->", 1, "nothing stands beside");
    fails("at 0s ana acquires build -> held ;", 1, "nothing stands beside");
    fails("at 0s eve acquires build -> held", 1, "no token is called this: \"eve\"");
    fails("at 0 ana acquires build -> held", 1, "no time");
    fails("at 0.1234s ana acquires build -> held", 1, "no time");
    fails("at 0s ana acquires build lease x -> held", 1, "no number");
    fails("at 0s ana releases T1 -> released", 1, "no ticket is called \"T1\"");
    fails("lock build -> empty", 1, "\"held\" should stand here");
    fails("look at 0s -> free", 1, "begins no line");
    fails("thread 1", 1, "without ->");
    fails("thread 1 -> absent now", 1, "unknown word \"now\"");
    fails("thread 1 -> gone", 1, "no thread is ever \"gone\"");
    fails("thread one -> absent", 1, "no number");
    fails("activity of ana -> \"a\" holds", 1, "unknown word \"holds\"");
    fails("role of ana in users/ana -> admin now", 1, "unknown word \"now\"");
    fails("at 0s ana says a -> activity.updated", 1, "stands in quotes");
    fails("at 0s ana clears locks -> nothing", 1, "\"activity\" should stand here");
    fails("at 0s ana creates thread \"t\" nummer 1 -> nothing", 1, "unknown word \"nummer\"");
    fails("at 0s ana replies to 1 below R1 -> nothing", 1, "unknown word \"below\"");
    fails("at 0s ana replies to 1 to R1 -> nothing", 1, "no reply is called \"R1\"");
    fails("at 0s ana closes 1 under build -> nothing", 1, "fence is missing");
    fails("at 0s ana closes 1 under build fence F -> nothing", 1, "no fence token is called");
    fails("and ana acquires build -> held", 1, "none above");
    fails("at 1s settle -> nothing\nat 0s settle -> nothing", 2, "never goes back");
    fails("at 1s settle -> nothing\ngiven users eve", 2, "before the story");
    fails("at 0s ana acquires build note \"a -> held", 1, "doesn't end on its line");
    fails("at 0s ana acquires a as T -> held\nat 0s ana acquires b as T -> held", 2, "called");
}

#[test]
fn a_story_about_threads_and_activity_that_is_not_true_fails() {
    const BEGUN: &str = "given repo teams/t/r\ngiven locks in teams/t/r\n\
                         at 0s ana creates thread \"t\" uuid u -> thread.created number 1\n\
                         at 1s ana replies to 1 as R1 -> thread.replied R1 level 1\n\
                         at 2s ana replies to 1 to R1 as R2 -> thread.replied R2 parent R1";
    let fails = |story: &str, why: &str| fails(&format!("{BEGUN}\n{story}"), 6, why);
    fails("thread 1 -> closed", "the thread is open");
    fails("thread 2 -> open", "there is no such thread");
    fails("thread 1 -> absent", "there is such a thread");
    fails("thread 1 -> open replies 1", "replies_count should be 1, not 2");
    fails("thread 1 -> open title \"u\"", "title should be");
    fails("thread 1 -> open updated at 3s", "updated_at should be");
    fails("thread 1 -> open tree R1 1", "the tree");
    fails("thread 1 -> open tree R1 1, R2 1", "the tree");
    fails("thread 1 -> open tree R2 2, R1 1", "the tree");
    fails("thread 1 before R1 -> open replies 1", "replies_count should be 1, not 0");
    fails("threads in teams/t/r -> 1, 2", "the threads");
    fails("activity of ana -> \"a\"", "ana says nothing");
    fails("activities seen by ana -> ana", "the activities");
    fails("events seen by ana -> none", "the events");
    fails("role of ana in teams/t -> admin", "the role");
    fails("at 3s ana closes 1 -> thread.reopened", "thread.reopened was expected");
    fails("at 3s ana closes 1 -> thread.closed bo", "isn't about \"bo\"");
    fails("at 3s ana closes 1 -> thread.closed number 2", "number should be 2, not 1");
    fails("at 3s ana reopens 1 -> replay thread 1 open", "answered otherwise");
    fails("at 3s ana reopens 1 -> nothing", "this doesn't come of such a line");
    fails("at 3s ana creates thread \"t\" uuid u -> still thread 1 open", "answered otherwise");
    fails("at 3s ana creates thread \"t\" uuid u -> replay thread 1 closed", "is open");
    fails("at 3s ana creates thread \"t\" uuid u -> replay activity none", "answered otherwise");
    fails("at 3s bo replies to 1 to R1 -> thread.replied parent R2", "doesn't answer \"R2\"");
    fails("at 3s bo replies to 1 -> thread.replied link pull:1", "has no link");
    fails("at 3s bo replies to 1 -> thread.replied fence 1", "the fence token isn't");
    fails("at 3s bo says \"a\" -> activity.updated activity \"b\"", "activity should be");
    fails("at 3s bo clears activity -> replay activity none", "answered otherwise");
    fails("at 3s bo says \"a\" -> still activity \"a\"", "answered otherwise");
    fails("at 3s bo replies to 1 -> refused stale-fence", "not refused");
}

#[test]
fn a_story_that_is_not_true_fails() {
    const HELD: &str = "at 0s ana acquires build as T1 -> held fence F";
    fails("at 0s ana acquires build -> contended", 1, "lock.contended was expected");
    fails("at 0s ana acquires build -> held bo", 1, "isn't about \"bo\"");
    fails("at 0s ana acquires build -> held depth 2", 1, "depth should be 2, not 1");
    fails("at 0s ana acquires build -> held expires at 61s", 1, "lease_expires_at should be");
    fails("at 0s ana acquires build -> held fence 1", 1, "the fence token isn't");
    fails("at 0s ana acquires build -> held; promoted bo", 1, "lock.promoted didn't happen");
    fails("at 0s ana acquires build -> refused forbidden", 1, "not refused");
    fails("at 0s ana acquires build lease 4 -> held", 1, "lease_seconds is invalid");
    fails("lock build -> held by ana", 1, "the lock is free");
    fails(&format!("{HELD}\nlock build -> free"), 2, "ana holds the lock");
    fails(&format!("{HELD}\nlock build -> held by ana queue bo"), 2, "the queue is []");
    fails(&format!("{HELD}\nat 60s settle -> nothing"), 2, "this happened too");
    fails(&format!("{HELD}\nat 60s bo acquires build -> held"), 2, "this happened too");
    fails(&format!("{HELD}\nat 1s ana releases -> nothing"), 2, "Ticket");
    fails(&format!("{HELD}\nat 1s ana releases -> replay released"), 2, "carried out");
    fails(&format!("{HELD}\nat 1s bo releases T1 -> refused not-found"), 2, "Forbidden");
    fails(&format!("{HELD}\nticket T1 -> waiting"), 2, "the ticket is held");
    fails(&format!("{HELD}\nticket T1 -> held fence G, G > F"), 2, "isn't about");
    fails(&format!("{HELD}\nat 1s ana acquires build -> held fence G, G > F"), 2, "isn't greater");
    fails(&format!("{HELD}\nat 1s restart -> nothing"), 2, "ledger.recovered");
    fails(&format!("{HELD}\nat 60s settle most 1 -> expired ana; more due"), 2, "more due: false");
}
