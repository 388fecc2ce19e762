//! Agents, activity and threads in the words of a scenario: what is done, and what is looked at.
//!
//! ```text
//! at 0s   ana  creates agent x                      -> user.created ana.x; token.issued ana.x
//! at 1s   ana  creates thread "fix it" under build fence F -> thread.created number 1 fence F
//! at 2s   ana.x replies to 1 kind question to R1 as R2      -> thread.replied R2 level 2
//! at 3s   ana  closes 1 uuid u1                     -> replay thread 1 closed replies 2
//! at 3s   ana  says "fixes it"                      -> activity.updated ana
//! thread 1        -> open replies 2 tree R1 1, R2 2
//! activity of ana -> "fixes it" set at 3s holding
//! ```

use super::expect;
use super::parse::none_or_rest;
use super::script::{Facts, Fence};
use super::words::Words;

/// A command about agents, activity or threads.
#[derive(Debug)]
pub(super) enum Note {
    /// Make an agent of the caller's, or one more token for it.
    CreateAgent { agent: String, token: Option<String>, days: Option<u32> },
    /// End all tokens of an agent of the caller's.
    RevokeAgentTokens { agent: String },
    /// Say what one is doing.
    Say { text: String, uuid: Option<String> },
    /// Say that one is doing nothing.
    Clear,
    /// Begin a thread.
    CreateThread { new: NewThread, terms: Terms },
    /// Reply to a thread.
    Reply { thread: ThreadWords, reply: Reply, terms: Terms },
    /// Close a thread.
    Close { thread: ThreadWords, terms: Terms },
    /// Reopen a thread.
    Reopen { thread: ThreadWords, terms: Terms },
}

/// A thread in the making.
#[derive(Debug, Default)]
pub(super) struct NewThread {
    /// What it is called.
    pub(super) title: String,
    /// What it is about.
    pub(super) body: String,
    /// The number that it mirrors.
    pub(super) number: Option<u64>,
    /// The repository, if it isn't the default.
    pub(super) repo: Option<String>,
}

/// A reply in the making.
#[derive(Debug)]
pub(super) struct Reply {
    /// What kind it is.
    pub(super) kind: String,
    /// What it says.
    pub(super) body: String,
    /// What it points to.
    pub(super) links: Vec<String>,
    /// The reply that it answers.
    pub(super) parent: Option<String>,
    /// What it is called from here on.
    pub(super) name: Option<String>,
}

/// What a write is tied to.
#[derive(Debug, Default)]
pub(super) struct Terms {
    /// The request's name.
    pub(super) uuid: Option<String>,
    /// The lock that it is made under, and its fence token.
    pub(super) fence: Option<(String, Fence)>,
}

/// A thread as a scenario names it.
#[derive(Debug, Clone)]
pub(super) struct ThreadWords {
    /// Its number.
    pub(super) number: u64,
    /// Its repository, if it isn't the default.
    pub(super) repo: Option<String>,
}

/// Something that is looked at between two batches.
#[derive(Debug)]
pub(super) enum Look {
    /// A thread, now or right before one of its replies; `None` if there is none.
    Thread { thread: ThreadWords, before: Option<String>, expected: Option<Shown> },
    /// The numbers of a repository's threads.
    Threads { repo: String, expected: Vec<String> },
    /// What a user is doing; `None` if it says nothing.
    Activity { user: String, expected: Option<Said> },
    /// Whose activity a user may see, of those who say something.
    Activities { user: String, expected: Vec<String> },
    /// A user's role in a scope.
    Role { user: String, scope: String, expected: String },
    /// The events of the last batch that a user may see.
    Seen { user: String, expected: Vec<String> },
}

/// A thread as it is shown.
#[derive(Debug, Clone)]
pub(super) struct Shown {
    /// Whether it is open.
    pub(super) is_open: bool,
    /// What else is said of it; what isn't said isn't looked at.
    pub(super) facts: Box<Facts>,
    /// All of its replies in the order in which they were written, and how deep each stands.
    pub(super) tree: Option<Vec<(String, u32)>>,
}

