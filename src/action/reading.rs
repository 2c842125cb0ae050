//! How servers read what is percent-encoded, the lenient ones included.
//!
//! A URL is sent as it was judged, but servers differ in what they take for the same path. What
//! restricts (a deny or ask rule) therefore compares the coarsest reading known; what permits
//! compares to the letter.

use super::percent::decoded;

/// Whether a segment is `.` or `..` to some server.
pub(crate) fn is_dot_segment(segment: &str) -> bool {
    let plain = fold_characters(&decoded(segment));
    let stem = plain.split(';').next().unwrap_or_default();
    let only_dots = stem.contains('.') && stem.chars().all(|byte| matches!(byte, '.' | ' '));
    only_dots && (stem.len() <= 2 || stem.contains(' '))
}

/// Whether "best fit" tables, East Asian code pages or compatibility forms make this a slash, a
/// backslash, a percent sign or two dots.
pub(crate) fn is_path_syntax_in_disguise(character: char) -> bool {
    matches!(
        character,
        '\u{a5}'
            | '\u{2025}'
            | '\u{2044}'
            | '\u{2215}'
            | '\u{2216}'
            | '\u{20a9}'
            | '\u{29f8}'
            | '\u{29f9}'
            | '\u{ff05}'
            | '\u{ff0f}'
            | '\u{ff3c}'
    )
}

/// Case, width, marks and invisible characters taken away.
pub(crate) fn fold_characters(text: &str) -> String {
    if text.is_ascii() {
        return text.to_ascii_lowercase();
    }
    text.chars()
        .map(narrow)
        .flat_map(char::to_uppercase)
        .flat_map(char::to_lowercase)
        .filter(|character| !is_ignorable(*character))
        .collect()
}

/// The ASCII character of a full-width one; any kind of blank as a blank.
fn narrow(character: char) -> char {
    match character {
        '\u{ff01}'..='\u{ff5e}' => {
            char::from_u32(u32::from(character) - 0xfee0).unwrap_or(character)
        }
        '\u{2024}' | '\u{fe52}' => '.',
        '\u{37e}' | '\u{fe54}' => ';',
        _ if character.is_whitespace() => ' ',
        _ => character,
    }
}

/// Combining marks, and what Unicode says may be ignored.
fn is_ignorable(character: char) -> bool {
    matches!(character,
        '\u{ad}' | '\u{300}'..='\u{36f}' | '\u{61c}' | '\u{115f}'..='\u{1160}' | '\u{180b}'..='\u{180f}'
        | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{20d0}'..='\u{20ff}'
        | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{e0000}'..='\u{e0fff}')
}
