//! Small ledgers that pictures are tested with: a hand-over, a deadlock, a restart, a herd.

use super::story::{Ask, Story, lease, wait};

/// Numbers below a bound that look like chance, the same ones for a seed.
fn chances(seed: u64) -> impl FnMut(u64) -> u64 {
    let mut state = seed;
    move |most| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695);
        (state >> 33) % most
    }
}

/// Three users, one after the other: released, expired, and held on.
pub(super) fn hand_over() -> Story {
    let mut story = Story::of(&["ana", "bo", "cy"]);
    let ana =
        story.at(0).acquire("ana", "thread-work.42", Ask { note: Some("first look"), ..lease(30) });
    story.at(4_000).acquire("bo", "thread-work.42", wait(15, 120));
    story.at(9_000).acquire("cy", "thread-work.42", wait(30, 120));
    story.at(10_000).heartbeat("ana", ana);
    story.at(20_000).heartbeat("ana", ana);
    story.at(31_500).release("ana", ana);
    story.at(60_000);
    let (_, cy) = story.holder("thread-work.42").expect("cy holds");
    story.heartbeat("cy", cy);
    story.at(70_000).acquire("ana", "thread-work.42", lease(30));
    story
}

/// Ana waits for bo, who is not let wait for ana; and cy doesn't wait at all.
pub(super) fn deadlock() -> Story {
    let mut story = Story::of(&["ana", "bo", "cy"]);
    let ana = story.at(0).acquire("ana", "x", lease(60));
    story.at(1_000).acquire("bo", "y", lease(60));
    story.at(1_500).acquire("cy", "x", lease(60));
    let waits = story.at(3_000).acquire("ana", "y", wait(60, 60));
    story.at(5_000).acquire("bo", "x", wait(60, 60));
    story.at(12_000).release("ana", ana);
    let (_, bo) = story.at(30_000).holder("y").expect("bo holds");
    story.release("bo", bo);
    story.at(45_000).release("ana", waits);
    story
}

/// A holder that died, a restart, a wait that ran out meanwhile, one that lost access, a gap in the
/// sequences, and a hold that was broken.
pub(super) fn expiry_with_restart() -> Story {
    let mut story = Story::of(&["ana", "bo", "cy", "dee"]);
    let ana = story.at(0).acquire("ana", "deploy", lease(60));
    story.at(20_000).heartbeat("ana", ana);
    story.at(25_000).acquire("bo", "deploy", wait(20, 60));
    story.at(26_000).acquire("cy", "deploy", wait(20, 300));
    story.at(27_000).acquire("dee", "deploy", wait(20, 300));
    story.restart(88_000);
    story.at(99_000).remove("dee");
    story.at(105_000);
    story.restore("torn-tail-dropped");
    story.at(110_000).break_lock("deploy", "it hangs");
    story.acquire("bo", "deploy", lease(20));
    story.at(140_000);
    story
}

/// Two tickets of one hold, one that may not join it, and two that are promoted together.
pub(super) fn reentrancy() -> Story {
    let mut story = Story::of(&["ana", "bo"]);
    let first = story.at(0).acquire("ana", "build", lease(60));
    let second = story.at(5_000).acquire("ana", "build", lease(60));
    story.at(8_000).acquire("ana", "build", Ask { reentrant: false, ..lease(60) });
    let bo = story.at(9_000).acquire("bo", "build", wait(30, 60));
    story.at(10_000).acquire("bo", "build", wait(30, 60));
    story.at(15_000).release("ana", first);
    story.at(25_000).release("ana", second);
    story.at(35_000).release("bo", bo);
    story.at(70_000);
    story
}

pub(super) const NAMES: [&str; 8] =
    ["ana", "bo", "claude", "codex", "dee", "eve.builder", "fay", "gil"];

/// Many tickets of some users at one lock, one after the other and all at once.
pub(super) fn many(count: usize, users: &[&str]) -> Story {
    let mut story = Story::of(users);
    let mut chance = chances(12_345);
    let mut time = 0;
    for _ in 0..count {
        time += i64::try_from(chance(9_000)).expect("it is small");
        let user = users[chance(users.len() as u64) as usize];
        story.at(time);
        match chance(10) {
            0 => {
                story.acquire(user, "build", lease(5));
            }
            1..=3 => {
                story.acquire(user, "build", wait(8, 12));
            }
            _ => {
                story.acquire(user, "build", wait(20, 240));
            }
        }
        match story.holder("build") {
            Some((owner, ticket)) if chance(10) < 3 => story.release(&owner, ticket),
            Some((owner, ticket)) if chance(10) < 5 => story.heartbeat(&owner, ticket),
            _ => {}
        }
    }
    story.at(time + 60_000);
    story
}

/// A herd: everybody wants the lock at once.
pub(super) fn herd(count: usize) -> Story {
    let users: Vec<String> = (0..count).map(|n| format!("worker-{n:03}")).collect();
    let users: Vec<&str> = users.iter().map(String::as_str).collect();
    let mut story = Story::of(&users);
    for (at, user) in (0..).zip(&users) {
        story.at(at * 5).acquire(user, "migration", wait(30, 3600));
    }
    let mut time = 2_000;
    while let Some((owner, ticket)) = story.at(time).holder("migration") {
        story.release(&owner, ticket);
        time += 700;
    }
    story
}

/// The same work on two days.
pub(super) fn two_bursts() -> Story {
    let mut story = Story::of(&["ana", "bo", "cy"]);
    for start in [0, 86_400_000] {
        for round in 0..4 {
            let at = start + round * 20_000;
            let ana = story.at(at).acquire("ana", "nightly", lease(30));
            story.at(at + 2_000).acquire("bo", "nightly", wait(5, 60));
            story.at(at + 8_000).release("ana", ana);
            story.at(at + 14_000).acquire("cy", "nightly", lease(5));
        }
    }
    story.at(86_600_000);
    story
}

/// Eight users and five locks.
pub(super) fn five_locks() -> Story {
    let mut story = Story::of(&NAMES);
    let locks = ["build.7", "deploy", "schema-migration", "thread-work.42", "thread-work.43"];
    let mut chance = chances(7);
    for step in 0..60 {
        let (user, lock) = (NAMES[chance(8) as usize], locks[chance(5) as usize]);
        story.at(step * 3_000);
        match chance(3) {
            0 => {
                story.acquire(user, lock, lease(10 + chance(20)));
            }
            _ => {
                story.acquire(user, lock, wait(10 + chance(20), 60));
            }
        }
        if let Some((owner, ticket)) = story.holder(locks[chance(5) as usize]) {
            story.heartbeat(&owner, ticket);
        }
    }
    story.at(240_000);
    story
}
