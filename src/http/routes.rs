//! Every route: method, path, who may call it, and what answers. All of the surface on one page.

use std::pin::Pin;
use std::sync::Arc;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::Method;
use axum::response::Response;
use axum::routing::{MethodFilter, any, on};

use super::admin::{access, ledger, repos, teams, tokens, users};
use super::call::{self, Call};
use super::failure::Failure;
use super::request::method_name;
use super::{
    Api, activity, agents, docs, events, feed_session, locks, mcp, operations, threads, tickets,
    timeline, whoami,
};
use crate::metrics;
use crate::wire::operation::{self, Operation};

/// Who may call a route. There is no default: each route says it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Policy {
    /// Anyone. Shows nothing of anybody.
    Open,
    /// Whoever brings a working token. What its user may do is judged by the core for a command,
    /// and by the service for a read.
    Token,
    /// The same, to go on with a hold or to end it: what spends the holders' budget.
    Holder,
    /// Whoever brings a working token, or a browser's cookie that stands for one.
    TokenOrCookie,
}

/// A route.
struct Route {
    method: Method,
    path: &'static str,
    policy: Policy,
    handler: Handler,
}

type Handler = Arc<dyn Fn(Api, Call) -> Answering + Send + Sync>;
type Answering = Pin<Box<dyn Future<Output = Result<Response, Failure>> + Send>>;

/// All of them. Methods and paths are those of the operations.
fn all() -> Vec<Route> {
    use Policy::{Holder, Open, Token, TokenOrCookie};
    vec![
        // Locks and tickets. Each takes the scope as ?repo=, ?team= or ?user=.
        route(&operation::LIST_LOCKS, Token, locks::list),
        route(&operation::GET_LOCK, Token, locks::get),
        route(&operation::LOCK_HISTORY, Token, locks::history),
        // A picture, or text, by what the caller accepts.
        route(&operation::LOCK_TIMELINE, Token, timeline::get),
        route(&operation::BREAK_LOCK, Token, locks::break_hold),
        route(&operation::ACQUIRE_LOCK, Token, tickets::acquire),
        route(&operation::GET_LOCK_TICKET, Token, tickets::get),
        route(&operation::WHY_LOCK_TICKET, Token, tickets::why),
        route(&operation::RELEASE_LOCK_TICKET, Holder, tickets::release),
        route(&operation::HEARTBEAT_LOCK_TICKET, Holder, tickets::heartbeat),
        // Threads. Each takes the repository as ?repo=.
        route(&operation::LIST_THREADS, Token, threads::list),
        route(&operation::CREATE_THREAD, Token, threads::create),
        route(&operation::GET_THREAD_TREE, Token, threads::get),
        route(&operation::CREATE_REPLY, Token, threads::reply),
        route(&operation::CLOSE_THREAD, Token, threads::close),
        route(&operation::REOPEN_THREAD, Token, threads::reopen),
        // What users say they are doing.
        route(&operation::LIST_ACTIVITY, Token, activity::list),
        route(&operation::UPDATE_USER_ACTIVITY, Token, activity::update),
        route(&operation::CLEAR_USER_ACTIVITY, Token, activity::clear),
        // What concerns the caller.
        route(&operation::LIST_TICKETS, Token, tickets::list_own),
        route(&operation::WHOAMI, Token, whoami::get),
        route(&operation::LIST_AGENTS, Token, agents::list),
        route(&operation::CREATE_AGENT, Token, agents::create),
        route(&operation::REVOKE_AGENT_TOKENS, Token, agents::revoke_tokens),
        // A page of events, or the feed: `watch_events` is the same call with another `Accept`.
        route(&operation::LIST_EVENTS, TokenOrCookie, events::get),
        route(&operation::CREATE_FEED_SESSION, Token, feed_session::create),
        // Administration.
        route(&operation::LIST_USERS, Token, users::list),
        route(&operation::CREATE_USER, Token, users::create),
        route(&operation::DISABLE_USER, Token, users::disable),
        route(&operation::ENABLE_USER, Token, users::enable),
        route(&operation::LIST_TOKENS, Token, tokens::list),
        route(&operation::CREATE_TOKEN, Token, tokens::issue),
        route(&operation::REVOKE_TOKEN, Token, tokens::revoke),
        route(&operation::LIST_TEAMS, Token, teams::list),
        route(&operation::CREATE_TEAM, Token, teams::create),
        route(&operation::LIST_TEAM_MEMBERS, Token, teams::list_members),
        route(&operation::SET_TEAM_MEMBER, Token, teams::set_member),
        route(&operation::REMOVE_TEAM_MEMBER, Token, teams::remove_member),
        route(&operation::LIST_REPOS, Token, repos::list),
        route(&operation::CREATE_REPO, Token, repos::create),
        route(&operation::LIST_ACCESS, Token, access::list),
        route(&operation::GRANT_ACCESS, Token, access::grant),
        route(&operation::REVOKE_ACCESS, Token, access::revoke),
        // The whole ledger.
        route(&operation::EXPORT_LEDGER, Token, ledger::export),
        route(&operation::GET_LEDGER_VERIFICATION, Token, ledger::verification),
        route(&operation::VERIFY_LEDGER, Token, ledger::verify),
        route(&operation::GET_BACKUP, Token, ledger::backup),
        route(&operation::CREATE_BACKUP, Token, ledger::back_up),
        route(&operation::CREATE_CHECKPOINT, Token, ledger::sign),
        // Operations.
        route(&operation::GET_LIVENESS, Open, operations::livez),
        route(&operation::GET_READINESS, Open, operations::readyz),
        // Shows how much there is of what, and nothing by its name.
        route(&operation::GET_METRICS, Open, operations::metrics),
        // What the API is.
        route(&operation::GET_OPENAPI, Open, docs::openapi),
        route(&operation::GET_ASYNCAPI, Open, docs::asyncapi),
        route(&operation::GET_DOCS, Open, docs::front),
        route(&operation::GET_DOCS_FILE, Open, docs::file),
    ]
}

