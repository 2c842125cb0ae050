//! Words from a text, by the rules of POSIX (Shell Command Language, section 2.2), without any expansion.
//!
//! Invariant: what is not on a list here makes a shell command; nothing is skipped or guessed.

use super::{Cause, is_blank};

/// What stands for itself without quotes in every shell and in every place but those that are looked at here.
const PLAIN: &[u8] = b"_-./:,+@%=";

/// First words that POSIX shells, bash and zsh among them, take for more than a program's name.
const RESERVED: &[&str] = &[
    "!",
    "{",
    "}",
    "[[",
    "]]",
    "((",
    "case",
    "coproc",
    "do",
    "done",
    "elif",
    "else",
    "esac",
    "fi",
    "for",
    "function",
    "if",
    "in",
    "namespace",
    "select",
    "then",
    "time",
    "until",
    "while",
];

/// The same of others: fish reads these also in quotes, and zsh the last five.
const RESERVED_ELSEWHERE: &[&str] = &[
    "and",
    "begin",
    "break",
    "builtin",
    "continue",
    "end",
    "not",
    "or",
    "return",
    "switch",
    "-",
    "foreach",
    "nocorrect",
    "noglob",
    "repeat",
];

/// The words of a simple command; at least one, and the first is not empty.
pub(super) fn words(text: &str) -> Result<Vec<String>, Cause> {
    let mut lexer = Lexer { rest: text.chars(), before: None, word: None, words: Vec::new() };
    while let Some(character) = lexer.rest.next() {
        lexer.take(character)?;
    }
    lexer.end_word();
    let Lexer { words, .. } = lexer;
    match words.first() {
        None => Err(Cause::Nameless),
        Some(first) => name_fault(first).map_or(Ok(()), Err).map(|()| words),
    }
}

/// Whatever its quotes: nobody has a program of such a name, and not every shell looks at quotes here.
pub(super) fn name_fault(first: &str) -> Option<Cause> {
    if first.is_empty() {
        return Some(Cause::Nameless);
    }
    if first.contains('=') {
        return Some(Cause::Assigns);
    }
    let is_job = first.starts_with('%');
    (is_job || RESERVED.contains(&first)).then(|| Cause::Reserved(first.into()))
}

/// Why some shell could read these words otherwise, in single quotes.
pub(super) fn unportable(words: &[String]) -> Option<Cause> {
    let is_odd = |it: &char| !matches!(it, ' '..='~') || matches!(it, '\'' | '\\' | '!');
    let odd = words.iter().flat_map(|word| word.chars()).find(is_odd).map(Cause::Unportable);
    let first = words.first().filter(|first| RESERVED_ELSEWHERE.contains(&first.as_str()));
    odd.or_else(|| first.map(|first| Cause::ReservedElsewhere(first.clone())))
}

struct Lexer<'a> {
    rest: std::str::Chars<'a>,
    /// The plain character before, where there is one in this word.
    before: Option<char>,
    /// The word so far; a pair of quotes begins one.
    word: Option<String>,
    words: Vec<String>,
}

impl Lexer<'_> {
    fn take(&mut self, character: char) -> Result<(), Cause> {
        let before = self.before.take();
        match character {
            it if is_blank(it) => self.end_word(),
            '\'' => self.single_quoted()?,
            '"' => self.double_quoted()?,
            '\\' => {
                let escaped = self.rest.next().ok_or(Cause::Unfinished)?;
                // A line goes on after it.
                if escaped == '\n' {
                    return Err(Cause::Unquoted('\n'));
                }
                self.word().push(escaped);
            }
            '$' | '`' => return Err(Cause::Expanded(character)),
            // A home, where a path may begin.
            '~' if before.is_none_or(|it| matches!(it, ':' | '=')) => {
                return Err(Cause::Unquoted(character));
            }
            '~' => self.plain(character),
            it if it.is_ascii_alphanumeric() => self.plain(it),
            it if u8::try_from(it).is_ok_and(|byte| PLAIN.contains(&byte)) => self.plain(it),
            it => return Err(Cause::Unquoted(it)),
        }
        Ok(())
    }

    fn plain(&mut self, character: char) {
        self.word().push(character);
        self.before = Some(character);
    }

    fn single_quoted(&mut self) -> Result<(), Cause> {
        let (inside, after) = self.rest.as_str().split_once('\'').ok_or(Cause::Unfinished)?;
        self.word.get_or_insert_default().push_str(inside);
        self.rest = after.chars();
        Ok(())
    }

    fn double_quoted(&mut self) -> Result<(), Cause> {
        self.word();
        loop {
            match self.rest.next().ok_or(Cause::Unfinished)? {
                '"' => return Ok(()),
                '$' => return Err(Cause::Expanded('$')),
                '`' => return Err(Cause::Expanded('`')),
                '\\' => self.escaped_in_quotes()?,
                it => self.word().push(it),
            }
        }
    }

    /// Between double quotes a backslash stands for itself but before these.
    fn escaped_in_quotes(&mut self) -> Result<(), Cause> {
        match self.rest.next().ok_or(Cause::Unfinished)? {
            it @ ('$' | '`' | '"' | '\\') => self.word().push(it),
            '\n' => return Err(Cause::Unquoted('\n')),
            it => self.word().extend(['\\', it]),
        }
        Ok(())
    }

    fn word(&mut self) -> &mut String {
        self.word.get_or_insert_default()
    }

    fn end_word(&mut self) {
        self.words.extend(self.word.take());
    }
}
