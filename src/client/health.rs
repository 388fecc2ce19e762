//! What can be seen of a server besides its calls: whether it is ready, which version it is, what
//! its clock says, and whether it speaks MCP.

use std::time::Duration;

use jiff::fmt::rfc2822::DateTimeParser;
use reqwest::header::{ACCEPT, DATE};
use reqwest::{Response, Url};
use serde_json::{Value, json};

use super::error::ClientError;
use super::transport::{Client, no_answer};
use crate::domain::time::Time;

/// How long each look may take.
const TIMEOUT: Duration = Duration::from_secs(10);
/// The most bytes of an answer that are read.
const BYTES_MAX: usize = 4 * 1024 * 1024;
/// How its metrics say the version.
const VERSION: &str = "pearing_build_info{version=\"";

/// What was seen of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seen {
    /// Whether it takes requests.
    pub is_ready: bool,
    /// Its version, if it shows its metrics.
    pub version: Option<String>,
    /// What its clock, or that of something in between, said when it answered; in whole seconds.
    pub time: Option<Time>,
}

impl Client {
    /// Looks at the server.
    ///
    /// # Errors
    /// There is no answer.
    pub async fn look(&self) -> Result<Seen, ClientError> {
        let ready = self.look_at("readyz").await?;
        let date = ready.headers().get(DATE).and_then(|date| date.to_str().ok());
        let time = date.and_then(|date| DateTimeParser::new().parse_timestamp(date).ok());
        let time = time.map(|time| Time::from_millis(time.as_millisecond()));
        let is_ready = ready.status().is_success();
        let metrics = match self.look_at("metrics").await {
            Ok(metrics) if metrics.status().is_success() => text(metrics, |_| false).await?,
            // Whoever runs it may keep them to itself.
            Ok(_) | Err(_) => String::new(),
        };
        let version = metrics.split_once(VERSION).and_then(|(_, rest)| rest.split_once('"'));
        let version = version.map(|(version, _)| version.to_owned());
        Ok(Seen { is_ready, version, time })
    }

    /// Begins to speak MCP with it. `None` if there is no such path.
    ///
    /// # Errors
    /// There is no answer, or it isn't one of MCP.
    pub async fn try_mcp(&self) -> Result<Option<()>, ClientError> {
        let accept = "application/json, text/event-stream";
        let request = self.http.post(self.beside_calls("mcp")).timeout(TIMEOUT);
        let request = request.header(ACCEPT, accept).json(&mcp_hello());
        let answer = request.send().await.map_err(|e| no_answer(&e))?;
        let status = answer.status();
        if status.as_u16() == 404 {
            return Ok(None);
        }
        // As a stream it may stay open after the answer.
        let text = text(answer, |so_far| so_far.contains("\"protocolVersion\"")).await?;
        if status.is_success() && text.contains("\"protocolVersion\"") {
            return Ok(Some(()));
        }
        Err(ClientError::Unexpected(format!("HTTP {status}, and not MCP")))
    }

    async fn look_at(&self, path: &str) -> Result<Response, ClientError> {
        let request = self.http.get(self.beside_calls(path)).timeout(TIMEOUT);
        request.send().await.map_err(|e| no_answer(&e))
    }

    /// An address that is not below `/v1`.
    fn beside_calls(&self, path: &str) -> Url {
        let mut url = self.base.clone();
        let mut segments = url.path_segments_mut().expect("an http address has a path");
        segments.pop_if_empty().push(path);
        drop(segments);
        url
    }
}

/// The first message of an MCP client.
pub fn mcp_hello() -> Value {
    json!({
        "jsonrpc": "2.0",
        "id": 1,
        "method": "initialize",
        "params": {
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": { "name": "pearing-cli", "version": env!("CARGO_PKG_VERSION") },
        },
    })
}

/// The text of an answer, up to its end or to where that is enough.
async fn text(
    mut response: Response,
    is_enough: impl Fn(&str) -> bool,
) -> Result<String, ClientError> {
    let mut text = String::new();
    while let Some(chunk) = response.chunk().await.map_err(|e| no_answer(&e))? {
        text.push_str(&String::from_utf8_lossy(&chunk));
        if is_enough(&text) || text.len() > BYTES_MAX {
            break;
        }
    }
    Ok(text)
}
