//! Our entries in the JSON files of Claude Code: its MCP servers, and its hooks.
//!
//! Everything else in them, order, comments and white space, stays as it is. No error repeats any
//! of a file's text, since others may keep secrets in there.

use jsonc_parser::cst::{CstArray, CstInputValue, CstNode, CstObject, CstRootNode};
use jsonc_parser::{ParseOptions, json};

use super::entry::{Hook, SERVER, Server};
use super::one_line::as_it_was;

const SERVERS: &str = "mcpServers";
const HOOKS: &str = "hooks";

/// The text that a file is to have, or why it can't be changed.
pub(super) type Edited = Result<String, String>;

/// Puts our MCP server in. The text comes back as it is if it is there already.
pub(super) fn put_server(text: &str, server: &Server) -> Edited {
    let (root, top) = parse(text)?;
    let servers = object_in(&top, SERVERS)?;
    let args = || CstInputValue::from(server.args.clone());
    match servers.get(SERVER) {
        None => {
            let (command, args) = (server.command.as_str(), args());
            servers.append(SERVER, json!({ "type": "stdio", "command": command, "args": args }));
        }
        Some(property) => {
            let (there, found) = property
                .object_value()
                .and_then(|there| Some((there.clone(), server_of(&there)?)))
                .filter(|(_, found)| found.is_ours())
                .ok_or_else(|| format!("{SERVERS}.{SERVER} is there, and not ours"))?;
            if found == *server {
                return Ok(text.to_owned());
            }
            set(&there, "command", server.command.as_str().into());
            set(&there, "args", args());
        }
    }
    Ok(as_it_was(text, root.to_string()))
}

/// Takes our MCP server out.
pub(super) fn remove_server(text: &str) -> Edited {
    if server(text)?.is_none_or(|server| !server.is_ours()) {
        return Ok(text.to_owned());
    }
    let (root, top) = parse(text)?;
    if let Some(servers) = top.object_value(SERVERS) {
        remove_property(&servers, SERVER);
        if servers.properties().is_empty() {
            remove_property(&top, SERVERS);
        }
    }
    Ok(as_it_was(text, root.to_string()))
}

/// The MCP server that has our name.
pub(super) fn server(text: &str) -> Result<Option<Server>, String> {
    let (_, top) = parse(text)?;
    let there = top.object_value(SERVERS).and_then(|servers| servers.object_value(SERVER));
    Ok(there.and_then(|there| server_of(&there)))
}

/// Puts our hooks in, and takes those out that are ours and aren't among them.
pub(super) fn put_hooks(text: &str, hooks: &[Hook]) -> Edited {
    let found = self::hooks(text)?;
    let is_wanted = |event: &str| hooks.iter().any(|hook| hook.event == event);
    let wanted = hooks.iter().map(|hook| (hook.event, &hook.command));
    let is_as_wanted = found.iter().map(|(event, command)| (event.as_str(), command)).eq(wanted);
    let mut text = text.to_owned();
    if found.iter().any(|(event, _)| !is_wanted(event)) {
        text = remove_hooks_of(&text, |event| !is_wanted(event))?;
    }
    let text = text.as_str();
    let (root, top) = parse(text)?;
    let events = object_in(&top, HOOKS)?;
    let mut is_changed = false;
    for hook in hooks {
        let groups = events
            .array_value_or_create(hook.event)
            .ok_or_else(|| format!("{HOOKS}.{} is no list", hook.event))?;
        match ours(&groups).into_iter().next() {
            Some((there, command)) => {
                if command != hook.command {
                    set(&there, "command", hook.command.as_str().into());
                }
                let seconds = hook.timeout_seconds.to_string();
                if number(&there, "timeout").is_none_or(|found| found != seconds) {
                    set(&there, "timeout", hook.timeout_seconds.into());
                    is_changed = true;
                }
            }
            None => {
                groups.append(group(hook));
            }
        }
    }
    if is_as_wanted && !is_changed {
        return Ok(text.to_owned());
    }
    Ok(as_it_was(text, root.to_string()))
}

/// Whether a file of settings turns all hooks off.
pub(super) fn are_hooks_off(text: &str) -> bool {
    let off = |top: CstObject| top.get("disableAllHooks")?.value()?.as_boolean_lit();
    parse(text).ok().and_then(|(_, top)| off(top)).is_some_and(|off| off.value())
}

/// Takes our hooks out.
pub(super) fn remove_hooks(text: &str) -> Edited {
    if hooks(text)?.is_empty() { Ok(text.to_owned()) } else { remove_hooks_of(text, |_| true) }
}

