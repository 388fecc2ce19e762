//! Writes XML that is well-formed, whatever is put into it.

use std::fmt::{self, Display, Write};

/// A document in the making.
#[derive(Debug, Default)]
pub(super) struct Xml {
    text: String,
    open: Vec<&'static str>,
}

/// An attribute: its name and its value.
pub(super) type Attribute<'a> = (&'static str, &'a dyn Display);

impl Xml {
    /// Opens an element.
    pub(super) fn open(&mut self, name: &'static str, attributes: &[Attribute<'_>]) {
        self.tag(name, attributes);
        self.text.push_str(">\n");
        self.open.push(name);
    }

    /// Closes the element that was opened last.
    pub(super) fn close(&mut self) {
        let name = self.open.pop().expect("what is closed was opened");
        let _ = writeln!(self.text, "</{name}>");
    }

    /// An element with a text in it.
    pub(super) fn words(&mut self, name: &'static str, attributes: &[Attribute<'_>], text: &str) {
        self.tag(name, attributes);
        let _ = write!(self.text, ">");
        let _ = write!(Escaped(&mut self.text), "{text}");
        let _ = writeln!(self.text, "</{name}>");
    }

    /// An element that says what it is when it is pointed at.
    pub(super) fn titled(&mut self, name: &'static str, attributes: &[Attribute<'_>], title: &str) {
        self.tag(name, attributes);
        let _ = write!(self.text, "><title>");
        let _ = write!(Escaped(&mut self.text), "{title}");
        let _ = writeln!(self.text, "</title></{name}>");
    }

    /// An element with nothing in it.
    pub(super) fn empty(&mut self, name: &'static str, attributes: &[Attribute<'_>]) {
        self.tag(name, attributes);
        self.text.push_str("/>\n");
    }

    /// The document.
    pub(super) fn finish(mut self) -> String {
        while !self.open.is_empty() {
            self.close();
        }
        self.text
    }

    fn tag(&mut self, name: &str, attributes: &[Attribute<'_>]) {
        let _ = write!(self.text, "<{name}");
        for (name, value) in attributes {
            let _ = write!(self.text, " {name}=\"");
            let _ = write!(Escaped(&mut self.text), "{value}");
            self.text.push('"');
        }
    }
}

/// Escapes what is written to it.
struct Escaped<'a>(&'a mut String);

impl Write for Escaped<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for c in text.chars() {
            match c {
                '<' => self.0.push_str("&lt;"),
                '>' => self.0.push_str("&gt;"),
                '&' => self.0.push_str("&amp;"),
                '"' => self.0.push_str("&quot;"),
                '\n' => self.0.push_str("&#10;"),
                // XML has no way at all to write these.
                '\0'..='\u{1f}' | '\u{7f}'..='\u{9f}' | '\u{fffe}' | '\u{ffff}' => {
                    self.0.push('\u{fffd}');
                }
                c => self.0.push(c),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_is_put_in_gets_out() {
        let bad = "a<script>&\"'\u{1b}[31m\0\u{ffff}\u{9b}\nz";
        let mut xml = Xml::default();
        xml.open("g", &[("data-note", &bad)]);
        xml.words("text", &[], bad);
        xml.titled("rect", &[("x", &1)], bad);
        let text = xml.finish();
        let document = roxmltree::Document::parse(&text).expect("it is well-formed");
        let shown = "a<script>&\"'\u{fffd}[31m\u{fffd}\u{fffd}\u{fffd}\nz";
        let root = document.root_element();
        assert_eq!(root.attribute("data-note"), Some(shown));
        let texts: Vec<_> = root
            .descendants()
            .filter(|node| node.is_text())
            .filter_map(|node| node.text())
            .collect();
        assert_eq!(texts.iter().filter(|text| **text == shown).count(), 2, "{texts:?}");
    }
}