/// What somebody says.
#[derive(Debug, Clone)]
pub(super) struct Said {
    /// In its own words.
    pub(super) text: String,
    /// When it said so, if that is looked at.
    pub(super) set_at_millis: Option<i64>,
    /// Whether it holds any lock.
    pub(super) is_holder: bool,
}

/// What a write is answered where it makes nothing happen.
#[derive(Debug, Clone)]
pub(super) enum Unchanged {
    /// The thread as it is now.
    Thread { number: u64, shown: Shown },
    /// What the caller is doing now.
    Activity(Option<Said>),
}

/// Reads a command that begins with this verb; `None` if it is about something else.
pub(super) fn action(verb: &str, words: &mut Words) -> Result<Option<Note>, String> {
    Ok(Some(match verb {
        "creates" if words.take_if("agent") => {
            let agent = words.take("a name of an agent")?;
            let token =
                if words.take_if("token") { Some(words.take("a token's name")?) } else { None };
            let days = if words.take_if("days") { Some(words.take_as("number")?) } else { None };
            Note::CreateAgent { agent, token, days }
        }
        "creates" if words.take_if("thread") => create_thread(words)?,
        "revokes" if words.take_if("tokens") => {
            words.take_exactly("of")?;
            words.take_exactly("agent")?;
            Note::RevokeAgentTokens { agent: words.take("a name of an agent")? }
        }
        "says" => {
            let text = text(words, "an activity")?;
            let uuid =
                if words.take_if("uuid") { Some(words.take("a name of a request")?) } else { None };
            Note::Say { text, uuid }
        }
        "clears" => {
            words.take_exactly("activity")?;
            Note::Clear
        }
        "replies" => {
            words.take_exactly("to")?;
            reply(words)?
        }
        "closes" => {
            let (thread, terms) = turned(words)?;
            Note::Close { thread, terms }
        }
        "reopens" => {
            let (thread, terms) = turned(words)?;
            Note::Reopen { thread, terms }
        }
        _ => return Ok(None),
    }))
}

/// A text in quotes, or `long N`: one of so many characters.
fn text(words: &mut Words, what: &str) -> Result<String, String> {
    if words.take_if("long") {
        return words.take_as("number").map(|length| "x".repeat(length));
    }
    words.take_text(what)
}

fn create_thread(words: &mut Words) -> Result<Note, String> {
    let mut new = NewThread { title: text(words, "a title")?, ..NewThread::default() };
    let mut terms = Terms::default();
    while !words.is_empty() {
        match words.take("a word")?.as_str() {
            "in" => new.repo = Some(words.take("a scope")?),
            "body" => new.body = text(words, "a body")?,
            "number" => new.number = Some(words.take_as("number")?),
            other => term(&mut terms, other, words)?,
        }
    }
    Ok(Note::CreateThread { new, terms })
}

fn reply(words: &mut Words) -> Result<Note, String> {
    let mut thread = ThreadWords { number: words.take_as("number")?, repo: None };
    let (kind, body) = ("note".to_owned(), "it is so".to_owned());
    let mut reply = Reply { kind, body, links: Vec::new(), parent: None, name: None };
    let mut terms = Terms::default();
    while !words.is_empty() {
        match words.take("a word")?.as_str() {
            "in" => thread.repo = Some(words.take("a scope")?),
            "kind" => reply.kind = words.take("a kind")?,
            "body" => reply.body = text(words, "a body")?,
            "link" => reply.links.push(words.take("a link")?),
            "to" => reply.parent = Some(words.take("a reply")?),
            "as" => reply.name = Some(words.take("a name for the reply")?),
            other => term(&mut terms, other, words)?,
        }
    }
    Ok(Note::Reply { thread, reply, terms })
}

fn turned(words: &mut Words) -> Result<(ThreadWords, Terms), String> {
    let mut thread = ThreadWords { number: words.take_as("number")?, repo: None };
    let mut terms = Terms::default();
    while !words.is_empty() {
        match words.take("a word")?.as_str() {
            "in" => thread.repo = Some(words.take("a scope")?),
            other => term(&mut terms, other, words)?,
        }
    }
    Ok((thread, terms))
}

