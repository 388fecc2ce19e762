//! The rows: each route with its command, what it needs, and what it is asked for.

use serde_json::{Value, json};

use super::askers::Role::{Admin, Read, Write};
use super::rules::Needs::{self, Extend, LetGo, OwnAgent, Person, SeeTicket, ServerAdmin, Service};
use super::rules::{NOT_FOUND, Says};
use super::world::Kind::{self, FreeLock, Grant, Member, Repo, Scope, Team, Thread, Ticket, User};
use super::world::Object;
use super::world::Spot::{
    self, Here, HereTeam, Nowhere, NowhereTeam, NowhereUser, Own, OwnRepo, There, ThereTeam,
    ThereUser, Writers,
};
use super::world::Thing::{self, Absent, Mine, Misplaced, Others};

/// A route, asked for in one way.
pub(super) struct Row {
    pub(super) method: &'static str,
    pub(super) path: &'static str,
    pub(super) kind: Kind,
    pub(super) needs: Needs,
    /// The command line; empty where no command asks so. `{@}` is the scope's flag.
    pub(super) command: &'static str,
    /// The body; null for none.
    pub(super) body: fn(&Object) -> Value,
    /// Whether the scope is a parameter.
    pub(super) is_scoped: bool,
    pub(super) cells: Vec<Cell>,
}

/// What a row is asked for, and what is answered to whoever may ask.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cell {
    pub(super) spot: Spot,
    pub(super) thing: Thing,
    pub(super) then: Says,
}

const OK: Says = (200, "");
const MADE: Says = (201, "");
const CONTENDED: Says = (409, "lock-contended");
const STALE: Says = (409, "stale-fence");
const EXISTS: Says = (409, "already-exists");
const REUSED: Says = (422, "request-uuid-reused");

/// Every kind of scope, in each relation to whoever asks.
const SCOPES: &[Spot] =
    &[Here, HereTeam, Own, Writers, There, ThereTeam, ThereUser, Nowhere, NowhereTeam, NowhereUser];
const REPOS: &[Spot] = &[Here, OwnRepo, There, Nowhere];
const TEAMS: &[Spot] = &[HereTeam, ThereTeam, NowhereTeam];
const ABOVE_REPOS: &[Spot] =
    &[HereTeam, Own, Writers, ThereTeam, ThereUser, NowhereTeam, NowhereUser];
/// One of each relation.
const EACH: &[Spot] = &[Here, There, Nowhere];

impl Row {
    fn new(method: &'static str, path: &'static str, kind: Kind, needs: Needs) -> Self {
        let is_scoped = matches!(kind, FreeLock | Ticket | Thread | Grant);
        let (command, body) = ("", (|_: &Object| Value::Null) as fn(&Object) -> Value);
        Self { method, path, kind, needs, command, body, is_scoped, cells: Vec::new() }
    }

    fn scoped(self) -> Self {
        Self { is_scoped: true, ..self }
    }

    fn command(self, command: &'static str) -> Self {
        Self { command, ..self }
    }

    fn body(self, body: fn(&Object) -> Value) -> Self {
        Self { body, ..self }
    }

    fn ask(mut self, spots: &[Spot], thing: Thing, then: Says) -> Self {
        self.cells.extend(spots.iter().map(|&spot| Cell { spot, thing, then }));
        self
    }

    /// Of what belongs to no scope.
    fn once(self, thing: Thing, then: Says) -> Self {
        self.ask(&[Here], thing, then)
    }
}

fn get(path: &'static str, kind: Kind, needs: Needs) -> Row {
    Row::new("GET", path, kind, needs)
}

fn post(path: &'static str, kind: Kind, needs: Needs) -> Row {
    Row::new("POST", path, kind, needs)
}

fn put(path: &'static str, kind: Kind, needs: Needs) -> Row {
    Row::new("PUT", path, kind, needs)
}

fn delete(path: &'static str, kind: Kind, needs: Needs) -> Row {
    Row::new("DELETE", path, kind, needs)
}

pub(super) fn rows() -> Vec<Row> {
    let mut parts = vec![locks(), tickets(), threads(), own(), users(), teams(), scopes()];
    parts.extend([ledger(), operations()]);
    parts.into_iter().flatten().collect()
}

