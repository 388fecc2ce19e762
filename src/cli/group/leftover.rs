//! What a command has left running whose keeper was killed: known again by whoever comes next.
//!
//! A process id is used again for other processes. So a group is noted together with the time at
//! which its leader began; where the leader is gone, and it mostly is, what is left of the group
//! is known by the ticket in its environment. What can't be told to be ours is left alone.

use std::fs;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use rustix::process::{Pid, Signal};
use serde::{Deserialize, Serialize};

use super::send;
use crate::clock;
use crate::domain::id::TicketId;

/// Names this run of the machine: process ids and times begin anew with each.
const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";
/// How long killed processes may take to be gone.
const PATIENCE: Duration = Duration::from_secs(10);
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// A process group, by its leader.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::cli) struct Leftover {
    group: i32,
    /// When its leader began: the machine's run, and the kernel's ticks since its start.
    began: String,
}

impl Leftover {
    /// Notes a group, whose leader has not been waited for.
    pub(in crate::cli) fn of(group: Pid) -> io::Result<Self> {
        let group = group.as_raw_nonzero().get();
        let stat = Stat::of(group).ok_or(io::ErrorKind::NotFound)?;
        Ok(Self { group, began: began(&stat)? })
    }

    /// Kills what is left of the group, if it is still the same one, and waits until it is gone.
    /// `ticket_id` is in the environment of its processes. Says whether anything was left.
    pub(in crate::cli) async fn kill(&self, ticket_id: TicketId) -> io::Result<bool> {
        let Some(id) = Pid::from_raw(self.group).filter(|_| self.is_same(ticket_id)) else {
            return Ok(false);
        };
        let since = clock::monotonic();
        while !members(self.group).is_empty() {
            send(id, Signal::KILL);
            if clock::elapsed(since) > PATIENCE {
                return Err(io::Error::other(format!("process group {id} can't be killed")));
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
        Ok(true)
    }

    fn is_same(&self, ticket_id: TicketId) -> bool {
        if let Some(leader) = Stat::of(self.group) {
            return began(&leader).is_ok_and(|began| began == self.began);
        }
        let variable = format!("PEARING_TICKET_ID={ticket_id}");
        members(self.group).into_iter().any(|pid| {
            let environment = fs::read(PathBuf::from(format!("/proc/{pid}/environ")));
            let environment = environment.unwrap_or_default();
            environment.split(|byte| *byte == 0).any(|entry| entry == variable.as_bytes())
        })
    }
}

fn began(stat: &Stat) -> io::Result<String> {
    Ok(format!("{} {}", fs::read_to_string(BOOT_ID)?.trim(), stat.began))
}

/// The processes of a group that run. One that has ended, and that nobody asked about, doesn't.
pub(super) fn members(group: i32) -> Vec<i32> {
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    let pids = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    pids.filter(|pid| Stat::of(*pid).is_some_and(|stat| stat.group == group && stat.state != "Z"))
        .collect()
}

/// What the kernel says of a process.
struct Stat {
    state: String,
    group: i32,
    /// In ticks since the machine's start.
    began: u64,
}

impl Stat {
    fn of(pid: i32) -> Option<Self> {
        Self::parse(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
    }

    fn parse(stat: &str) -> Option<Self> {
        // The program's name, which comes before, may have anything in it.
        let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
        Some(Self {
            state: (*fields.first()?).to_owned(),
            group: fields.get(2)?.parse().ok()?,
            began: fields.get(19)?.parse().ok()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::CommandExt as _;
    use std::process::{Child, Command, Stdio};

    use super::*;

    fn ticket() -> TicketId {
        TicketId(uuid::Uuid::from_u128(7))
    }

    /// A shell in a group of its own, and what it runs there.
    fn shell(line: &str) -> (Child, Leftover) {
        let mut command = Command::new("sh");
        command.args(["-c", line]).env("PEARING_TICKET_ID", ticket().to_string());
        command.process_group(0).stdin(Stdio::null()).stdout(Stdio::null());
        let child = command.spawn().expect("it runs");
        let group = Leftover::of(Pid::from_child(&child)).expect("it is noted");
        (child, group)
    }

    fn other() -> TicketId {
        TicketId(uuid::Uuid::nil())
    }

    #[tokio::test]
    async fn a_group_is_killed_and_a_stranger_with_its_number_is_not() {
        let (mut child, group) = shell("sleep 600; true");
        let stranger = Leftover { began: "another 1".to_owned(), ..group.clone() };
        assert!(!stranger.kill(ticket()).await.expect("it is left alone"));
        assert!(child.try_wait().expect("our child").is_none());
        assert!(group.kill(other()).await.expect("it can be killed"));
        assert!(child.wait().expect("our child").code().is_none());
        assert!(!group.kill(ticket()).await.expect("it is gone"));
    }

    #[tokio::test]
    async fn what_is_left_without_its_leader_is_known_by_its_ticket() {
        let (mut child, group) = shell("sleep 600 & exit 0");
        child.wait().expect("our child");
        assert_eq!(members(group.group).len(), 1);
        assert!(!group.kill(other()).await.expect("it is left alone"));
        assert!(group.kill(ticket()).await.expect("it can be killed"));
        assert!(members(group.group).is_empty());
    }

    #[test]
    fn a_program_can_have_any_name() {
        let rest = "S 1 42 42 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 777 9 9";
        for name in ["sh", "a b", "a) S 1 2"] {
            let stat = Stat::parse(&format!("42 ({name}) {rest}")).expect("a process");
            assert_eq!((stat.state.as_str(), stat.group, stat.began), ("S", 42, 777), "{name}");
        }
        assert!(Stat::parse("").is_none());
    }
}
