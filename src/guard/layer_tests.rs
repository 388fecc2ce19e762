//! The layer in front of a service that ends a request when it is told to.

use std::collections::HashMap;
use std::convert::Infallible;
use std::sync::Mutex;

use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use super::*;

/// Tells the requests at work to end.
#[derive(Clone, Default)]
struct Work(Arc<Mutex<HashMap<String, oneshot::Sender<()>>>>);

impl Work {
    fn has_begun(&self, path: &str) -> bool {
        self.0.lock().expect("no panic").contains_key(path)
    }

    fn end(&self, path: &str) {
        let told = self.0.lock().expect("no panic").remove(path).expect("it is at work");
        told.send(()).expect("it waits");
    }
}

impl Service<Request<String>> for Work {
    type Response = Response<String>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response<String>, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<String>) -> Self::Future {
        let path = request.uri().path().to_owned();
        let (ends, ended) = oneshot::channel();
        if path != "/quick" {
            self.0.lock().expect("no panic").insert(path, ends);
        }
        Box::pin(async move {
            // Told, or not to be waited for.
            let _ = ended.await;
            Ok(Response::new("done".to_owned()))
        })
    }
}

type Fenced = FenceService<Work, MemoryStore>;

fn fenced() -> (Fenced, Work) {
    let work = Work::default();
    (FenceLayer::default().layer(work.clone()), work)
}

fn request(method: &str, path: &str, fence: &str) -> Request<String> {
    let request = Request::builder().method(method).uri(path);
    let request = request.header(SCOPE_HEADER, "users/ana").header(LOCK_HEADER, "deploy");
    request.header(TOKEN_HEADER, fence).body(String::new()).expect("a request")
}

async fn ask(service: &Fenced, request: Request<String>) -> (u16, String) {
    let answer = service.clone().call(request).await.expect("it can't fail");
    let status = answer.status().as_u16();
    if status == 200 {
        return (status, answer.into_body());
    }
    assert_eq!(answer.headers()[CONTENT_TYPE], "application/problem+json");
    let problem: serde_json::Value = serde_json::from_str(answer.body()).expect("JSON");
    assert_eq!(problem["status"], status);
    (status, problem["code"].as_str().expect("a code").to_owned())
}

async fn quick(service: &Fenced, method: &str, fence: &str) -> u16 {
    ask(service, request(method, "/quick", fence)).await.0
}

fn begin(service: &Fenced, path: &str, fence: u64) -> JoinHandle<(u16, String)> {
    let (service, request) = (service.clone(), request("PUT", path, &fence.to_string()));
    tokio::spawn(async move { ask(&service, request).await })
}

