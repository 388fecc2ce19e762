//! The Model Context Protocol: over `/mcp` and over the stdio of `pearing-cli mcp`, with clients
//! that others wrote, and by hand where it is about bytes.

mod clients;
mod conformance;
mod rules;

use serde_json::{Value, json};

use crate::support::{Client, Reply};

/// A version of the protocol with a handshake.
const VERSION: &str = "2025-11-25";

/// A request with one message to `/mcp`, as a client of the protocol makes it.
fn request(client: &Client, message: &Value) -> reqwest::RequestBuilder {
    client
        .request("POST", "/mcp")
        .header("Accept", "application/json, text/event-stream")
        .header("Content-Type", "application/json")
        .header("MCP-Protocol-Version", VERSION)
        .body(message.to_string())
}

/// Sends one message to `/mcp`.
async fn send(client: &Client, message: &Value) -> Reply {
    Client::send(request(client, message)).await.expect("it is answered")
}

/// Calls a tool over `/mcp`: its result.
async fn call(client: &Client, name: &str, given: Value) -> Value {
    let params = json!({ "name": name, "arguments": given });
    let message = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
    let reply = send(client, &message).await;
    assert_eq!(reply.status, 200, "{}", reply.body);
    reply.body["result"].clone()
}
