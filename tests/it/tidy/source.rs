//! Reads Rust sources as text: what is left without comments and literals, and which top-level
//! modules of the crate a file names. No parser: enough for the rules of `tidy`, and checked on
//! samples at the end of this file.

/// The source with comments, strings and characters blanked out; lines stay where they are.
pub(super) fn code_of(source: &str) -> String {
    let chars: Vec<char> = source.chars().collect();
    let mut code = String::with_capacity(source.len());
    let mut at = 0;
    while at < chars.len() {
        let end = match chars[at] {
            '/' if chars.get(at + 1) == Some(&'/') => end_of_line(&chars, at),
            '/' if chars.get(at + 1) == Some(&'*') => end_of_block(&chars, at),
            'r' | 'b' if !is_inside_word(&chars, at) => end_of_raw(&chars, at).unwrap_or(at),
            '"' => end_of_string(&chars, at),
            '\'' => end_of_char(&chars, at).unwrap_or(at),
            _ => at,
        };
        if end == at {
            code.push(chars[at]);
            at += 1;
        } else {
            code.extend(chars[at..end].iter().map(|c| if *c == '\n' { '\n' } else { ' ' }));
            at = end;
        }
    }
    code
}

fn is_inside_word(chars: &[char], at: usize) -> bool {
    at > 0 && (chars[at - 1].is_alphanumeric() || chars[at - 1] == '_')
}

fn end_of_line(chars: &[char], at: usize) -> usize {
    chars[at..].iter().position(|c| *c == '\n').map_or(chars.len(), |n| at + n)
}

fn end_of_block(chars: &[char], start: usize) -> usize {
    let (mut at, mut depth) = (start, 0);
    while at < chars.len() {
        match (chars[at], chars.get(at + 1)) {
            ('/', Some('*')) => (depth, at) = (depth + 1, at + 2),
            ('*', Some('/')) => (depth, at) = (depth - 1, at + 2),
            _ => at += 1,
        }
        if depth == 0 {
            return at;
        }
    }
    chars.len()
}

fn end_of_string(chars: &[char], start: usize) -> usize {
    let mut at = start + 1;
    while at < chars.len() && chars[at] != '"' {
        at += if chars[at] == '\\' { 2 } else { 1 };
    }
    (at + 1).min(chars.len())
}

/// The end of `r"…"`, `r#"…"#`, `br#"…"#`; none if no raw string starts here.
fn end_of_raw(chars: &[char], start: usize) -> Option<usize> {
    let at = start + usize::from(chars[start] == 'b');
    if chars.get(at) != Some(&'r') {
        return None;
    }
    let hashes = chars[at + 1..].iter().take_while(|c| **c == '#').count();
    let open = at + 1 + hashes;
    if chars.get(open) != Some(&'"') {
        return None;
    }
    let is_close = |from: usize| {
        chars[from] == '"' && chars[from + 1..].iter().take_while(|c| **c == '#').count() >= hashes
    };
    let close = (open + 1..chars.len()).find(|from| is_close(*from));
    Some(close.map_or(chars.len(), |from| from + 1 + hashes))
}

/// The end of a character literal; none for a lifetime.
fn end_of_char(chars: &[char], start: usize) -> Option<usize> {
    if chars.get(start + 1) == Some(&'\\') {
        let from = start + 3;
        return chars.get(from..)?.iter().position(|c| *c == '\'').map(|n| from + n + 1);
    }
    (chars.get(start + 2) == Some(&'\'')).then_some(start + 3)
}

/// One word or one mark of the code.
fn tokens(code: &str) -> Vec<&str> {
    let mut tokens = Vec::new();
    let mut rest = code.trim_start();
    while let Some(first) = rest.chars().next() {
        let is_word = |c: char| c.is_alphanumeric() || c == '_';
        let length = if is_word(first) {
            rest.find(|c| !is_word(c)).unwrap_or(rest.len())
        } else if rest.starts_with("::") {
            2
        } else {
            first.len_utf8()
        };
        tokens.push(&rest[..length]);
        rest = rest[length..].trim_start();
    }
    tokens
}