fn locks() -> Vec<Row> {
    const LOCK: &str = "/v1/locks/{lock_name}";
    vec![
        get("/v1/locks", Scope, Needs::Role(Read))
            .scoped()
            .command("list-locks {@}")
            .ask(SCOPES, Others, OK),
        get(LOCK, Ticket, Needs::Role(Read))
            .command("get-lock {lock_name} {@}")
            .ask(SCOPES, Others, OK)
            .ask(&[Here], Mine, OK)
            .ask(EACH, Absent, OK),
        get("/v1/locks/{lock_name}/history", Ticket, Needs::Role(Read))
            .command("lock-history {lock_name} {@}")
            .ask(SCOPES, Others, OK)
            .ask(&[Here], Mine, OK)
            .ask(EACH, Absent, OK),
        get("/v1/timeline", Scope, Needs::Role(Read))
            .scoped()
            .command("lock-timeline {@}")
            .ask(SCOPES, Others, OK),
        post("/v1/locks/{lock_name}/break", Ticket, Needs::Role(Admin))
            .command("break-lock {lock_name} --fence-token {fence_token} --reason why {@}")
            .body(|lock| {
                let fence: u64 = lock.value("fence_token").parse().expect("it is a number");
                json!({ "fence_token": fence, "reason": "why" })
            })
            .ask(SCOPES, Others, OK)
            .ask(&[Here], Mine, OK)
            .ask(EACH, Absent, STALE),
    ]
}

fn tickets() -> Vec<Row> {
    const TICKETS: &str = "/v1/locks/{lock_name}/tickets";
    const TICKET: &str = "/v1/locks/{lock_name}/tickets/{ticket_id}";
    let asked =
        |lock: &Object| json!({ "request_uuid": lock.value("request_uuid"), "lease_seconds": 300 });
    let asked_otherwise = |lock: &Object| json!({ "request_uuid": lock.value("request_uuid") });
    const ACQUIRE: &str =
        "acquire-lock {lock_name} --request-uuid {request_uuid} --lease-seconds 300 {@}";
    vec![
        post(TICKETS, FreeLock, Needs::Role(Write))
            .command(ACQUIRE)
            .body(asked)
            .ask(SCOPES, Others, MADE),
        post(TICKETS, Ticket, Needs::Role(Write))
            .command(ACQUIRE)
            .body(asked)
            .ask(EACH, Others, CONTENDED),
        // A retry is a read of one's own ticket.
        post(TICKETS, Ticket, Needs::Token).command(ACQUIRE).body(asked).ask(&[Here], Mine, OK),
        post(TICKETS, Ticket, Service)
            .command("acquire-lock {lock_name} --request-uuid {request_uuid} {@}")
            .body(asked_otherwise)
            .ask(&[Here], Mine, REUSED),
        get(TICKET, Ticket, SeeTicket)
            .command("get-lock-ticket {lock_name} {ticket_id} {@}")
            .ask(SCOPES, Others, OK)
            .ask(&[Here], Mine, OK)
            .ask(&[Here], Misplaced, NOT_FOUND)
            .ask(EACH, Absent, NOT_FOUND),
        get("/v1/locks/{lock_name}/tickets/{ticket_id}/why", Ticket, SeeTicket)
            .command("why-lock-ticket {lock_name} {ticket_id} {@}")
            .ask(SCOPES, Others, OK)
            .ask(&[Here], Mine, OK)
            .ask(&[Here], Misplaced, NOT_FOUND)
            .ask(EACH, Absent, NOT_FOUND),
        delete(TICKET, Ticket, LetGo)
            .command("release-lock-ticket {lock_name} {ticket_id} {@}")
            .ask(SCOPES, Others, OK)
            .ask(&[Here], Mine, OK)
            .ask(&[Here], Misplaced, NOT_FOUND)
            .ask(EACH, Absent, NOT_FOUND),
        post("/v1/locks/{lock_name}/tickets/{ticket_id}/heartbeat", Ticket, Extend)
            .command("heartbeat-lock-ticket {lock_name} {ticket_id} {@}")
            .ask(SCOPES, Others, OK)
            .ask(&[Here], Mine, OK)
            .ask(&[Here], Misplaced, NOT_FOUND)
            .ask(EACH, Absent, NOT_FOUND),
    ]
}

