//! One line of a configuration, in words.
//!
//! Invariant: a line whose quotes do not close is not read at all.

/// A line that says something.
#[derive(PartialEq, Eq, Debug)]
pub(super) struct Words {
    /// The keyword, in lower case.
    pub(super) keyword: String,
    /// What follows it, without quotes and comment.
    pub(super) arguments: Vec<String>,
}

/// The quotes of a line do not close, or its keyword is quoted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct QuoteFault;

const BLANKS: &[char] = &[' ', '\t', '\r', '\n'];

/// Splits a line; nothing for a comment and an empty one.
///
/// Source: ssh_config(5). Both kinds of quotes and backslashes are read as ssh(1) reads them.
pub(super) fn split(line: &str) -> Result<Option<Words>, QuoteFault> {
    let line = line.trim_end_matches([' ', '\t', '\r', '\n', '\x0c']).trim_start_matches(BLANKS);
    if line.is_empty() || line.starts_with('#') {
        return Ok(None);
    }
    let end = line.find([' ', '\t', '\r', '\n', '"', '=']).unwrap_or(line.len());
    let (keyword, rest) = line.split_at(end);
    if keyword.is_empty() || rest.starts_with('"') {
        return Err(QuoteFault);
    }
    let rest = rest.trim_start_matches(BLANKS);
    let rest = rest.strip_prefix('=').unwrap_or(rest).trim_start_matches(BLANKS);
    Ok(Some(Words { keyword: keyword.to_ascii_lowercase(), arguments: arguments(rest)? }))
}

fn arguments(text: &str) -> Result<Vec<String>, QuoteFault> {
    let mut arguments = Vec::new();
    let mut characters = text.chars().peekable();
    loop {
        while characters.next_if(|it| matches!(it, ' ' | '\t')).is_some() {}
        match characters.peek() {
            None | Some('#') => return Ok(arguments),
            Some(_) => arguments.push(argument(&mut characters)?),
        }
    }
}

fn argument(
    characters: &mut std::iter::Peekable<std::str::Chars<'_>>,
) -> Result<String, QuoteFault> {
    let mut argument = String::new();
    let mut quote = None;
    while let Some(character) = characters.peek().copied() {
        if quote.is_none() && matches!(character, ' ' | '\t') {
            break;
        }
        characters.next();
        match character {
            '\\' => {
                let is_escaped = |next: &char| {
                    matches!(next, '"' | '\'' | '\\') || (*next == ' ' && quote.is_none())
                };
                argument.push(characters.next_if(is_escaped).unwrap_or('\\'));
            }
            '"' | '\'' if quote.is_none() => quote = Some(character),
            _ if quote == Some(character) => quote = None,
            _ => argument.push(character),
        }
    }
    if quote.is_some() { Err(QuoteFault) } else { Ok(argument) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines() {
        for (line, expected) in [
            ("", None),
            ("  \t\r", None),
            ("# Host a", None),
            ("  # Host a", None),
            ("Host a b", Some(("host", &["a", "b"][..]))),
            ("\tHOST\ta  b \r\n", Some(("host", &["a", "b"]))),
            ("User=me", Some(("user", &["me"]))),
            ("User = me", Some(("user", &["me"]))),
            ("User ==me", Some(("user", &["=me"]))),
            ("User=\"me too\"", Some(("user", &["me too"]))),
            ("User 'me \"too'", Some(("user", &["me \"too"]))),
            ("User me\\ too", Some(("user", &["me too"]))),
            ("User \"me\\ too\"", Some(("user", &["me\\ too"]))),
            ("User a\\\"b\\\\c\\d", Some(("user", &["a\"b\\c\\d"]))),
            ("User me # too", Some(("user", &["me"]))),
            ("User me#too", Some(("user", &["me#too"]))),
            ("User \"#me\"", Some(("user", &["#me"]))),
            ("User \"\"", Some(("user", &[""]))),
            ("User", Some(("user", &[]))),
            ("User a\"b c\"d", Some(("user", &["ab cd"]))),
        ] {
            let found = split(line).unwrap();
            let expected = expected.map(|(keyword, arguments)| Words {
                keyword: keyword.into(),
                arguments: arguments.iter().map(|it| (*it).into()).collect(),
            });
            assert_eq!(found, expected, "{line:?}");
        }
        for line in ["User \"me", "User 'me", "User me\"", "\"User\" me", "= me", "User \"me\\\""] {
            assert_eq!(split(line), Err(QuoteFault), "{line:?}");
        }
    }
}
