//! A page in Chromium without a window, driven over a pipe by the browser's own protocol.
//!
//! When the pipe's other end is gone, the browser ends too, so none outlives a test that is
//! killed.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, channel};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::PATIENCE;

/// What the browser does without: whatever asks for more than a page and this machine.
const FLAGS: [&str; 11] = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--no-proxy-server",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
];

/// A page, and the browser that shows it. It is ended when this is dropped.
pub(super) struct Page {
    browser: Child,
    session: Value,
    pipe: Mutex<Pipe>,
    /// Deleted at the end.
    _profile: TempDir,
}

/// Messages to the browser and from it.
struct Pipe {
    commands: ChildStdin,
    messages: Receiver<Value>,
    asked: u64,
}

impl Page {
    /// Opens an address in a browser of its own.
    pub(super) fn open(url: &str) -> Self {
        let profile = tempfile::tempdir().expect("there can be a temporary directory");
        // The browser reads commands from descriptor 3 and answers on 4.
        let mut command = Command::new("sh");
        command.args(["-c", "exec \"$@\" 3<&0 4>&1 < /dev/null > /dev/null 2>&1", "sh"]);
        command.arg("chromium").args(FLAGS).arg("--remote-debugging-pipe");
        command.arg(format!("--user-data-dir={}", profile.path().display()));
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut browser = command.spawn().expect("there is a shell");
        let commands = browser.stdin.take().expect("stdin is piped");
        let answers = BufReader::new(browser.stdout.take().expect("stdout is piped"));
        let (sender, messages) = channel();
        // It ends by itself, with the browser.
        let reader = std::thread::Builder::new().name("test-browser".to_owned()).spawn(move || {
            for message in answers.split(0).map_while(Result::ok) {
                let message = serde_json::from_slice(&message).expect("the browser speaks JSON");
                if sender.send(message).is_err() {
                    return;
                }
            }
        });
        reader.expect("there can be a further thread");
        let pipe = Mutex::new(Pipe { commands, messages, asked: 0 });
        let mut page = Self { browser, session: Value::Null, pipe, _profile: profile };
        let target = page.ask("Target.createTarget", &json!({ "url": "about:blank" }));
        let attach = json!({ "targetId": target["targetId"], "flatten": true });
        page.session = page.ask("Target.attachToTarget", &attach)["sessionId"].clone();
        let shown = page.ask("Page.navigate", &json!({ "url": url }));
        assert_eq!(shown["errorText"], Value::Null, "{url}");
        page
    }

    /// What an expression comes to, in the page; of a promise, what it is kept with.
    pub(super) fn value(&self, expression: &str) -> Value {
        let ask = json!({ "expression": expression, "awaitPromise": true, "returnByValue": true });
        let answer = self.ask("Runtime.evaluate", &ask);
        assert_eq!(answer["exceptionDetails"], Value::Null, "{expression}");
        answer["result"]["value"].clone()
    }

    /// Calls a function of the page's language with these arguments.
    pub(super) fn call(&self, function: &str, arguments: &[Value]) -> Value {
        let arguments: Vec<String> = arguments.iter().map(Value::to_string).collect();
        self.value(&format!("({function})({})", arguments.join(", ")))
    }

    fn ask(&self, method: &str, parameters: &Value) -> Value {
        let mut pipe = self.pipe.lock().expect("no asker panics with it");
        pipe.asked += 1;
        let mut ask = json!({ "id": pipe.asked, "method": method, "params": parameters });
        if !self.session.is_null() {
            ask["sessionId"] = self.session.clone();
        }
        let sent = pipe.commands.write_all(format!("{ask}\0").as_bytes());
        sent.expect("chromium runs; it is installed by: scripts/setup tests");
        loop {
            let message = pipe.messages.recv_timeout(PATIENCE);
            let message = message.unwrap_or_else(|error| {
                panic!("{method}: {error}; chromium is installed by: scripts/setup tests")
            });
            // Others are about what happens in the browser.
            if message["id"] == pipe.asked {
                assert_eq!(message["error"], Value::Null, "{method}");
                return message["result"].clone();
            }
        }
    }
}

impl Drop for Page {
    fn drop(&mut self) {
        // It may have ended already. What it has started ends with it.
        let _ = self.browser.kill();
        let _ = self.browser.wait();
    }
}
