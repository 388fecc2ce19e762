//! Responders that are killed, at any moment.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::Write as _;
use std::time::Duration;

use pearing::random;
use rustix::process::{Pid, Signal, test_kill_process};
use serde_json::Value;

use super::{Responder, Stage};
use crate::support::{Relay, Server, eventually};

/// So many events of threads.
const EVENTS: usize = 200;
const THREADS: usize = 10;
/// After so many kills they are left in peace, to come to an end.
const KILLS: usize = 30;
const WHO: [&str; 2] = ["claude", "codex"];

/// What the commands do: say that they begin, work for a moment, and say that they end.
const SCRIPT: &str = "\
    of=\"$PEARING_EVENT_SEQUENCE $WHO $PEARING_FENCE_TOKEN $$\"; \
    echo \"begin $of\" >> $LOG; cat > /dev/null; sleep 0.06; echo \"end $of\" >> $LOG";

/// Random numbers that are the same for the same seed (xorshift).
struct Chance(u64);

impl Chance {
    fn below(&mut self, most: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % most
    }
}

/// One run of a command, as the log tells it.
#[derive(Debug)]
struct Run {
    who: String,
    fence: u64,
    has_ended: bool,
    /// Whether its responder was killed after it had begun.
    was_killed: bool,
}

/// The runs of each event. Fails if two were under way at the same time, or if an event was run
/// again though nobody was killed.
fn runs(lines: &[String]) -> BTreeMap<u64, Vec<Run>> {
    let mut events: BTreeMap<u64, Vec<Run>> = BTreeMap::new();
    for line in lines {
        let words: Vec<&str> = line.split(' ').collect();
        if let ["kill", who] = words[..] {
            let all = events.values_mut().flatten().filter(|run| run.who == who);
            all.for_each(|run| run.was_killed = true);
            continue;
        }
        let [what, event, who, fence, _pid] = words[..] else { panic!("{line}") };
        let runs = events.entry(event.parse().expect("a sequence")).or_default();
        let fence = fence.parse().expect("a fence token");
        match what {
            "begin" => {
                if let Some(last) = runs.last() {
                    assert!(last.was_killed, "{line}: {last:?} was not taken over:\n{lines:#?}");
                    assert!(last.fence < fence, "{line}: {last:?} has a newer fence");
                }
                let who = who.to_owned();
                runs.push(Run { who, fence, has_ended: false, was_killed: false });
            }
            "end" => {
                let last = runs.last_mut().expect("it began");
                let is_it = last.fence == fence && last.who == who && !last.has_ended;
                assert!(is_it && !last.was_killed, "{line}: {last:?}");
                last.has_ended = true;
            }
            _ => panic!("{line}"),
        }
    }
    events
}

#[tokio::test]
async fn two_responders_that_are_killed_now_and_then_finish_each_event_one_at_a_time() {
    let mut seed = [0; 8];
    random::fill(&mut seed);
    let seed = u64::from_le_bytes(seed) | 1;
    println!("seed {seed}");
    let mut chance = Chance(seed);
    let server = Server::start();
    let stage = Stage::new(&server);
    let mut threads = Vec::new();
    let mut expected = BTreeSet::new();
    for number in 0..EVENTS {
        if number < THREADS {
            let (thread, sequence) = stage.thread().await;
            threads.push(thread);
            expected.insert(sequence);
        } else {
            expected.insert(stage.reply(threads[number % THREADS]).await);
        }
    }
    let said = |who: &str| server.home().join(format!("{who}.said"));
    let start = |who: &str| {
        Responder::start(&mut stage.respond(who, "--lease-seconds 30", SCRIPT), &said(who))
    };
    let mut responders = WHO.map(start);
    let mut kills = 0;
    let done = async || {
        let marks = stage.marks().await;
        expected.iter().all(|sequence| marks.iter().any(|(of, _)| of == sequence))
    };
    while kills < KILLS && !done().await {
        tokio::time::sleep(Duration::from_millis(50 + chance.below(800))).await;
        let which = usize::try_from(chance.below(2)).expect("small");
        responders[which].kill().await;
        // Its command is gone with it: what it wrote is above this line.
        let mut log = File::options().create(true).append(true).open(&stage.log).expect("ours");
        log.write_all(format!("kill {}\n", WHO[which]).as_bytes()).expect("the disk has room");
        kills += 1;
        tokio::time::sleep(Duration::from_millis(chance.below(400))).await;
        responders[which] = start(WHO[which]);
    }
    let mut finished = 0;
    while !done().await {
        // Bounded for each step, and not for all of them together.
        finished = eventually("a further event to be finished", async || {
            let marks = stage.marks().await.len();
            (marks > finished).then_some(marks)
        })
        .await;
    }
    for responder in &mut responders {
        responder.signal(Signal::TERM);
        assert_eq!(responder.code().await, Some(128 + 15));
    }
    let runs = runs(&stage.lines());
    let marks = stage.marks().await;
    let mut again = 0;
    for sequence in &expected {
        let runs = runs.get(sequence).unwrap_or_else(|| panic!("{sequence} was never run"));
        let last = runs.last().expect("a run");
        assert!(last.has_ended, "{sequence}: {runs:?}");
        again += runs.iter().filter(|run| run.has_ended).count() - 1;
        let [mark] = &marks.iter().filter(|(of, _)| of == sequence).collect::<Vec<_>>()[..] else {
            panic!("{sequence} is marked more than once")
        };
        // The newest run is the one that was marked: nothing was run after it.
        assert_eq!(mark.1["data"]["fence"]["fence_token"], last.fence, "{sequence}: {runs:?}");
        assert_eq!(mark.1["actor"], last.who.as_str());
    }
    let taken_over: usize = runs.values().map(|runs| runs.len() - 1).sum();
    println!("{kills} kills, {taken_over} runs taken over, {again} of them after they had ended");
    assert!(kills > 0);
}