fn threads() -> Vec<Row> {
    const REPLIES: &str = "/v1/threads/{number}/replies";
    const CLOSE: &str = "/v1/threads/{number}/close";
    const REOPEN: &str = "/v1/threads/{number}/reopen";
    let stale = |_: &Object| {
        let fence = json!({ "lock_name": "nothing", "fence_token": 1 });
        json!({ "kind": "note", "body": "done", "fence": fence })
    };
    vec![
        get("/v1/threads", Scope, Needs::Role(Read))
            .scoped()
            .command("list-threads {scope}")
            .ask(REPOS, Others, OK),
        post("/v1/threads", Scope, Needs::Role(Write))
            .scoped()
            .command("create-thread {scope} --title work")
            .body(|_| json!({ "title": "work" }))
            .ask(REPOS, Others, MADE),
        get("/v1/threads/{number}", Thread, Needs::Role(Read))
            .command("get-thread-tree {scope} {number}")
            .ask(REPOS, Others, OK)
            .ask(EACH, Absent, NOT_FOUND),
        post(REPLIES, Thread, Needs::Role(Write))
            .command("create-reply {scope} {number} --kind note --body done")
            .body(|_| json!({ "kind": "note", "body": "done" }))
            .ask(REPOS, Others, MADE)
            .ask(EACH, Absent, NOT_FOUND),
        post(REPLIES, Thread, Needs::Role(Write))
            .command(
                "create-reply {scope} {number} --kind note --body done --fence-lock nothing \
                 --fence-token 1",
            )
            .body(stale)
            .ask(REPOS, Others, STALE),
        post(CLOSE, Thread, Needs::Role(Write))
            .command("close-thread {scope} {number}")
            .ask(REPOS, Others, OK)
            .ask(EACH, Absent, NOT_FOUND),
        post(REOPEN, Thread, Needs::Role(Write))
            .command("reopen-thread {scope} {number}")
            .ask(REPOS, Others, OK)
            .ask(EACH, Absent, NOT_FOUND),
    ]
}

/// What concerns whoever asks, and what it may see of others.
fn own() -> Vec<Row> {
    vec![
        get("/v1/activity", Scope, Service).command("list-activity").once(Others, OK),
        put("/v1/activity", Scope, Service)
            .command("update-user-activity --activity thinking")
            .body(|_| json!({ "activity": "thinking" }))
            .once(Mine, OK),
        delete("/v1/activity", Scope, Service)
            .command("update-user-activity --clear")
            .once(Mine, OK),
        // One's own tickets, which a disabled user may still read.
        get("/v1/tickets", Scope, Needs::Token).command("list-tickets").once(Mine, OK),
        get("/v1/whoami", Scope, Service).command("whoami").once(Mine, OK),
        get("/v1/agents", Scope, Service).command("list-agents").once(Mine, OK),
        post("/v1/agents", Kind::Agent, Person)
            .command("create-agent {name}")
            .body(|agent| json!({ "name": agent.value("name") }))
            .once(Mine, MADE)
            .once(Absent, MADE),
        delete("/v1/agents/{name}/tokens", Kind::Agent, OwnAgent)
            .command("revoke-agent-tokens {name}")
            .once(Mine, OK)
            .once(Absent, NOT_FOUND),
        get("/v1/events", Scope, Service).command("list-events").once(Others, OK),
        get("/v1/events", Scope, Needs::Role(Read))
            .scoped()
            .command("list-events {@}")
            .ask(SCOPES, Others, OK),
        // For browsers: a command has its token.
        post("/v1/feed-session", Scope, Service).once(Mine, (204, "")),
    ]
}

fn users() -> Vec<Row> {
    vec![
        get("/v1/admin/users", Scope, ServerAdmin).command("list-users").once(Others, OK),
        post("/v1/admin/users", User, ServerAdmin)
            .command("create-user {user}")
            .body(|user| json!({ "user": user.value("user") }))
            .once(Absent, MADE)
            .once(Others, EXISTS),
        post("/v1/admin/users/{user}/disable", User, ServerAdmin)
            .command("disable-user {user}")
            .once(Others, OK)
            .once(Absent, NOT_FOUND),
        post("/v1/admin/users/{user}/enable", User, ServerAdmin)
            .command("enable-user {user}")
            .once(Others, OK)
            .once(Absent, NOT_FOUND),
        get("/v1/admin/tokens", Scope, ServerAdmin).command("list-tokens").once(Others, OK),
        post("/v1/admin/tokens", User, ServerAdmin)
            .command("create-token {user}")
            .body(|user| json!({ "user": user.value("user") }))
            .once(Others, MADE)
            .once(Mine, MADE)
            .once(Absent, NOT_FOUND),
        delete("/v1/admin/tokens/{token_id}", Kind::Token, ServerAdmin)
            .command("revoke-token {token_id}")
            .once(Others, OK)
            .once(Mine, OK)
            .once(Absent, NOT_FOUND),
    ]
}

