//! What can be asked next with what an answer said: the links of the OpenAPI document.

/// A link from an answer to a call.
pub(super) struct Link {
    /// The operation that answered.
    pub(super) from: &'static str,
    /// With which statuses.
    pub(super) statuses: &'static [u16],
    /// The operation that can be asked next.
    pub(super) to: &'static str,
    /// Its parameters, in JSON, with expressions for what was asked or answered.
    pub(super) parameters: &'static str,
    /// Its body, in JSON; empty for none.
    pub(super) body: &'static str,
}

const TICKET: &str = r#"{
    "lock_name": "$response.body#/ticket/lock_name",
    "ticket_id": "$response.body#/ticket/ticket_id",
    "scope": "$request.query.scope"
}"#;
const LOCK: &str = r#"{
    "lock_name": "$response.body#/ticket/lock_name",
    "scope": "$request.query.scope"
}"#;
const BREAK: &str = r#"{
    "fence_token": "$response.body#/ticket/fence_token",
    "reason": "its machine is gone"
}"#;
const THREAD: &str = r#"{
    "number": "$response.body#/number",
    "repo": "$response.body#/scope"
}"#;
const SAME_THREAD: &str = r#"{
    "number": "$request.path.number",
    "repo": "$request.query.repo"
}"#;
const ANSWER_REPLY: &str = r#"{
    "kind": "review",
    "body": "Looks good.",
    "parent": "$response.body#/reply_id"
}"#;
const USER: &str = r#"{ "user": "$response.body#/user" }"#;
const TOKEN: &str = r#"{ "token_id": "$response.body#/token_id" }"#;
const TEAM: &str = r#"{ "team": "$response.body#/team" }"#;
const MEMBER: &str = r#"{ "team": "$response.body#/team", "user": "$response.body#/user" }"#;
const GRANT: &str = r#"{
    "user": "$response.body#/user",
    "scope": "$request.query.scope"
}"#;
const AGENT: &str = r#"{ "name": "$request.body#/name" }"#;

/// All of them.
pub(super) const LINKS: &[Link] = &[
    link("acquire_lock", &[200, 201, 202], "get_lock_ticket", TICKET),
    link("acquire_lock", &[200, 201, 202], "why_lock_ticket", TICKET),
    link("acquire_lock", &[200, 201], "heartbeat_lock_ticket", TICKET),
    link("acquire_lock", &[200, 201, 202], "release_lock_ticket", TICKET),
    link("acquire_lock", &[200, 201, 202], "get_lock", LOCK),
    link("acquire_lock", &[200, 201, 202], "lock_history", LOCK),
    Link { body: BREAK, ..link("acquire_lock", &[200, 201], "break_lock", LOCK) },
    link("create_thread", &[200, 201], "get_thread_tree", THREAD),
    link("create_thread", &[200, 201], "create_reply", THREAD),
    link("create_thread", &[200, 201], "close_thread", THREAD),
    link("create_thread", &[200, 201], "reopen_thread", THREAD),
    link("create_reply", &[200, 201], "get_thread_tree", SAME_THREAD),
    Link { body: ANSWER_REPLY, ..link("create_reply", &[200, 201], "create_reply", SAME_THREAD) },
    link("create_agent", &[201], "revoke_agent_tokens", AGENT),
    link("create_user", &[201], "disable_user", USER),
    link("create_user", &[201], "enable_user", USER),
    Link { body: USER, ..link("create_user", &[201], "create_token", "{}") },
    link("create_token", &[201], "revoke_token", TOKEN),
    link("create_team", &[201], "list_team_members", TEAM),
    link("create_team", &[201], "set_team_member", TEAM),
    link("set_team_member", &[200], "remove_team_member", MEMBER),
    link("grant_access", &[200], "revoke_access", GRANT),
];

const fn link(
    from: &'static str,
    statuses: &'static [u16],
    to: &'static str,
    parameters: &'static str,
) -> Link {
    Link { from, statuses, to, parameters, body: "" }
}