#[tokio::test]
async fn what_a_killed_responder_has_left_is_killed_before_its_event_is_worked_on_again() {
    let server = Server::start();
    let stage = Stage::new(&server);
    let (_, created) = stage.thread().await;
    let script = format!(
        "test $PEARING_EVENT_SEQUENCE = {created} || exit 0; \
         test -e $LOG && {{ \
             grep -qs 'State:.[^Z]' /proc/$(cat $LOG)/status && echo alive >> $LOG; exit 0; }}; \
         sleep 600 & echo $! >> $LOG; wait"
    );
    let said = server.home().join("said");
    let mut responder =
        Responder::start(&mut stage.respond("claude", "--lease-seconds 300", &script), &said);
    let pid = stage.lines_to_be(1).await[0].parse().expect("a process id");
    let pid = Pid::from_raw(pid).expect("a process id");
    responder.kill().await;
    assert!(test_kill_process(pid).is_ok(), "the kernel kills the command itself and no more");
    let (code, said) = stage.run("claude", "--lease-seconds 300", &script);
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("killed what was left of the last command"), "{said}");
    assert_eq!(stage.lines().len(), 1, "it was gone: {:?}", stage.lines());
    assert!(stage.marks().await.iter().any(|(sequence, _)| *sequence == created));
}

#[tokio::test]
async fn a_responder_that_is_killed_while_it_waits_gives_its_place_up_at_the_next_start() {
    let server = Server::start();
    let stage = Stage::new(&server);
    let (thread, created) = stage.thread().await;
    let (lock, codex) = (format!("thread-work.{thread}"), server.client("codex"));
    let held = codex.hold(&lock, 300).await;
    let script = format!("test $PEARING_EVENT_SEQUENCE != {created} || echo ran >> $LOG");
    let said = server.home().join("said");
    let start = || Responder::start(&mut stage.respond("claude", "", &script), &said);
    let waits_beside = async |other: &Value| {
        eventually("another ticket to wait", async || {
            let queue = codex.lock(&lock).await["queue"].clone();
            let first = queue[0].clone();
            (first.is_object() && first["ticket_id"] != *other).then_some(queue)
        })
        .await
    };
    let mut responder = start();
    let first = waits_beside(&Value::Null).await[0].clone();
    responder.kill().await;
    let mut responder = start();
    let queue = waits_beside(&first["ticket_id"]).await;
    assert_eq!(queue.as_array().map(Vec::len), Some(1), "{queue}");
    assert_eq!(server.client("claude").look(&first).await["state"], "cancelled");
    codex.release(&held).await.ticket(200);
    assert_eq!(stage.lines_to_be(1).await, ["ran"]);
    responder.signal(Signal::TERM);
    responder.code().await;
}

#[tokio::test]
async fn a_command_that_has_ended_well_is_not_run_again_after_a_kill() {
    let server = Server::start();
    let relay = Relay::before(server.url()).await;
    let stage = Stage::new(&server);
    let (thread, created) = stage.thread().await;
    let go = server.home().join("go");
    let script = format!(
        "test $PEARING_EVENT_SEQUENCE = {created} || exit 0; echo begins >> $LOG; \
         while [ ! -e {} ]; do sleep 0.02; done; echo ends >> $LOG",
        go.display()
    );
    let said = server.home().join("said");
    let start = || {
        let mut command = stage.respond("claude", "--lease-seconds 60", &script);
        Responder::start(command.env("PEARING_URL", relay.url()), &said)
    };
    let mut responder = start();
    stage.lines_to_be(1).await;
    // No mark gets through, and the command doesn't know.
    relay.silence(true);
    fs::write(&go, "").expect("the directory is ours");
    let lock = async || server.client("admin").lock(&format!("thread-work.{thread}")).await;
    let ticket_id = lock().await["holds"][0]["ticket_id"].clone();
    let note = server.home().join("claude.json.done");
    eventually("the end to be noted", async || {
        fs::read_to_string(&note).is_ok_and(|note| ticket_id == *note).then_some(())
    })
    .await;
    responder.kill().await;
    relay.silence(false);
    let mut responder = start();
    let mark = eventually("the mark", async || {
        let marks = stage.marks().await;
        marks.into_iter().find(|(sequence, _)| *sequence == created)
    })
    .await;
    assert_eq!(mark.1["data"]["fence"]["lock_name"], format!("thread-work.{thread}"));
    eventually("its release", async || lock().await["owner"].is_null().then_some(())).await;
    responder.signal(Signal::TERM);
    responder.code().await;
    assert_eq!(stage.lines(), ["begins", "ends"]);
    assert_eq!(stage.marks().await.iter().filter(|(sequence, _)| *sequence == created).count(), 1);
}