fn teams() -> Vec<Row> {
    const MEMBER: &str = "/v1/admin/teams/{team}/members/{user}";
    vec![
        get("/v1/admin/teams", Scope, Service).command("list-teams").once(Others, OK),
        post("/v1/admin/teams", Team, ServerAdmin)
            .command("create-team {team}")
            .body(|team| json!({ "team": team.value("team") }))
            .once(Absent, MADE)
            .once(Others, EXISTS),
        get("/v1/admin/teams/{team}/members", Member, Needs::Role(Read))
            .command("list-team-members {team}")
            .ask(TEAMS, Others, OK),
        put(MEMBER, Member, Needs::Role(Admin))
            .command("set-team-member {team} {user} --role write")
            .body(|_| json!({ "role": "write" }))
            .ask(TEAMS, Others, OK)
            .ask(TEAMS, Absent, NOT_FOUND),
        delete(MEMBER, Member, Needs::Role(Admin))
            .command("remove-team-member {team} {user}")
            .ask(TEAMS, Others, OK)
            .ask(TEAMS, Absent, NOT_FOUND),
    ]
}

fn scopes() -> Vec<Row> {
    const ACCESS: &str = "/v1/admin/access/{user}";
    vec![
        get("/v1/admin/repos", Scope, Service).command("list-repos").once(Others, OK),
        post("/v1/admin/repos", Repo, Needs::Role(Admin))
            .command("create-repo {repo}")
            .body(|repo| json!({ "repo": repo.value("repo") }))
            .ask(ABOVE_REPOS, Absent, MADE)
            .ask(&[HereTeam, ThereTeam], Others, EXISTS),
        get("/v1/admin/access", Scope, Needs::Role(Read))
            .scoped()
            .command("list-access {@}")
            .ask(SCOPES, Others, OK),
        put(ACCESS, Grant, Needs::Role(Admin))
            .command("grant-access {user} --role write {@}")
            .body(|_| json!({ "role": "write" }))
            .ask(SCOPES, Others, OK)
            .ask(EACH, Absent, NOT_FOUND),
        delete(ACCESS, Grant, Needs::Role(Admin))
            .command("revoke-access {user} {@}")
            .ask(SCOPES, Others, OK)
            .ask(EACH, Absent, NOT_FOUND),
    ]
}

fn ledger() -> Vec<Row> {
    const GOES_ON: Says = (202, "");
    const BACKUP: &str = "/v1/admin/ledger/backup";
    const VERIFICATION: &str = "/v1/admin/ledger/verification";
    vec![
        get("/v1/admin/ledger", Scope, ServerAdmin).command("export-ledger").once(Others, OK),
        // A server that starts begins one by itself.
        get(VERIFICATION, Scope, ServerAdmin).once(Others, OK),
        post(VERIFICATION, Scope, ServerAdmin).once(Others, GOES_ON),
        // This server was not told where to make any.
        get(BACKUP, Scope, ServerAdmin).once(Others, NOT_FOUND),
        post(BACKUP, Scope, ServerAdmin).command("create-backup").once(Others, NOT_FOUND),
        // Nor has it a key.
        post("/v1/admin/ledger/checkpoints", Scope, ServerAdmin)
            .command("create-checkpoint")
            .once(Others, NOT_FOUND),
    ]
}

fn operations() -> Vec<Row> {
    vec![
        get("/livez", Scope, Needs::Nothing).once(Others, OK),
        get("/readyz", Scope, Needs::Nothing).once(Others, OK),
        get("/metrics", Scope, Needs::Nothing).once(Others, OK),
        get("/openapi.json", Scope, Needs::Nothing).once(Others, OK),
        get("/asyncapi.json", Scope, Needs::Nothing).once(Others, OK),
        get("/docs", Scope, Needs::Nothing).once(Others, OK),
        get("/docs/{file}", Kind::File, Needs::Nothing).once(Others, OK).once(Absent, NOT_FOUND),
    ]
}
