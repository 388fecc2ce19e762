//! Takes the bytes of an event stream apart into frames, as the HTML standard has it.
//!
//! Our own, and small: `retry:` comes in a frame without data, which `eventsource-stream` drops,
//! and a frame that never ends must not fill the memory.
//! Deliberately absent: an id that lasts beyond its frame. Each event of ours has its own.

use std::time::Duration;

/// The most bytes of one frame. An event is far below.
const FRAME_BYTES_MAX: usize = 16 * 1024 * 1024;

/// What stands between two blank lines.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct Frame {
    pub(super) id: String,
    pub(super) event: String,
    pub(super) data: String,
    pub(super) retry: Option<Duration>,
}

/// The frames of one connection. What it leaves unfinished is never one.
#[derive(Debug, Default)]
pub(super) struct Frames {
    line: Vec<u8>,
    frame: Frame,
    is_after_cr: bool,
    has_begun: bool,
}

impl Frames {
    /// Takes bytes as they came, cut anywhere; returns the frames that they end.
    pub(super) fn push(&mut self, bytes: &[u8]) -> Result<Vec<Frame>, &'static str> {
        let mut ended = Vec::new();
        for byte in bytes {
            let is_after_cr = std::mem::replace(&mut self.is_after_cr, *byte == b'\r');
            match byte {
                b'\n' if is_after_cr => {}
                b'\n' | b'\r' => ended.extend(self.end_line()?),
                _ => self.line.push(*byte),
            }
            if self.line.len() + self.frame.data.len() > FRAME_BYTES_MAX {
                return Err("a frame is too long");
            }
        }
        Ok(ended)
    }

    fn end_line(&mut self) -> Result<Option<Frame>, &'static str> {
        let line = String::from_utf8(std::mem::take(&mut self.line));
        let line = line.map_err(|_| "a frame is no UTF-8")?;
        let is_first = !std::mem::replace(&mut self.has_begun, true);
        let line = if is_first { line.trim_start_matches('\u{feff}') } else { &line };
        if line.is_empty() {
            let mut frame = std::mem::take(&mut self.frame);
            frame.data.pop();
            return Ok((frame != Frame::default()).then_some(frame));
        }
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "id" => value.clone_into(&mut self.frame.id),
            "event" => value.clone_into(&mut self.frame.event),
            "data" => {
                self.frame.data.push_str(value);
                self.frame.data.push('\n');
            }
            "retry" => self.frame.retry = value.parse().ok().map(Duration::from_millis),
            // A comment, whose field has no name, or a field that means nothing.
            _ => {}
        }
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STREAM: &str = concat!(
        "\u{feff}retry: 1500\n\n:\n\n",
        "id: 4\nevent: lock.acquired\ndata: {\"n\":\"é\"}\n\n",
        "id:5\r\nevent:caught-up\r\ndata:{}\r\ndata: 2\r\nmore: x\r\n\r\n",
        "event: x\rdata\r\rid: 6\ndata: never ends\n",
    );

    fn frame(id: &str, event: &str, data: &str) -> Frame {
        Frame { id: id.to_owned(), event: event.to_owned(), data: data.to_owned(), retry: None }
    }

    #[test]
    fn a_stream_is_the_same_wherever_it_is_cut() {
        let expected = [
            Frame { retry: Some(Duration::from_millis(1500)), ..Frame::default() },
            frame("4", "lock.acquired", "{\"n\":\"é\"}"),
            frame("5", "caught-up", "{}\n2"),
            frame("", "x", ""),
        ];
        for cut in 0..=STREAM.len() {
            let (one, other) = STREAM.as_bytes().split_at(cut);
            let mut frames = Frames::default();
            let mut seen = frames.push(one).expect("UTF-8");
            seen.extend(frames.push(other).expect("UTF-8"));
            assert_eq!(seen, expected, "cut at {cut}");
        }
    }

    #[test]
    fn a_frame_without_an_end_does_not_fill_the_memory() {
        let mut frames = Frames::default();
        let part = vec![b'x'; FRAME_BYTES_MAX / 2];
        assert_eq!(frames.push(b"data: ").map(|f| f.len()), Ok(0));
        assert!(frames.push(&part).is_ok());
        assert!(frames.push(&part).is_err());
    }

    #[test]
    fn what_is_no_utf_8_is_no_frame() {
        assert!(Frames::default().push(b"data: \xff\n").is_err());
    }
}
