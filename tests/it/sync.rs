//! Durable before it is said, and many commands in one sync.

use serde_json::json;
use tokio::task::JoinSet;

use crate::support::{SIGTERM, Server, trace};

const CLIENTS: usize = 64;
const ROUNDS: usize = 5;

/// A sync takes 20 ms more. On a disk that is faster than strace lets requests come in there would
/// be little to share.
const SLOW_DISK: &str = "inject=fdatasync:delay_exit=20000";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sixty_four_clients_share_few_syncs_and_each_answer_follows_its_own() {
    let mut server = Server::start();
    server.kill();
    let options: Vec<&str> = trace::OPTIONS.into_iter().chain(["-e", SLOW_DISK]).collect();
    server.serve_traced(&options);
    let mut clients = JoinSet::new();
    for number in 0..CLIENTS {
        let client = server.client(if number % 2 == 0 { "claude" } else { "codex" });
        clients.spawn(async move {
            for round in 0..ROUNDS {
                let fields = json!({ "lease_seconds": 300 });
                let held = client.acquire(&format!("lock-{number}-{round}"), fields).await;
                let released = client.release(&held.ticket(201)).await;
                assert_eq!(released.status, 200, "{}", released.body);
            }
        });
    }
    clients.join_all().await;
    server.process().signal(SIGTERM);
    assert_eq!(server.exit_code(), Some(0));
    let trace = server.trace();
    let commands = CLIENTS * ROUNDS * 2;
    assert_eq!(trace.answers(), commands, "each answer is in the trace");
    let syncs = trace.log_syncs();
    println!("{commands} commands, {syncs} syncs of the log");
    assert!(syncs > 0 && syncs * 4 < commands, "{syncs} syncs for {commands} commands");
    assert_eq!(trace.unsynced(), 0);
}
