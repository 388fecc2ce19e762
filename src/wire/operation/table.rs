//! The table: every operation, in the order in which they are best read.

use super::Group::{
    Activity, Administration, Caller, Contracts, Events, Locks, Operations, Threads,
};
use super::Method::{Delete, Get, Post, Put};
use super::ScopeIn::{One, OneAtMost, Repo as RepoOnly};
use super::parameter::{
    ACTOR, AFTER, EXCLUDED_TYPES, FROM, LAST_EVENT_ID, LOCK, ONE_LOCK, PREFER, THREAD_STATE,
    TICKET_STATE, TO, TYPES, WIDTH,
};
use super::{Answer, Content, Operation};
use crate::wire::activity::Activity as UserActivity;
use crate::wire::admin::{
    Agent, FormerGrant, FormerMember, Grant, Member, NewToken, Repo, Team, Token, User, WhoAmI,
};
use crate::wire::cloud_event::CloudEvent;
use crate::wire::contract::Document;
use crate::wire::health::Health;
use crate::wire::list::List;
use crate::wire::lock::Lock;
use crate::wire::problem::Code::{
    self, AlreadyExists, Busy, DeadlockRejected, DiskFull, LockContended, NotFound,
    RequestUuidReused, StaleFence, TicketEnded, TicketNotHeld, WaitEnded,
};
use crate::wire::request::{
    AcquireLock, BreakLock, CreateAgent, CreateReply, CreateRepo, CreateTeam, CreateThread,
    CreateToken, CreateUser, HeartbeatLockTicket, SetRole, SetThreadState, UpdateUserActivity,
};
use crate::wire::thread::{Reply, Thread, ThreadItem};
use crate::wire::ticket::{Answer as TicketAnswer, Ticket};
use crate::wire::why::Why;

/// Of what makes something, gives something, and writes to a thread.
const MAKING: &[Code] = &[AlreadyExists, DiskFull];
const GIVING: &[Code] = &[NotFound, DiskFull];
const WRITING: &[Code] = &[NotFound, StaleFence, RequestUuidReused, DiskFull];