/// Every route's method and path.
pub fn every_route() -> Vec<(String, &'static str)> {
    let calls = all().into_iter().map(|route| (route.method.to_string(), route.path));
    calls.chain([(Method::POST.to_string(), mcp::PATH)]).collect()
}

fn route<H, F>(operation: &Operation, policy: Policy, handler: H) -> Route
where
    H: Fn(Api, Call) -> F + Send + Sync + 'static,
    F: Future<Output = Result<Response, Failure>> + Send + 'static,
{
    let handler: Handler = Arc::new(move |api, call| Box::pin(handler(api, call)));
    let method = match operation.method {
        operation::Method::Get => Method::GET,
        operation::Method::Post => Method::POST,
        operation::Method::Put => Method::PUT,
        operation::Method::Delete => Method::DELETE,
    };
    Route { method, path: operation.path, policy, handler }
}

/// The router of all routes.
pub(super) fn router(api: Api) -> Router {
    let mut router = Router::new();
    for Route { method, path, policy, handler } in all() {
        let operation = metrics::Operation { method: method_name(&method), path };
        let filter = MethodFilter::try_from(method).expect("the table has known methods only");
        let answer = async move |State(api): State<Api>, request: Request| {
            call::answer(api, policy, operation, request, &*handler).await
        };
        router = router.route(path, on(filter, answer));
    }
    let calls = router
        .fallback(async || Failure::NoSuchPath.render(None))
        .method_not_allowed_fallback(async || Failure::NoSuchMethod.render(None))
        .with_state(api.clone());
    let door = mcp::Door::new(api, calls.clone());
    // A protocol of its own, whose calls are those above. It says itself which methods it takes.
    calls.route(mcp::PATH, any(move |request: Request| door.clone().answer(request)))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_operation_has_its_route_and_is_as_open_as_it_says() {
        let routed: BTreeSet<_> = all()
            .iter()
            .map(|r| (r.method.to_string(), r.path, r.policy == Policy::Open))
            .collect();
        let operations = operation::all();
        let described: BTreeSet<_> =
            operations.map(|o| (o.method.as_str().to_owned(), o.path, o.is_open)).collect();
        assert_eq!(routed, described);
    }

    #[test]
    fn what_is_open_is_about_no_one() {
        let open: Vec<&str> =
            all().iter().filter(|r| r.policy == Policy::Open).map(|r| r.path).collect();
        let known = [
            "/livez",
            "/readyz",
            "/metrics",
            "/openapi.json",
            "/asyncapi.json",
            "/docs",
            "/docs/{file}",
        ];
        assert_eq!(open, known);
    }

    #[test]
    fn a_cookie_opens_the_feed_alone() {
        let by_cookie: Vec<_> = all()
            .iter()
            .filter(|r| r.policy == Policy::TokenOrCookie)
            .map(|r| (r.method.to_string(), r.path))
            .collect();
        assert_eq!(by_cookie, [("GET".to_owned(), "/v1/events")]);
    }

    #[test]
    fn no_method_stands_twice_at_one_path() {
        let mut seen: Vec<_> = all().iter().map(|r| (r.path, r.method.to_string())).collect();
        seen.sort();
        let len = seen.len();
        seen.dedup();
        assert_eq!(seen.len(), len);
    }
}