/// Lets every task run on until it waits.
async fn settle() {
    for _ in 0..20 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn lower_is_refused_and_equal_is_accepted() {
    let (service, _) = fenced();
    assert_eq!(quick(&service, "PUT", "7").await, 200);
    assert_eq!(quick(&service, "PUT", "7").await, 200);
    assert_eq!(quick(&service, "PUT", "6").await, 409);
    assert_eq!(quick(&service, "GET", "8").await, 200, "a read claims");
    assert_eq!(quick(&service, "PUT", "7").await, 409);
    assert_eq!(quick(&service, "GET", "7").await, 409, "a stale holder is told so early");
    assert_eq!(quick(&service, "PUT", "8").await, 200);
    let mut other = request("PUT", "/quick", "1");
    other.headers_mut().insert(LOCK_HEADER, HeaderValue::from_static("another"));
    assert_eq!(ask(&service, other).await.0, 200, "each lock has its own");
    let refused = ask(&service, request("POST", "/quick", "3")).await;
    assert_eq!(refused, (409, "stale-fence".to_owned()));
}

#[tokio::test]
async fn what_says_nothing_of_a_hold_may_only_read() {
    let (service, _) = fenced();
    let plain = |method: &str| {
        Request::builder().method(method).uri("/quick").body(String::new()).expect("a request")
    };
    for (method, status) in
        [("GET", 200), ("HEAD", 200), ("PUT", 428), ("POST", 428), ("DELETE", 428), ("PATCH", 428)]
    {
        assert_eq!(ask(&service, plain(method)).await.0, status, "{method}");
    }
    for wrong in ["", "x", "0", "-1", "1.5", " 7", "9007199254740992"] {
        let refused = ask(&service, request("GET", "/quick", wrong)).await;
        assert_eq!(refused, (422, "invalid-argument".to_owned()), "{wrong:?}");
    }
    let mut half = request("GET", "/quick", "7");
    half.headers_mut().remove(LOCK_HEADER);
    assert_eq!(ask(&service, half).await, (428, "fence-required".to_owned()));
    let mut twice = request("PUT", "/quick", "7");
    twice.headers_mut().append(TOKEN_HEADER, HeaderValue::from_static("8"));
    assert_eq!(ask(&service, twice).await.0, 422);
}

#[tokio::test]
async fn a_newer_holder_waits_for_what_an_older_one_has_at_work() {
    let (service, work) = fenced();
    let (old, twin) = (begin(&service, "/old", 5), begin(&service, "/twin", 5));
    settle().await;
    assert!(work.has_begun("/old") && work.has_begun("/twin"), "equal ones go together");
    let new = begin(&service, "/new", 6);
    settle().await;
    assert!(!work.has_begun("/new"));
    assert_eq!(quick(&service, "PUT", "5").await, 409, "it has arrived, so no older one begins");
    work.end("/old");
    settle().await;
    assert!(!work.has_begun("/new"), "one is still at work");
    // As when a client has gone away.
    twin.abort();
    settle().await;
    assert!(work.has_begun("/new"));
    work.end("/new");
    assert_eq!(old.await.expect("it ended").0, 200);
    assert_eq!(new.await.expect("it ended").0, 200);
    assert!(service.shared.gates.is_empty(), "idle locks take no memory");
}

#[tokio::test]
async fn who_waits_is_overtaken_by_a_newer_one() {
    let (service, work) = fenced();
    let first = begin(&service, "/first", 1);
    settle().await;
    let second = begin(&service, "/second", 2);
    settle().await;
    let third = begin(&service, "/third", 3);
    settle().await;
    work.end("/first");
    assert_eq!(first.await.expect("it ended").0, 200);
    assert_eq!(second.await.expect("it ended"), (409, "stale-fence".to_owned()));
    settle().await;
    work.end("/third");
    assert_eq!(third.await.expect("it ended").0, 200);
}

/// Says yes to a claim only when it is told to.
#[derive(Debug)]
struct SlowStore(MemoryStore, tokio::sync::Semaphore);

impl FenceStore for SlowStore {
    async fn raise(
        &self,
        lock: &LockKey,
        fence: FenceToken,
    ) -> Result<FenceToken, crate::guard::StoreError> {
        let newest = self.0.raise(lock, fence).await;
        if fence.0.0 == 1 {
            let _permit = self.1.acquire().await.expect("it is never closed");
        }
        newest
    }
}

#[tokio::test]
async fn who_is_overtaken_between_its_claim_and_the_gate_is_refused() {
    let store = SlowStore(MemoryStore::default(), tokio::sync::Semaphore::new(0));
    let layer = FenceLayer::new(store);
    let service = layer.layer(Work::default());
    let ask = |fence: &str| {
        let mut service = service.clone();
        let request = request("PUT", "/quick", fence);
        async move { service.call(request).await.expect("it can't fail").status().as_u16() }
    };
    let slow = tokio::spawn(ask("1"));
    settle().await;
    assert_eq!(ask("2").await, 200);
    layer.shared.store.1.add_permits(1);
    assert_eq!(slow.await.expect("it ended"), 409);
}

#[derive(Debug)]
struct Broken;

impl FenceStore for Broken {
    async fn raise(
        &self,
        _: &LockKey,
        _: FenceToken,
    ) -> Result<FenceToken, crate::guard::StoreError> {
        Err(std::io::Error::other("no disk").into())
    }
}

#[tokio::test]
async fn a_store_that_cannot_say_admits_nothing() {
    let mut service = FenceLayer::new(Broken).layer(Work::default());
    let answer = service.call(request("GET", "/quick", "7")).await.expect("it can't fail");
    assert_eq!(answer.status(), StatusCode::SERVICE_UNAVAILABLE);
    assert!(!answer.body().contains("no disk"), "that is nobody's business");
}
