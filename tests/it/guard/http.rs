//! The layer in a real HTTP service.

use std::sync::{Arc, Mutex};

use axum::Router;
use axum::extract::State;
use axum::routing::put;
use pearing::guard::{FenceLayer, FileStore};

use crate::guard::zombie::{Target, drill};
use crate::support::Server;

/// What was written last, where nothing guards and behind the layer.
type Page = Arc<Mutex<String>>;

async fn read(State(page): State<Page>) -> String {
    page.lock().expect("no panic").clone()
}

async fn write(State(page): State<Page>, body: String) {
    *page.lock().expect("no panic") = body;
}

fn page(page: &Page) -> Router {
    Router::new().route("/", put(write).get(read)).with_state(Arc::clone(page))
}

const FUNCTIONS: &str = r#"
ask() { curl --silent --noproxy '*' --write-out '\n%{http_code}' "$@"; }
fenced() {
  ask --header "Pearing-Scope: $PEARING_SCOPE" --header "Pearing-Lock-Name: $PEARING_LOCK_NAME" \
    --header "Pearing-Fence-Token: $PEARING_FENCE_TOKEN" "$@"
}
claim() { fenced --fail "$SERVICE/guarded"; }
write_plain() { ask --request PUT --data "$NAME" "$SERVICE/plain"; }
write_guarded() { fenced --request PUT --data "$NAME" "$SERVICE/guarded"; }
"#;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_zombies_request_is_refused_and_does_harm_without_the_guard() {
    let server = Server::start();
    let store = FileStore::open(server.home().join("fences")).expect("the folder is ours");
    let (plain, guarded) = (Page::default(), Page::default());
    let service = Router::new()
        .nest("/plain", page(&plain))
        .nest("/guarded", page(&guarded).layer(FenceLayer::new(store)));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("it is bound");
    let serves = tokio::spawn(async move { axum::serve(listener, service).await });

    let variables = [("SERVICE", format!("http://{address}"))];
    let late = drill(&server, &Target { functions: FUNCTIONS, variables: &variables }).await;
    assert!(late.plain.1.ends_with("200"), "{late:?}");
    assert!(late.guarded.1.ends_with("409"), "{late:?}");
    assert!(late.guarded.1.contains(r#""code":"stale-fence""#), "{late:?}");
    assert_eq!(*plain.lock().expect("no panic"), "claude", "the newer write is lost");
    assert_eq!(*guarded.lock().expect("no panic"), "codex");
    let kept = std::fs::read_to_string(server.home().join("fences")).expect("it is there");
    assert!(kept.ends_with("teams/platform/website/locks/deploy\n"), "{kept}");
    serves.abort();
}