/// Our hooks, as event and command, in the order in which they stand there.
pub(super) fn hooks(text: &str) -> Result<Vec<(String, String)>, String> {
    let (_, top) = parse(text)?;
    let Some(events) = top.object_value(HOOKS) else { return Ok(Vec::new()) };
    let of_event = |event: jsonc_parser::cst::CstObjectProp| {
        let name = event.decoded_name().unwrap_or_default();
        let found = event.array_value().map(|groups| ours(&groups)).unwrap_or_default();
        found.into_iter().map(move |(_, command)| (name.clone(), command))
    };
    Ok(events.properties().into_iter().flat_map(of_event).collect())
}

/// A list entry for one hook.
fn group(hook: &Hook) -> CstInputValue {
    let command = hook.command.as_str();
    let seconds = hook.timeout_seconds;
    let hooks = json!([{ "type": "command", "command": command, "timeout": seconds }]);
    match hook.matcher {
        Some(matcher) => json!({ "matcher": matcher, "hooks": hooks }),
        None => json!({ "hooks": hooks }),
    }
}

fn remove_hooks_of(text: &str, is_out: impl Fn(&str) -> bool) -> Edited {
    let (root, top) = parse(text)?;
    let Some(events) = top.object_value(HOOKS) else { return Ok(text.to_owned()) };
    for event in events.properties() {
        let name = event.decoded_name().unwrap_or_default();
        let Some(groups) = event.array_value().filter(|_| is_out(&name)) else { continue };
        let found = ours(&groups);
        if found.is_empty() {
            continue;
        }
        for (there, _) in found {
            remove_with_its_group(&there);
        }
        if groups.elements().is_empty() {
            remove_property(&events, &name);
        }
    }
    if events.properties().is_empty() {
        remove_property(&top, HOOKS);
    }
    Ok(as_it_was(text, root.to_string()))
}

/// Removes a hook, and the list entry that has no other one.
fn remove_with_its_group(hook: &CstObject) {
    let list = hook.parent().and_then(|list| list.as_array());
    let group = list
        .as_ref()
        .and_then(|list| list.parent())
        .and_then(|property| property.as_object_prop())
        .and_then(|property| property.parent())
        .and_then(|group| group.as_object());
    match (list, group) {
        (Some(list), Some(group)) if list.elements().len() == 1 => group.remove(),
        _ => hook.clone().remove(),
    }
}

/// Our hooks of an event, each with its command.
fn ours(groups: &CstArray) -> Vec<(CstObject, String)> {
    let lists = groups.elements().into_iter().filter_map(|group| group.as_object());
    let lists = lists.filter_map(|group| group.array_value(HOOKS));
    lists
        .flat_map(|list| list.elements())
        .filter_map(|hook| {
            let hook = hook.as_object()?;
            let command = string(&hook, "command").filter(|command| Hook::is_ours(command))?;
            Some((hook, command))
        })
        .collect()
}

fn server_of(there: &CstObject) -> Option<Server> {
    let args = there.array_value("args").map(|args| args.elements()).unwrap_or_default();
    let args = args.iter().map(text_of).collect::<Option<Vec<_>>>()?;
    Some(Server { command: string(there, "command")?, args })
}

fn string(object: &CstObject, name: &str) -> Option<String> {
    text_of(&object.get(name)?.value()?)
}

fn text_of(node: &CstNode) -> Option<String> {
    node.as_string_lit()?.decoded_value().ok()
}

fn set(object: &CstObject, name: &str, value: CstInputValue) {
    match object.get(name) {
        Some(property) => property.set_value(value),
        None => {
            object.append(name, value);
        }
    }
}

/// A number as it is written.
fn number(object: &CstObject, name: &str) -> Option<String> {
    Some(object.get(name)?.value()?.as_number_lit()?.to_string())
}

fn remove_property(object: &CstObject, name: &str) {
    if let Some(property) = object.get(name) {
        property.remove();
    }
}

fn object_in(top: &CstObject, name: &str) -> Result<CstObject, String> {
    top.object_value_or_create(name).ok_or_else(|| format!("{name} is no object"))
}

/// The tree of a text, and its outermost object. A text without anything is an empty object.
fn parse(text: &str) -> Result<(CstRootNode, CstObject), String> {
    let options = ParseOptions {
        allow_comments: true,
        allow_trailing_commas: true,
        allow_loose_object_property_names: false,
        allow_missing_commas: false,
        allow_single_quoted_strings: false,
        allow_hexadecimal_numbers: false,
        allow_unary_plus_numbers: false,
        allow_bare_decimal_point_numbers: false,
        allow_non_finite_numbers: false,
        allow_extended_string_escapes: false,
    };
    let text = if text.trim().is_empty() { "{}\n" } else { text };
    let root = CstRootNode::parse(text, &options)
        .map_err(|error| format!("line {} is no JSON", error.line_display()))?;
    let top = root.object_value().ok_or("is no JSON object")?;
    Ok((root, top))
}

#[cfg(test)]
#[path = "json_tests.rs"]
mod tests;
