//! The text of a thread or a reply: where it comes from, and what is wrong with it.

use std::fs::File;
use std::io::{self, Read as _};

use super::Failure;
use super::args::BodyArgs;
use super::output::is_steering;
use crate::domain::text::{ReplyBody, ThreadBody};

/// The most bytes of a body that are read: more is no body anyway.
const BODY_BYTES_MAX: u64 = 1 << 20;

/// What a thread is about; nothing, if no flag says it.
pub(super) fn of_thread(args: &BodyArgs) -> Result<ThreadBody, Failure> {
    let Some(text) = read(args)? else { return Ok(ThreadBody::empty()) };
    let why = broken_rule(&text, ThreadBody::CHARACTERS_MAX);
    ThreadBody::try_from(text).map_err(|rule| refused(why, rule))
}

/// What a reply says.
pub(super) fn of_reply(args: &BodyArgs) -> Result<ReplyBody, Failure> {
    let needed = || Failure::Usage("body is required: --body or --body-file".to_owned());
    let text = read(args)?.ok_or_else(needed)?;
    let why = broken_rule(&text, ReplyBody::CHARACTERS_MAX);
    ReplyBody::try_from(text).map_err(|rule| refused(why, rule))
}

fn refused(why: Option<String>, rule: &str) -> Failure {
    Failure::Usage(format!("body {}", why.unwrap_or_else(|| rule.to_owned())))
}

/// Which rule a text breaks, so that it is found in a long one.
fn broken_rule(text: &str, characters_max: usize) -> Option<String> {
    let characters = text.chars().count();
    if characters > characters_max {
        return Some(format!("is too long: {characters} characters, at most {characters_max}"));
    }
    (1..).zip(text.split('\n')).find_map(|(number, line)| {
        let control = line.chars().find(|c| *c != '\t' && is_steering(*c))?;
        let code = u32::from(control);
        Some(format!("has the control character U+{code:04X} in line {number}"))
    })
}

/// The text that was given, by the one flag or the other.
fn read(args: &BodyArgs) -> Result<Option<String>, Failure> {
    let Some(path) = &args.body_file else { return Ok(args.body.as_deref().map(with_newlines)) };
    let failed = |error: io::Error| Failure::Usage(format!("{}: {error}", path.display()));
    let mut bytes = Vec::new();
    let most = BODY_BYTES_MAX + 1;
    let read = if path.as_os_str() == "-" {
        io::stdin().take(most).read_to_end(&mut bytes)
    } else {
        File::open(path).map_err(failed)?.take(most).read_to_end(&mut bytes)
    };
    if read.map_err(failed)? as u64 == most {
        return Err(Failure::Usage("body is too long: more than a MiB".to_owned()));
    }
    let no_text = |_| Failure::Usage(format!("{}: is no UTF-8", path.display()));
    let text = with_newlines(&String::from_utf8(bytes).map_err(no_text)?);
    // One line end at the end of a file is the file's, not the text's.
    Ok(Some(text.strip_suffix('\n').map(str::to_owned).unwrap_or(text)))
}

/// The text with its lines ended as here: those of texts from elsewhere may end in CRLF.
fn with_newlines(text: &str) -> String {
    text.replace("\r\n", "\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reply(text: &str) -> Result<String, String> {
        let args = BodyArgs { body: Some(text.to_owned()), body_file: None };
        of_reply(&args).map(|body| body.to_string()).map_err(|failure| failure.to_string())
    }

    #[test]
    fn lines_that_end_in_crlf_are_lines() {
        assert_eq!(reply("a\r\n\tb\r\n").as_deref(), Ok("a\n\tb\n"));
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("body");
        std::fs::write(&path, "a\r\nb\r\n").expect("a file");
        let args = BodyArgs { body: None, body_file: Some(path.clone()) };
        let body = of_thread(&args).expect("a body");
        assert_eq!(body.as_str(), "a\nb");
        std::fs::write(&path, [b'a', 0xff]).expect("a file");
        let failure = of_thread(&args).expect_err("no text");
        assert!(failure.to_string().ends_with("is no UTF-8"), "{failure}");
    }

    #[test]
    fn the_rule_that_a_body_breaks_is_named() {
        for (text, said) in [
            ("ok\nnot \u{1b}[1m", "body has the control character U+001B in line 2"),
            ("a\rb", "body has the control character U+000D in line 1"),
            ("\n\n\u{202e}", "body has the control character U+202E in line 3"),
            (&"ü".repeat(16_385), "body is too long: 16385 characters, at most 16384"),
            ("", "body must be 1 to 16384 characters"),
        ] {
            let why = reply(text).expect_err("it breaks a rule");
            assert!(why.starts_with(&format!("invalid-argument: {said}")), "{why}");
        }
    }

    /// Else the rule that is broken would go unnamed.
    #[test]
    fn what_is_no_body_is_found_here_too() {
        for c in '\0'..=char::MAX {
            let text = format!("a{c}");
            let is_body = ReplyBody::try_from(text.clone()).is_ok();
            assert_eq!(broken_rule(&text, 10).is_none(), is_body, "{c:?}");
        }
    }
}