/// Whether the code has these words and marks in a row, as `Instant::now`.
pub(super) fn has_path(code: &str, path: &str) -> bool {
    let (code, path) = (tokens(code), tokens(path));
    code.windows(path.len()).any(|window| window == path)
}

/// The first parts of all paths from the crate's root: after `crate::`, in `crate::{…}` too, and
/// after as many `super::` as lead out of `module` (the file's own path, as `["wire", "ticket"]`).
pub(super) fn roots_named(code: &str, module: &[&str]) -> Vec<String> {
    let tokens = tokens(code);
    let mut roots = Vec::new();
    let mut open_mods: Vec<usize> = Vec::new();
    let mut depth = 0;
    let mut at = 0;
    while at < tokens.len() {
        match tokens[at] {
            "{" => depth += 1,
            "}" => {
                depth -= 1;
                open_mods.pop_if(|opened_at| *opened_at == depth);
            }
            "mod" if tokens.get(at + 2) == Some(&"{") => open_mods.push(depth),
            "crate" if tokens.get(at + 1) == Some(&"::") => {
                roots.extend(heads(&tokens[at + 2..]));
            }
            "super" => {
                let steps = tokens[at..].chunks(2).take_while(|c| *c == ["super", "::"]).count();
                if steps > 0 && steps == module.len() + open_mods.len() {
                    roots.extend(heads(&tokens[at + 2 * steps..]));
                }
                at += (2 * steps).saturating_sub(1);
            }
            _ => {}
        }
        at += 1;
    }
    roots
}

/// The first word of a path, or of each path of a group in braces.
fn heads(tokens: &[&str]) -> Vec<String> {
    if tokens.first() != Some(&"{") {
        return tokens.first().map(|t| (*t).to_owned()).into_iter().collect();
    }
    let (mut heads, mut depth, mut is_head) = (Vec::new(), 0, true);
    for token in tokens {
        match *token {
            "{" => depth += 1,
            "}" => depth -= 1,
            "," if depth == 1 => is_head = true,
            word if depth == 1 && is_head => {
                heads.push(word.to_owned());
                is_head = false;
            }
            _ => {}
        }
        if depth == 0 {
            break;
        }
    }
    heads
}

#[test]
fn comments_and_literals_are_no_code() {
    let source =
        "let a = \"x // \\\" y\"; // tail\nlet b = r#\"raw \" z\"#; /* in /* in */ out */ c";
    let code = code_of(source);
    assert_eq!(tokens(&code), ["let", "a", "=", ";", "let", "b", "=", ";", "c"]);
    assert_eq!(code.lines().count(), source.lines().count());
    assert_eq!(tokens(&code_of("f::<'a>('\"', '\\'', b'x') + br")).last(), Some(&"br"));
    assert_eq!(tokens(&code_of("let d = \"never closed")), ["let", "d", "="]);
}

#[test]
fn paths_are_found_by_whole_words() {
    assert!(has_path("let t = std::time::Instant :: now();", "Instant::now"));
    assert!(!has_path("let t = MyInstant::now();", "Instant::now"));
    assert!(!has_path(&code_of("// Instant::now"), "Instant::now"));
}

#[test]
fn roots_are_found_in_every_form() {
    let roots = |code: &str, module: &[&str]| roots_named(&code_of(code), module);
    assert_eq!(roots("use crate::domain::Time;", &["wire"]), ["domain"]);
    assert_eq!(roots("use crate::{domain::{a, b}, ledger};", &["wire"]), ["domain", "ledger"]);
    assert_eq!(roots("pub(crate) fn f() {}", &["wire"]), [""; 0]);
    assert_eq!(roots("//! [`crate::http`]", &["wire"]), [""; 0]);
    assert_eq!(roots("use super::ticket;", &["wire", "lock"]), [""; 0]);
    assert_eq!(roots("use super::super::http;", &["wire", "lock"]), ["http"]);
    assert_eq!(roots("use super::{http, wire};", &["clock"]), ["http", "wire"]);
    assert_eq!(roots("mod tests { use super::*; }", &["clock"]), [""; 0]);
    assert_eq!(roots("mod a { } use super::http;", &["clock"]), ["http"]);
    assert_eq!(roots("mod a { fn f() { super::super::http::g() } }", &["clock"]), ["http"]);
}
