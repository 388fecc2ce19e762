//! Rows of text in columns, for people.

use std::fmt::Write as _;

/// Rows under a heading, aligned. Without rows there is no heading either.
pub fn table<const N: usize>(heading: [&str; N], rows: &[[String; N]]) -> String {
    let mut text = String::new();
    if rows.is_empty() {
        return text;
    }
    let length = |cell: &str| cell.chars().count();
    let widths: [usize; N] = std::array::from_fn(|at| {
        let cells = rows.iter().map(|row| length(&row[at]));
        cells.chain([length(heading[at])]).max().unwrap_or(0)
    });
    let mut line = |cells: [&str; N]| {
        let mut line = String::new();
        for (cell, width) in cells.into_iter().zip(widths) {
            let _ = write!(line, "{cell:width$}  ");
        }
        text.push_str(line.trim_end());
        text.push('\n');
    };
    line(heading);
    for row in rows {
        line(std::array::from_fn(|at| row[at].as_str()));
    }
    text
}

/// How many columns the terminal has that stdout is; `None` if it is none, or says nothing useful.
pub fn of_terminal() -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(std::io::stdout()).ok()?;
    Some(usize::from(size.ws_col)).filter(|columns| *columns >= 40)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_is_aligned_and_an_empty_one_is_silent() {
        let rows = [["a".to_owned(), "1".to_owned()], ["é-long".to_owned(), String::new()]];
        assert_eq!(table(["NAME", "N"], &rows), "NAME    N\na       1\né-long\n");
        assert_eq!(table(["NAME", "N"], &[]), "");
    }
}
