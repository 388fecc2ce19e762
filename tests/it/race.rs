//! Many at once: of several who want the same, exactly one gets it.

use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::support::{Client, REPO, Reply, Server, uuid};

/// Sends all of these at once, and waits for all answers.
async fn at_once(asks: Vec<(Client, String, Value)>) -> Vec<Reply> {
    let mut sent = JoinSet::new();
    for (client, lock_name, fields) in asks {
        sent.spawn(async move { client.acquire(&lock_name, fields).await });
    }
    sent.join_all().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_eight_identities_one_gets_the_lock_in_each_round() {
    const ROUNDS: usize = 50;
    let server = Server::start();
    let mut racers = Vec::new();
    for number in 1..=8 {
        racers.push(server.add_writer(&format!("racer-{number}")).await);
    }
    for round in 0..ROUNDS {
        let lock_name = format!("round-{round}");
        let ask = |racer: &Client| (racer.clone(), lock_name.clone(), json!({}));
        let replies = at_once(racers.iter().map(ask).collect()).await;
        let (held, contended): (Vec<_>, Vec<_>) = replies.iter().partition(|r| r.status == 201);
        assert_eq!((held.len(), contended.len()), (1, 7), "round {round}: {replies:?}");
        let (winner, fence) =
            (&held[0].body["ticket"]["owner"], &held[0].body["ticket"]["fence_token"]);
        for reply in contended {
            assert_eq!(reply.says(), (409, "lock-contended"));
            assert_eq!(reply.body["ticket"]["fence_token"], json!(null));
            assert_eq!(
                (&reply.body["holder"]["owner"], &reply.body["holder"]["fence_token"]),
                (winner, fence)
            );
        }
        let lock = racers[0].lock(&lock_name).await;
        assert_eq!(
            (&lock["owner"], &lock["depth"], &lock["queue"]),
            (winner, &json!(1), &json!([]))
        );
    }
    let events = server.client("admin").events(&format!("&repo={REPO}&type=lock.*")).await;
    for round in 0..ROUNDS {
        let lock_name = format!("round-{round}");
        let of_round =
            events.iter().filter(|event| event["data"]["lock_name"] == lock_name.as_str());
        let mut types: Vec<&str> = of_round.filter_map(|event| event["type"].as_str()).collect();
        types.sort_unstable();
        let mut expected = vec!["pearing.lock.contended"; 7];
        expected.insert(0, "pearing.lock.acquired");
        assert_eq!(types, expected, "round {round}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sixty_four_copies_of_one_request_make_one_ticket() {
    let server = Server::start();
    let claude = server.client("claude");
    let fields = json!({ "request_uuid": uuid() });
    let replies = at_once(vec![(claude.clone(), "x".to_owned(), fields); 64]).await;
    let mut ids: Vec<&Value> =
        replies.iter().map(|reply| &reply.body["ticket"]["ticket_id"]).collect();
    ids.dedup();
    assert_eq!(ids.len(), 1, "{replies:?}");
    let made = replies.iter().filter(|reply| reply.status == 201).count();
    let replayed = replies.iter().filter(|reply| {
        reply.status == 200 && reply.header("idempotency-replayed") == Some("true")
    });
    assert_eq!((made, replayed.count()), (1, 63));
    assert_eq!(claude.lock("x").await["depth"], 1);
    assert_eq!(claude.events("&type=lock.*").await.len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sixty_four_copies_of_one_reply_write_it_once_and_one_thread_takes_a_number() {
    let server = Server::start();
    let claude = server.client("claude");
    let send = async |path: &str, body: Value| {
        let mut sent = JoinSet::new();
        for _ in 0..64 {
            let (client, path, body) = (claude.clone(), path.to_owned(), body.clone());
            sent.spawn(async move { client.post(&path, body).await });
        }
        sent.join_all().await
    };
    let path = format!("/v1/threads/42/replies?repo={REPO}");
    let body = json!({ "kind": "note", "body": "Once.", "request_uuid": uuid() });
    let replies = send(&path, body).await;
    // Many of them are decided in one batch: whoever was second is told so all the same.
    let (made, again): (Vec<_>, Vec<_>) = replies.iter().partition(|reply| reply.status == 201);
    assert_eq!((made.len(), again.len()), (1, 63), "{replies:?}");
    for reply in again {
        assert_eq!(reply.header("idempotency-replayed"), Some("true"));
        assert_eq!(reply.body["reply_id"], made[0].body["reply_id"]);
    }
    let taken = json!({ "title": "Mirrored", "number": 7 });
    let replies = send(&format!("/v1/threads?repo={REPO}"), taken).await;
    let made = replies.iter().filter(|reply| reply.status == 201).count();
    let refused = replies.iter().filter(|reply| reply.says() == (409, "already-exists")).count();
    assert_eq!((made, refused), (1, 63), "{replies:?}");
}
