//! A call of the API as it is made, before it is on its way: by the typed client, or by the server
//! to itself.

use std::fmt::Write as _;

use serde_json::Value;

use super::operation::Method;

/// A call.
#[derive(Debug, Clone, PartialEq)]
pub struct Ask {
    /// The method.
    pub method: Method,
    /// The parts of the path after `v1`, as they are meant.
    pub path: Vec<String>,
    /// The parameters, as they are meant.
    pub query: Vec<(&'static str, String)>,
    /// The body.
    pub body: Option<Value>,
    /// How long the answer is to be held back while a ticket waits, in seconds.
    pub wait_seconds: u32,
    /// Whether it can be repeated when its answer got lost.
    pub is_harmless: bool,
}

impl Ask {
    /// A read.
    pub fn get(path: &[&str], query: Vec<(&'static str, String)>) -> Self {
        let path = path.iter().map(|part| (*part).to_owned()).collect();
        Self { method: Method::Get, path, query, body: None, wait_seconds: 0, is_harmless: true }
    }

    /// Where it goes, on any server: the path and the query, with their escapes.
    pub fn target(&self) -> String {
        let mut target = "/v1".to_owned();
        for part in &self.path {
            target.push('/');
            encode(part, &mut target);
        }
        for (n, (name, value)) in self.query.iter().enumerate() {
            target.push(if n == 0 { '?' } else { '&' });
            target.push_str(name);
            target.push('=');
            encode(value, &mut target);
        }
        target
    }
}

fn encode(part: &str, into: &mut String) {
    for byte in part.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            into.push(char::from(byte));
        } else {
            // Text takes whatever is written to it.
            let _ = write!(into, "%{byte:02X}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_in_a_name_leads_elsewhere() {
        let query = vec![("repo", "teams/a/b".to_owned()), ("lock", "x&y=ü".to_owned())];
        let ask = Ask::get(&["locks", "../a?b=c#d", "thread-work.42"], query);
        let path = "/v1/locks/..%2Fa%3Fb%3Dc%23d/thread-work.42";
        assert_eq!(ask.target(), format!("{path}?repo=teams%2Fa%2Fb&lock=x%26y%3D%C3%BC"));
    }
}