operations! {
    /// Acquires a lock.
    ACQUIRE_LOCK = Operation::new(
        Locks, Post, "/v1/locks/{lock_name}/tickets", "acquire_lock",
        "Takes a lock, or waits for it.",
    )
    .scope(One)
    .body::<AcquireLock>()
    .answers(&[
        Answer::json::<TicketAnswer>(200, "Held already, by the same request made before."),
        Answer::json::<TicketAnswer>(201, "Held."),
        Answer::json::<TicketAnswer>(202, "Waiting."),
    ])
    .problems(&[
        NotFound, RequestUuidReused, LockContended, DeadlockRejected, WaitEnded, TicketEnded,
        DiskFull,
    ]);
    /// Reads a ticket.
    GET_LOCK_TICKET = Operation::new(
        Locks, Get, "/v1/locks/{lock_name}/tickets/{ticket_id}", "get_lock_ticket",
        "Reads a ticket; with Prefer: wait=N only once it stops waiting, or after N seconds.",
    )
    .scope(One)
    .parameters(&[PREFER])
    .ok::<TicketAnswer>()
    .problems(&[NotFound]);
    /// Explains a ticket.
    WHY_LOCK_TICKET = Operation::new(
        Locks, Get, "/v1/locks/{lock_name}/tickets/{ticket_id}/why", "why_lock_ticket",
        "Explains why a ticket went as it did, with the events that show it.",
    )
    .scope(One)
    .ok::<Why>()
    .problems(&[NotFound]);
    /// Extends a lease.
    HEARTBEAT_LOCK_TICKET = Operation::new(
        Locks, Post, "/v1/locks/{lock_name}/tickets/{ticket_id}/heartbeat",
        "heartbeat_lock_ticket", "Extends the lease of a held ticket.",
    )
    .scope(One)
    .body::<HeartbeatLockTicket>()
    .ok::<TicketAnswer>()
    .problems(&[NotFound, TicketNotHeld]);
    /// Releases or cancels a ticket.
    RELEASE_LOCK_TICKET = Operation::new(
        Locks, Delete, "/v1/locks/{lock_name}/tickets/{ticket_id}", "release_lock_ticket",
        "Lets go of a held ticket, or gives up a waiting one.",
    )
    .scope(One)
    .ok::<TicketAnswer>()
    .problems(&[NotFound, TicketEnded]);
    /// Lists locks.
    LIST_LOCKS = Operation::new(
        Locks, Get, "/v1/locks", "list_locks", "Lists the held locks of a scope.",
    )
    .scope(One)
    .as_of()
    .paged()
    .ok::<List<Lock>>()
    .problems(&[NotFound]);
    /// Reads a lock.
    GET_LOCK = Operation::new(
        Locks, Get, "/v1/locks/{lock_name}", "get_lock",
        "Reads who holds a lock, and who waits for it.",
    )
    .scope(One)
    .as_of()
    .ok::<Lock>()
    .problems(&[NotFound]);
    /// Lists a lock's events.
    LOCK_HISTORY = Operation::new(
        Locks, Get, "/v1/locks/{lock_name}/history", "lock_history", "Lists a lock's events.",
    )
    .scope(One)
    .paged()
    .ok::<List<CloudEvent<'static>>>()
    .problems(&[NotFound]);
    /// Draws what happened to locks.
    LOCK_TIMELINE = Operation::new(
        Locks, Get, "/v1/timeline", "lock_timeline",
        "Draws what happened to a lock, or to all locks of a scope: a picture, or text.",
    )
    .scope(One)
    .parameters(&[ONE_LOCK, FROM, TO, WIDTH])
    .answers(&[Answer {
        status: 200,
        when: "The drawing; as text with Accept: text/plain.",
        content: Content::Text(&["image/svg+xml", "text/plain"]),
    }])
    .problems(&[NotFound])
    .no_tool();
    /// Breaks a hold.
    BREAK_LOCK = Operation::new(
        Locks, Post, "/v1/locks/{lock_name}/break", "break_lock",
        "Ends somebody's hold; for administrators of the scope.",
    )
    .scope(One)
    .body::<BreakLock>()
    .ok::<Lock>()
    .problems(&[NotFound, StaleFence]);
    /// Lists threads.
    LIST_THREADS = Operation::new(
        Threads, Get, "/v1/threads", "list_threads", "Lists the threads of a repository.",
    )
    .scope(RepoOnly)
    .as_of()
    .parameters(&[THREAD_STATE])
    .paged()
    .ok::<List<ThreadItem>>()
    .problems(&[NotFound]);
    /// Begins a thread.
    CREATE_THREAD = Operation::new(
        Threads, Post, "/v1/threads", "create_thread", "Begins a thread.",
    )
    .scope(RepoOnly)
    .body::<CreateThread>()
    .made_once::<Thread>()
    .problems(&[NotFound, StaleFence, RequestUuidReused, AlreadyExists, DiskFull]);
    /// Reads a thread.
    GET_THREAD_TREE = Operation::new(
        Threads, Get, "/v1/threads/{number}", "get_thread_tree",
        "Reads a thread with its tree of replies.",
    )
    .scope(RepoOnly)
    .as_of()
    .ok::<Thread>()
    .problems(&[NotFound]);
    /// Replies in a thread.
    CREATE_REPLY = Operation::new(
        Threads, Post, "/v1/threads/{number}/replies", "create_reply",
        "Replies to a thread, or to a reply in it.",
    )
    .scope(RepoOnly)
    .body::<CreateReply>()
    .made_once::<Reply>()
    .problems(WRITING);
    /// Closes a thread.
    CLOSE_THREAD = Operation::new(
        Threads, Post, "/v1/threads/{number}/close", "close_thread", "Says that no work is left.",
    )
    .scope(RepoOnly)
    .body::<SetThreadState>()
    .ok::<Thread>()
    .problems(WRITING);
    /// Opens a thread again.
    REOPEN_THREAD = Operation::new(
        Threads, Post, "/v1/threads/{number}/reopen", "reopen_thread",
        "Says that some work is left after all.",
    )
    .scope(RepoOnly)
    .body::<SetThreadState>()
    .ok::<Thread>()
    .problems(WRITING);
    /// Lists what users are doing.
    LIST_ACTIVITY = Operation::new(
        Activity, Get, "/v1/activity", "list_activity",
        "Lists what everyone is doing whom the caller may see.",
    )
    .paged()
    .ok::<List<UserActivity>>();
    /// Says what the caller is doing.
    UPDATE_USER_ACTIVITY = Operation::new(
        Activity, Put, "/v1/activity", "update_user_activity", "Says what the caller is doing.",
    )
    .body::<UpdateUserActivity>()
    .ok::<UserActivity>()
    .problems(&[RequestUuidReused, DiskFull]);
    /// Says that the caller does nothing.
    CLEAR_USER_ACTIVITY = Operation::new(
        Activity, Delete, "/v1/activity", "clear_user_activity",
        "Says that the caller is doing nothing.",
    )
    .command("update_user_activity")
    .ok::<UserActivity>();
    /// Lists the caller's tickets.
    LIST_TICKETS = Operation::new(
        Caller, Get, "/v1/tickets", "list_tickets", "Lists the caller's own live tickets.",
    )
    .parameters(&[TICKET_STATE])
    .paged()
    .ok::<List<Ticket>>();
    /// Shows who asks.
    WHOAMI = Operation::new(
        Caller, Get, "/v1/whoami", "whoami", "Shows who the token stands for.",
    )
    .ok::<WhoAmI>();
    /// Lists the caller's agents.
    LIST_AGENTS = Operation::new(
        Caller, Get, "/v1/agents", "list_agents", "Lists the caller's agents, with their tokens.",
    )
    .paged()
    .ok::<List<Agent>>();
    /// Makes an agent, or a token for it.
    CREATE_AGENT = Operation::new(
        Caller, Post, "/v1/agents", "create_agent",
        "Makes an identity for an agent of the caller's, or another token for it.",
    )
    .body::<CreateAgent>()
    .made::<NewToken>()
    .problems(MAKING)
    .no_tool();
    /// Ends an agent's tokens.
    REVOKE_AGENT_TOKENS = Operation::new(
        Caller, Delete, "/v1/agents/{name}/tokens", "revoke_agent_tokens",
        "Ends all tokens of an agent of the caller's.",
    )
    .ok::<List<Token>>()
    .problems(&[NotFound]);
    /// Lists events.
    LIST_EVENTS = Operation::new(
        Events, Get, "/v1/events", "list_events", "Lists events, oldest first.",
    )
    .scope(OneAtMost)
    .parameters(&[LOCK, TYPES, EXCLUDED_TYPES, ACTOR, LAST_EVENT_ID])
    .paged()
    .ok::<List<CloudEvent<'static>>>()
    .problems(&[NotFound]);
    /// Sets the cookie of a browser's feed.
    CREATE_FEED_SESSION = Operation::new(
        Events, Post, "/v1/feed-session", "create_feed_session",
        "Sets a cookie with which a browser's EventSource, which has no headers, follows the feed.",
    )
    .no_command()
    .no_tool()
    .answers(&[Answer { status: 204, when: "The cookie is set.", content: Content::Nothing }]);
    /// Follows events: the same call, with another `Accept`.
    WATCH_EVENTS = Operation::new(
        Events, Get, "/v1/events", "watch_events",
        "Follows events as they happen: the feed, as server-sent events.",
    )
    .scope(OneAtMost)
    .parameters(&[LOCK, TYPES, EXCLUDED_TYPES, ACTOR, AFTER, LAST_EVENT_ID])
    .answers(&[Answer { status: 200, when: "The feed.", content: Content::Feed }])
    .problems(&[NotFound])
    .no_tool();
    /// Lists users.
    LIST_USERS = Operation::new(
        Administration, Get, "/v1/admin/users", "list_users", "Lists the users.",
    )
    .paged()
    .ok::<List<User>>();
    /// Makes a user.
    CREATE_USER = Operation::new(
        Administration, Post, "/v1/admin/users", "create_user", "Makes a user.",
    )
    .body::<CreateUser>()
    .made::<User>()
    .problems(MAKING);
    /// Disables a user.
    DISABLE_USER = Operation::new(
        Administration, Post, "/v1/admin/users/{user}/disable", "disable_user",
        "Takes a user out of service.",
    )
    .ok::<User>()
    .problems(&[NotFound]);
    /// Enables a user.
    ENABLE_USER = Operation::new(
        Administration, Post, "/v1/admin/users/{user}/enable", "enable_user",
        "Puts a disabled user back into service.",
    )
    .ok::<User>()
    .problems(GIVING);
    /// Lists tokens.
    LIST_TOKENS = Operation::new(
        Administration, Get, "/v1/admin/tokens", "list_tokens",
        "Lists the tokens, without their secrets.",
    )
    .paged()
    .ok::<List<Token>>();
    /// Makes a token.
    CREATE_TOKEN = Operation::new(
        Administration, Post, "/v1/admin/tokens", "create_token",
        "Makes a token for a user, and shows it this once.",
    )
    .body::<CreateToken>()
    .made::<NewToken>()
    .problems(GIVING);
    /// Ends a token.
    REVOKE_TOKEN = Operation::new(
        Administration, Delete, "/v1/admin/tokens/{token_id}", "revoke_token", "Ends a token.",
    )
    .ok::<Token>()
    .problems(&[NotFound]);
    /// Lists teams.
    LIST_TEAMS = Operation::new(
        Administration, Get, "/v1/admin/teams", "list_teams",
        "Lists the teams that the caller may read.",
    )
    .paged()
    .ok::<List<Team>>();
    /// Makes a team.
    CREATE_TEAM = Operation::new(
        Administration, Post, "/v1/admin/teams", "create_team", "Makes a team.",
    )
    .body::<CreateTeam>()
    .made::<Team>()
    .problems(MAKING);
    /// Lists members.
    LIST_TEAM_MEMBERS = Operation::new(
        Administration, Get, "/v1/admin/teams/{team}/members", "list_team_members",
        "Lists a team's members.",
    )
    .paged()
    .ok::<List<Member>>()
    .problems(&[NotFound]);
    /// Adds a member, or changes its role.
    SET_TEAM_MEMBER = Operation::new(
        Administration, Put, "/v1/admin/teams/{team}/members/{user}", "set_team_member",
        "Adds a user to a team, or changes its role there.",
    )
    .body::<SetRole>()
    .ok::<Member>()
    .problems(GIVING);
    /// Removes a member.
    REMOVE_TEAM_MEMBER = Operation::new(
        Administration, Delete, "/v1/admin/teams/{team}/members/{user}", "remove_team_member",
        "Takes a user out of a team.",
    )
    .ok::<FormerMember>()
    .problems(&[NotFound]);
    /// Lists repositories.
    LIST_REPOS = Operation::new(
        Administration, Get, "/v1/admin/repos", "list_repos",
        "Lists the repositories that the caller may read.",
    )
    .paged()
    .ok::<List<Repo>>()
    .tool();
    /// Makes a repository.
    CREATE_REPO = Operation::new(
        Administration, Post, "/v1/admin/repos", "create_repo", "Makes a repository.",
    )
    .body::<CreateRepo>()
    .made::<Repo>()
    .problems(&[NotFound, AlreadyExists, DiskFull]);
    /// Lists grants.
    LIST_ACCESS = Operation::new(
        Administration, Get, "/v1/admin/access", "list_access",
        "Lists the direct grants in a scope.",
    )
    .scope(One)
    .paged()
    .ok::<List<Grant>>()
    .problems(&[NotFound]);
    /// Grants a role, or changes it.
    GRANT_ACCESS = Operation::new(
        Administration, Put, "/v1/admin/access/{user}", "grant_access",
        "Gives a user a role in a scope, or changes it.",
    )
    .scope(One)
    .body::<SetRole>()
    .ok::<Grant>()
    .problems(GIVING);
    /// Takes a grant away.
    REVOKE_ACCESS = Operation::new(
        Administration, Delete, "/v1/admin/access/{user}", "revoke_access",
        "Takes a user's direct grant in a scope away.",
    )
    .scope(One)
    .ok::<FormerGrant>()
    .problems(&[NotFound]);
    /// Whether the process runs.
    GET_LIVENESS = Operation::new(
        Operations, Get, "/livez", "get_liveness", "Says that the process runs.",
    )
    .open()
    .ok::<Health>();
    /// Whether it is ready.
    GET_READINESS = Operation::new(
        Operations, Get, "/readyz", "get_readiness",
        "Says whether requests are to be sent here.",
    )
    .open()
    .ok::<Health>()
    .problems(&[Busy]);
    /// What the server measures.
    GET_METRICS = Operation::new(
        Operations, Get, "/metrics", "get_metrics", "Shows what the server measures.",
    )
    .open()
    .answers(&[Answer {
        status: 200,
        when: "As of now.",
        content: Content::Text(&["application/openmetrics-text"]),
    }]);
    /// The OpenAPI document.
    GET_OPENAPI = Operation::new(
        Contracts, Get, "/openapi.json", "get_openapi",
        "Shows the OpenAPI document of all calls.",
    )
    .open()
    .ok::<Document>();
    /// The AsyncAPI document.
    GET_ASYNCAPI = Operation::new(
        Contracts, Get, "/asyncapi.json", "get_asyncapi",
        "Shows the AsyncAPI document of the feed.",
    )
    .open()
    .ok::<Document>();
    /// The page of the API.
    GET_DOCS = Operation::new(
        Contracts, Get, "/docs", "get_docs", "Leads to the page of the API.",
    )
    .open()
    .answers(&[Answer {
        status: 200,
        when: "A page that leads there.",
        content: Content::Text(&["text/html"]),
    }]);
    /// What the page of the API consists of.
    GET_DOCS_FILE = Operation::new(
        Contracts, Get, "/docs/{file}", "get_docs_file",
        "Shows the page of the API, index.html, and what it loads.",
    )
    .open()
    .answers(&[Answer { status: 200, when: "The file.", content: Content::Text(&["*/*"]) }])
    .problems(&[NotFound]);
}
