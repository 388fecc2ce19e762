//! Every route: method, path, who may call it, and what answers. All of the surface on one page.

use std::pin::Pin;
use std::sync::Arc;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::Method;
use axum::response::Response;
use axum::routing::{MethodFilter, on};

use super::admin::{access, repos, teams, tokens, users};
use super::call::{self, Call};
use super::failure::Failure;
use super::request::method_name;
use super::{
    Api, activity, agents, events, feed_session, locks, operations, threads, tickets, whoami,
};
use crate::metrics::Operation;

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

const DELETE: Method = Method::DELETE;
const GET: Method = Method::GET;
const POST: Method = Method::POST;
const PUT: Method = Method::PUT;

/// All of them.
fn all() -> Vec<Route> {
    use Policy::{Holder, Open, Token, TokenOrCookie};
    vec![
        // Locks and tickets. Each takes the scope as ?repo=, ?team= or ?user=.
        route(GET, "/v1/locks", Token, locks::list),
        route(GET, "/v1/locks/{lock_name}", Token, locks::get),
        route(GET, "/v1/locks/{lock_name}/history", Token, locks::history),
        route(POST, "/v1/locks/{lock_name}/break", Token, locks::break_hold),
        route(POST, "/v1/locks/{lock_name}/tickets", Token, tickets::acquire),
        route(GET, "/v1/locks/{lock_name}/tickets/{ticket_id}", Token, tickets::get),
        route(DELETE, "/v1/locks/{lock_name}/tickets/{ticket_id}", Holder, tickets::release),
        route(
            POST,
            "/v1/locks/{lock_name}/tickets/{ticket_id}/heartbeat",
            Holder,
            tickets::heartbeat,
        ),
        // Threads. Each takes the repository as ?repo=.
        route(GET, "/v1/threads", Token, threads::list),
        route(POST, "/v1/threads", Token, threads::create),
        route(GET, "/v1/threads/{number}", Token, threads::get),
        route(POST, "/v1/threads/{number}/replies", Token, threads::reply),
        route(POST, "/v1/threads/{number}/close", Token, threads::close),
        route(POST, "/v1/threads/{number}/reopen", Token, threads::reopen),
        // What users say they are doing.
        route(GET, "/v1/activity", Token, activity::list),
        route(PUT, "/v1/activity", Token, activity::update),
        route(DELETE, "/v1/activity", Token, activity::clear),
        // What concerns the caller.
        route(GET, "/v1/tickets", Token, tickets::list_own),
        route(GET, "/v1/whoami", Token, whoami::get),
        route(GET, "/v1/agents", Token, agents::list),
        route(POST, "/v1/agents", Token, agents::create),
        route(DELETE, "/v1/agents/{name}/tokens", Token, agents::revoke_tokens),
        // The feed, or a page of events.
        route(GET, "/v1/events", TokenOrCookie, events::get),
        route(POST, "/v1/feed-session", Token, feed_session::create),
        // Administration.
        route(GET, "/v1/admin/users", Token, users::list),
        route(POST, "/v1/admin/users", Token, users::create),
        route(POST, "/v1/admin/users/{user}/disable", Token, users::disable),
        route(POST, "/v1/admin/users/{user}/enable", Token, users::enable),
        route(GET, "/v1/admin/tokens", Token, tokens::list),
        route(POST, "/v1/admin/tokens", Token, tokens::issue),
        route(DELETE, "/v1/admin/tokens/{token_id}", Token, tokens::revoke),
        route(GET, "/v1/admin/teams", Token, teams::list),
        route(POST, "/v1/admin/teams", Token, teams::create),
        route(GET, "/v1/admin/teams/{team}/members", Token, teams::list_members),
        route(PUT, "/v1/admin/teams/{team}/members/{user}", Token, teams::set_member),
        route(DELETE, "/v1/admin/teams/{team}/members/{user}", Token, teams::remove_member),
        route(GET, "/v1/admin/repos", Token, repos::list),
        route(POST, "/v1/admin/repos", Token, repos::create),
        route(GET, "/v1/admin/access", Token, access::list),
        route(PUT, "/v1/admin/access/{user}", Token, access::grant),
        route(DELETE, "/v1/admin/access/{user}", Token, access::revoke),
        // Operations.
        route(GET, "/livez", Open, operations::livez),
        route(GET, "/readyz", Open, operations::readyz),
        // Shows how much there is of what, and nothing by its name.
        route(GET, "/metrics", Open, operations::metrics),
    ]
}

/// Every route's method and path.
pub fn every_route() -> Vec<(String, &'static str)> {
    all().into_iter().map(|route| (route.method.to_string(), route.path)).collect()
}

fn route<H, F>(method: Method, path: &'static str, policy: Policy, handler: H) -> Route
where
    H: Fn(Api, Call) -> F + Send + Sync + 'static,
    F: Future<Output = Result<Response, Failure>> + Send + 'static,
{
    let handler: Handler = Arc::new(move |api, call| Box::pin(handler(api, call)));
    Route { method, path, policy, handler }
}

/// The router of all routes.
pub(super) fn router(api: Api) -> Router {
    let mut router = Router::new();
    for Route { method, path, policy, handler } in all() {
        let operation = Operation { method: method_name(&method), path };
        let filter = MethodFilter::try_from(method).expect("the table has known methods only");
        let answer = async move |State(api): State<Api>, request: Request| {
            call::answer(api, policy, operation, request, &*handler).await
        };
        router = router.route(path, on(filter, answer));
    }
    router
        .fallback(async || Failure::NoSuchPath.render(None))
        .method_not_allowed_fallback(async || Failure::NoSuchMethod.render(None))
        .with_state(api)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_operations_are_open() {
        let open: Vec<&str> =
            all().iter().filter(|r| r.policy == Policy::Open).map(|r| r.path).collect();
        assert_eq!(open, ["/livez", "/readyz", "/metrics"]);
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
