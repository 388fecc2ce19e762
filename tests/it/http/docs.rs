//! The documents of the API and the page that shows them.

use std::collections::BTreeSet;

use serde_json::Value;

use super::assert_problem;
use crate::support::{Client, Server};

/// Status, headers and text of what lies at a path.
async fn look(client: &Client, path: &str) -> (u16, Vec<(String, String)>, String) {
    let response = client.request("GET", path).send().await.expect("an answer");
    let status = response.status().as_u16();
    let text = |value: &reqwest::header::HeaderValue| value.to_str().expect("text").to_owned();
    let headers = response.headers().iter();
    let headers = headers.map(|(name, value)| (name.to_string(), text(value))).collect();
    let body = String::from_utf8_lossy(&response.bytes().await.expect("a body")).into_owned();
    (status, headers, body)
}

fn header<'a>(headers: &'a [(String, String)], name: &str) -> &'a str {
    headers.iter().find(|(known, _)| known == name).map_or("", |(_, value)| value)
}

/// What a page loads, as it says it.
fn loaded(page: &str) -> BTreeSet<&str> {
    let values = page
        .split([' ', '\n'])
        .filter_map(|word| word.strip_prefix("src=\"").or_else(|| word.strip_prefix("href=\"")));
    values.filter_map(|value| value.split('"').next()).collect()
}

#[tokio::test]
async fn the_page_of_the_api_loads_all_that_it_needs_from_the_server_itself() {
    let server = Server::start();
    let nobody = server.client_without_token();
    let (status, headers, page) = look(&nobody, "/docs").await;
    assert_eq!((status, header(&headers, "content-type")), (200, "text/html"), "{page}");
    assert_eq!(loaded(&page), BTreeSet::from(["docs/index.html"]));
    let (status, headers, page) = look(&nobody, "/docs/index.html").await;
    assert_eq!((status, header(&headers, "content-type")), (200, "text/html"), "{page}");
    assert!(header(&headers, "content-security-policy").starts_with("default-src 'self';"));
    let files = loaded(&page);
    assert!(files.len() >= 6, "{files:?}");
    for file in files {
        assert!(!file.contains("://") && !file.starts_with('/'), "{file}");
        let file = file.trim_start_matches("./");
        let (status, headers, _) = look(&nobody, &format!("/docs/{file}")).await;
        let media_type = match file.rsplit('.').next() {
            Some("css") => "text/css",
            Some("js") => "text/javascript",
            Some("png") => "image/png",
            _ => panic!("nobody knows {file}"),
        };
        assert_eq!((status, header(&headers, "content-type")), (200, media_type), "{file}");
        assert_eq!(header(&headers, "x-content-type-options"), "nosniff");
        assert_eq!(header(&headers, "cache-control"), "public, max-age=300");
    }
    let (_, _, start) = look(&nobody, "/docs/swagger-initializer.js").await;
    assert!(start.contains("\"../openapi.json\"") && !start.contains("://"), "{start}");
    for absent in ["/docs/nothing", "/docs/..%2fopenapi.json", "/docs/"] {
        assert_problem(&nobody.get(absent).await, 404, "not-found");
    }
}

#[tokio::test]
async fn the_page_may_ask_the_server_that_it_is_from() {
    let server = Server::start();
    let claude = server.client("claude");
    let origin = server.url().to_owned();
    for path in ["/openapi.json", "/v1/whoami"] {
        let request = claude.request("GET", path).header("origin", &origin);
        assert_eq!(Client::send(request).await.expect("an answer").status, 200, "{path}");
        let request = claude.request("GET", path).header("origin", "https://evil.example");
        assert_eq!(Client::send(request).await.expect("an answer").status, 403, "{path}");
    }
}

#[tokio::test]
async fn the_documents_are_those_that_are_checked_in() {
    let server = Server::start();
    let nobody = server.client_without_token();
    for (path, text) in [
        ("/openapi.json", include_str!("../../../schemas/openapi.json")),
        ("/asyncapi.json", include_str!("../../../schemas/asyncapi.json")),
    ] {
        let reply = nobody.get(path).await;
        let document: Value = serde_json::from_str(text).expect("it is JSON");
        assert_eq!((reply.status, reply.body), (200, document), "{path}");
        assert_eq!(reply.headers["content-type"], "application/json");
    }
}
