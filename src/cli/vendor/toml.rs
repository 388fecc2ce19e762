//! Our entry in the TOML file of Codex: an MCP server.
//!
//! Everything else in it, order, comments and white space, stays as it is. No error repeats any of
//! the file's text, since others may keep secrets in there.

use std::ops::Range;

use toml_edit::{Array, Document, DocumentMut, Item, Table, TableLike, TomlError, value};

use super::entry::{SERVER, Server};
use super::json::Edited;

const SERVERS: &str = "mcp_servers";
const TIMEOUT: &str = "tool_timeout_sec";
/// How long Codex waits for a tool, in seconds. Ours wait up to 45 s for a lock.
const TIMEOUT_SECONDS: i64 = 120;
const TIMEOUT_SECONDS_MIN: f64 = 60.0;

/// Puts our MCP server in. The text comes back as it is if it is there already.
pub(super) fn put_server(text: &str, server: &Server) -> Edited {
    edit(text, |document| {
        let all = document.entry(SERVERS).or_insert_with(|| {
            let mut table = Table::new();
            table.set_implicit(true);
            Item::Table(table)
        });
        let all = all.as_table_like_mut().ok_or(format!("{SERVERS} is no table"))?;
        let Some(there) = all.get_mut(SERVER) else {
            let mut table = Table::new();
            fill(&mut table, server);
            all.insert(SERVER, Item::Table(table));
            return Ok(());
        };
        let found = there.as_table_like().and_then(server_of).filter(Server::is_ours);
        let there = there.as_table_like_mut().filter(|_| found.is_some());
        let there = there.ok_or(format!("{SERVERS}.{SERVER} is there, and not ours"))?;
        if found.as_ref() != Some(server) || !waits_long_enough(there) {
            fill(there, server);
        }
        Ok(())
    })
}

/// Takes our MCP server out.
pub(super) fn remove_server(text: &str) -> Edited {
    if server(text)?.is_none_or(|server| !server.is_ours()) {
        return Ok(text.to_owned());
    }
    let document = Document::parse(text).map_err(|error| no_toml(text, &error))?;
    let ours = document.get(SERVERS).and_then(|all| all.get(SERVER)).and_then(Item::as_table);
    if let Some(ours) = ours.filter(|ours| !ours.is_dotted()) {
        return Ok(without(text, ours));
    }
    edit(text, |document| {
        if let Some(all) = document.get_mut(SERVERS).and_then(Item::as_table_like_mut) {
            all.remove(SERVER);
        }
        Ok(())
    })
}

/// The MCP server that has our name.
pub(super) fn server(text: &str) -> Result<Option<Server>, String> {
    let document = parse(text)?;
    let all = document.get(SERVERS).and_then(Item::as_table_like);
    Ok(all.and_then(|all| server_of(all.get(SERVER)?.as_table_like()?)))
}

fn server_of(there: &dyn TableLike) -> Option<Server> {
    let args = there.get("args").and_then(Item::as_array);
    let args = args.into_iter().flatten().map(|arg| arg.as_str().map(str::to_owned));
    Some(Server {
        command: there.get("command")?.as_str()?.to_owned(),
        args: args.collect::<Option<_>>()?,
    })
}

fn waits_long_enough(there: &dyn TableLike) -> bool {
    let seconds = there.get(TIMEOUT);
    let seconds = seconds.and_then(|it| it.as_float().or(it.as_integer().map(|it| it as f64)));
    seconds.is_some_and(|seconds| seconds >= TIMEOUT_SECONDS_MIN)
}

/// Sets our fields, and leaves others as they are.
fn fill(there: &mut dyn TableLike, server: &Server) {
    let args: Array = server.args.iter().map(String::as_str).collect();
    let mut set = |name: &str, new: Item| match there.get_mut(name) {
        Some(old) => {
            // A comment behind it stays.
            let decor = old.as_value().map(|value| value.decor().clone());
            *old = new;
            if let (Some(decor), Some(new)) = (decor, old.as_value_mut()) {
                *new.decor_mut() = decor;
            }
        }
        None => {
            there.insert(name, new);
        }
    };
    set("command", value(&server.command));
    set("args", value(args));
    if !waits_long_enough(there) {
        there.insert(TIMEOUT, value(TIMEOUT_SECONDS));
    }
}

/// A text without the lines of a table and of those in it, and the blank line above each. What
/// else stands above or below is not ours.
fn without(text: &str, table: &Table) -> String {
    let mut cuts = Vec::new();
    lines_of(text, table, &mut cuts);
    cuts.sort_by_key(|cut| cut.start);
    let mut left = String::with_capacity(text.len());
    let mut at = 0;
    for cut in cuts {
        left.push_str(&text[at..cut.start]);
        at = cut.end;
    }
    left.push_str(&text[at..]);
    left
}

/// Where the lines of a table are, and those of the tables in it.
fn lines_of(text: &str, table: &Table, cuts: &mut Vec<Range<usize>>) {
    let mut own = table.span();
    for (_, item) in table.iter() {
        match (item.as_table(), item.span()) {
            (Some(inner), _) if !inner.is_dotted() => lines_of(text, inner, cuts),
            (_, Some(span)) => {
                own = own.map(|own| own.start..own.end.max(span.end));
            }
            _ => {}
        }
    }
    let Some(own) = own else { return };
    let mut start = text[..own.start].rfind('\n').map_or(0, |before| before + 1);
    let end = text[own.end..].find('\n').map(|more| own.end + more + 1);
    let above = &text[..start];
    for blank in ["\n\n", "\r\n\r\n"] {
        if above.ends_with(blank) {
            start -= blank.len() / 2;
        }
    }
    // The line end of the line before came with our last line, if that has none.
    let line_end = if text[..start].ends_with("\r\n") { 2 } else { 1 };
    if end.is_none() && start > 0 {
        start -= line_end;
    }
    cuts.push(start..end.unwrap_or(text.len()));
}

/// Edits a text as a document. Line ends, and whether the last line has one, stay as they are.
fn edit(text: &str, change: impl FnOnce(&mut DocumentMut) -> Result<(), String>) -> Edited {
    let mut document = parse(text)?;
    let unchanged = document.to_string();
    change(&mut document)?;
    let mut edited = document.to_string();
    if edited == unchanged {
        return Ok(text.to_owned());
    }
    if !text.is_empty() && !text.ends_with('\n') {
        edited.truncate(edited.trim_end_matches('\n').len());
    }
    let windows = text.matches("\r\n").count();
    if windows == 0 {
        return Ok(edited);
    }
    if windows != text.matches('\n').count() || edited.contains('\r') {
        return Err("its lines end in two ways, which can't be kept".to_owned());
    }
    Ok(edited.replace('\n', "\r\n"))
}

fn parse(text: &str) -> Result<DocumentMut, String> {
    text.parse::<DocumentMut>().map_err(|error| no_toml(text, &error))
}

fn no_toml(text: &str, error: &TomlError) -> String {
    let at = error.span().map_or(0, |span| span.start);
    let line = text.bytes().take(at).filter(|b| *b == b'\n').count() + 1;
    format!("line {line} is no TOML")
}

#[cfg(test)]
#[path = "toml_tests.rs"]
mod tests;
