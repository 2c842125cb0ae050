//! Lines of cells: each a text of whoever, cut to its columns where a terminal shows it.
//!
//! Invariant: nothing of a cell's text does anything but be seen, and on a terminal no line is longer than it is wide.

use crate::wire::write::is_unseen;

/// What lines are shown on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Screen {
    /// No terminal: nothing is cut or coloured.
    Endless,
    /// A terminal.
    Terminal {
        /// How wide it is.
        columns: usize,
        /// Whether colours are wanted.
        is_coloured: bool,
    },
}

impl Screen {
    /// How wide a terminal is.
    pub(super) fn columns(self) -> Option<usize> {
        match self {
            Self::Endless => None,
            Self::Terminal { columns, .. } => Some(columns),
        }
    }
}

/// How a cell looks where there are colours.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Tone {
    /// Like any text.
    Plain,
    /// It went well.
    Good,
    /// It did not.
    Bad,
    /// It is not known, or goes on.
    Open,
}

/// A text with its place in a line.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Cell {
    text: String,
    columns: usize,
    tone: Tone,
}

impl Cell {
    /// A cell of so many columns on a terminal.
    pub(super) fn new(text: &str, columns: usize) -> Self {
        Self { text: seen(text), columns, tone: Tone::Plain }
    }

    /// The last cell of a line: it takes what is left.
    pub(super) fn rest(text: &str) -> Self {
        Self::new(text, usize::MAX)
    }

    /// The same in a tone.
    pub(super) fn toned(self, tone: Tone) -> Self {
        Self { tone, ..self }
    }
}

/// A line of cells, a blank between them.
pub(super) fn line(cells: &[Cell], screen: Screen) -> String {
    let mut line = String::new();
    match screen {
        Screen::Endless => {
            let texts: Vec<&str> = cells.iter().map(|cell| cell.text.as_str()).collect();
            line.push_str(&texts.join(" "));
        }
        Screen::Terminal { columns, is_coloured } => {
            let mut left = columns;
            for (number, Cell { text, columns, tone }) in cells.iter().enumerate() {
                if number > 0 {
                    if left <= 1 {
                        break;
                    }
                    line.push(' ');
                    left -= 1;
                }
                let room = left.min(*columns);
                let (shown, taken) = cut(text, room);
                match (is_coloured, tone) {
                    (false, _) | (true, Tone::Plain) => line.push_str(&shown),
                    (true, Tone::Good) => line.push_str(&format!("\x1b[32m{shown}\x1b[0m")),
                    (true, Tone::Bad) => line.push_str(&format!("\x1b[31m{shown}\x1b[0m")),
                    (true, Tone::Open) => line.push_str(&format!("\x1b[33m{shown}\x1b[0m")),
                }
                if number + 1 < cells.len() {
                    line.extend(std::iter::repeat_n(' ', room - taken));
                }
                left -= room;
            }
        }
    }
    line
}

/// So many of something.
pub(super) fn counted(count: u64, what: &str) -> String {
    if count == 1 { format!("1 {what}") } else { format!("{count} {what}s") }
}

/// A text on one line in which nothing is hidden: what would not be seen, or would do something, is written out.
pub(super) fn seen(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for character in text.chars() {
        if is_unseen(character) {
            shown.extend(character.escape_unicode());
        } else {
            shown.push(character);
        }
    }
    shown
}

/// As much of a text as fits, and the columns that it takes.
fn cut(text: &str, room: usize) -> (String, usize) {
    let whole: usize = text.chars().map(columns_of).sum();
    if whole <= room {
        return (text.to_owned(), whole);
    }
    let (mut shown, mut taken) = (String::new(), 0);
    for character in text.chars() {
        let columns = columns_of(character);
        if taken + columns + 1 > room {
            break;
        }
        shown.push(character);
        taken += columns;
    }
    if taken < room {
        shown.push('…');
        taken += 1;
    }
    (shown, taken)
}

/// The columns that a character may take: two from where wide scripts begin, which no narrow one exceeds.
fn columns_of(character: char) -> usize {
    const WIDE_FROM: char = '\u{1100}';
    if character >= WIDE_FROM && character != '…' { 2 } else { 1 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn terminal(columns: usize) -> Screen {
        Screen::Terminal { columns, is_coloured: false }
    }

    #[test]
    fn cells_fit_the_terminal() {
        let cells = [
            Cell::new("0123456789", 10),
            Cell::new("state", 8).toned(Tone::Good),
            Cell::rest("GET https://api.example.net/"),
        ];
        for (columns, expected) in [
            (80, "0123456789 state    GET https://api.example.net/"),
            (47, "0123456789 state    GET https://api.example.ne…"),
            (24, "0123456789 state    GET…"),
            (20, "0123456789 state   "),
            (14, "0123456789 st…"),
            (10, "0123456789"),
            (4, "012…"),
            (1, "…"),
        ] {
            assert_eq!(line(&cells, terminal(columns)), expected, "{columns}");
        }
        let whole = "0123456789 state GET https://api.example.net/";
        assert_eq!(line(&cells, Screen::Endless), whole);
        let coloured = line(&cells, Screen::Terminal { columns: 24, is_coloured: true });
        assert_eq!(coloured, "0123456789 \x1b[32mstate\x1b[0m    GET…");
    }

    #[test]
    fn wide_characters_take_two_columns() {
        for (room, shown, taken) in [(4, "漢字", 4), (3, "漢…", 3), (2, "…", 1), (0, "", 0)]
        {
            assert_eq!(cut("漢字", room), (shown.to_owned(), taken), "{room}");
        }
    }

    #[test]
    fn nothing_of_a_text_does_anything() {
        for (text, shown) in [
            ("a\x1b[31mb\x07", "a\\u{1b}[31mb\\u{7}"),
            ("one\r\ntwo\u{9b}2J", "one\\u{d}\\u{a}two\\u{9b}2J"),
            ("x\u{202e}y\u{200b}\u{feff}", "x\\u{202e}y\\u{200b}\\u{feff}"),
            ("a\u{61c}b\u{3164}\u{e0041}", "a\\u{61c}b\\u{3164}\\u{e0041}"),
            ("plain \"é\" 漢", "plain \"é\" 漢"),
        ] {
            assert_eq!(seen(text), shown);
            assert_eq!(line(&[Cell::rest(text)], Screen::Endless), shown);
        }
    }
}