fn term(terms: &mut Terms, word: &str, words: &mut Words) -> Result<(), String> {
    match word {
        "uuid" => terms.uuid = Some(words.take("a name of a request")?),
        "under" => {
            let lock = words.take("a lock")?;
            words.take_exactly("fence")?;
            terms.fence = Some((lock, expect::fence(words)?));
        }
        other => return Err(words.fails(format!("unknown word {other:?}"))),
    }
    Ok(())
}

/// Reads a line that begins with this word and looks at something; `None` if it doesn't.
pub(super) fn look(
    first: &str,
    words: &mut Words,
    mut expected: Words,
) -> Result<Option<Look>, String> {
    let look = match first {
        "thread" => {
            let mut thread = ThreadWords { number: words.take_as("number")?, repo: None };
            if words.take_if("in") {
                thread.repo = Some(words.take("a scope")?);
            }
            let before = if words.take_if("before") { Some(words.take("a reply")?) } else { None };
            let is_absent = expected.take_if("absent");
            let shown = if is_absent { None } else { Some(shown(&mut expected)?) };
            expected.end()?;
            Look::Thread { thread, before, expected: shown }
        }
        "threads" => {
            words.take_exactly("in")?;
            let repo = words.take("a scope")?;
            Look::Threads { repo, expected: none_or_rest(&mut expected, "a number")? }
        }
        "activity" => {
            words.take_exactly("of")?;
            let user = words.take("a user")?;
            let said = said(&mut expected)?;
            expected.end()?;
            Look::Activity { user, expected: said }
        }
        "activities" => {
            let user = seen_by(words)?;
            Look::Activities { user, expected: none_or_rest(&mut expected, "a user")? }
        }
        "role" => {
            words.take_exactly("of")?;
            let user = words.take("a user")?;
            words.take_exactly("in")?;
            let scope = words.take("a scope")?;
            let role = expected.take("a role, or none")?;
            expected.end()?;
            Look::Role { user, scope, expected: role }
        }
        "events" => {
            let user = seen_by(words)?;
            Look::Seen { user, expected: none_or_rest(&mut expected, "a type of events")? }
        }
        _ => return Ok(None),
    };
    words.end()?;
    Ok(Some(look))
}

fn seen_by(words: &mut Words) -> Result<String, String> {
    words.take_exactly("seen")?;
    words.take_exactly("by")?;
    words.take("a user")
}

fn shown(words: &mut Words) -> Result<Shown, String> {
    let is_open = match words.take("open or closed")?.as_str() {
        "open" => true,
        "closed" => false,
        other => return Err(words.fails(format!("no thread is ever {other:?}"))),
    };
    let facts = Box::new(expect::facts(words, Some("tree"))?);
    let mut tree = None;
    if words.take_if("tree") {
        let mut replies = Vec::new();
        for mut reply in words.split(",")? {
            replies.push((reply.take("a reply")?, reply.take_as("number")?));
            reply.end()?;
        }
        tree = Some(replies);
        words.skip_all();
    }
    Ok(Shown { is_open, facts, tree })
}

fn said(words: &mut Words) -> Result<Option<Said>, String> {
    if words.take_if("none") {
        return Ok(None);
    }
    let text = words.take_text("an activity")?;
    let mut said = Said { text, set_at_millis: None, is_holder: false };
    if words.take_if("set") {
        words.take_exactly("at")?;
        said.set_at_millis = Some(words.take_millis()?);
    }
    said.is_holder = words.take_if("holding");
    Ok(Some(said))
}

/// Reads what a write is answered where nothing happened; `None` if it is about something else.
pub(super) fn unchanged(words: &mut Words) -> Result<Option<Unchanged>, String> {
    if words.take_if("thread") {
        let number = words.take_as("number")?;
        return Ok(Some(Unchanged::Thread { number, shown: shown(words)? }));
    }
    if words.take_if("activity") {
        return Ok(Some(Unchanged::Activity(said(words)?)));
    }
    Ok(None)
}
