//! When two path segments, or two query names, may be the same to some server.

use crate::action::percent::decoded;
use crate::action::reading::fold_characters;

/// A path segment as the most lenient of servers reads it: decoded, without case, without what
/// stands after its first `;`, `?` or `#`, without blanks around it and dots after it, without marks
/// and invisible characters, full-width forms as ASCII.
pub(crate) fn folded(segment: &str) -> String {
    let plain = fold_characters(&decoded(segment));
    let stem = plain.split([';', '?', '#']).next().unwrap_or_default();
    stem.trim_start_matches(' ').trim_end_matches([' ', '.']).into()
}

/// Whether two folded segments may name the same thing: also where a letter with an accent or an
/// ornament stands for the plain one, as many databases compare.
pub(crate) fn are_alike(one: &str, other: &str) -> bool {
    if one.is_ascii() && other.is_ascii() {
        return one == other;
    }
    one.chars().count() == other.chars().count()
        && one.chars().zip(other.chars()).all(|(a, b)| {
            a == b || (is_letter_form(a) && is_plain(b)) || (is_letter_form(b) && is_plain(a))
        })
}

/// Whether two decoded query names may be one to some server: without case, without an index in
/// brackets, and whatever joins their words.
pub(crate) fn may_be_same_name(one: &str, other: &str) -> bool {
    let (letters, others) = (name_letters(one), name_letters(other));
    one == other || (!letters.is_empty() && are_alike(&letters, &others))
}

fn name_letters(name: &str) -> String {
    let stem = name.find('[').filter(|at| *at > 0).map_or(name, |at| &name[..at]);
    fold_characters(stem).chars().filter(|letter| letter.is_alphanumeric()).collect()
}

fn is_plain(character: char) -> bool {
    character.is_ascii_alphanumeric() || is_letter_form(character)
}

/// Letters and digits of other blocks that decompose to plain ones.
fn is_letter_form(character: char) -> bool {
    matches!(character,
        '\u{aa}' | '\u{b2}'..='\u{ba}' | '\u{c0}'..='\u{2af}' | '\u{1d00}'..='\u{1dbf}' | '\u{1e00}'..='\u{1eff}'
        | '\u{2070}'..='\u{209c}' | '\u{2100}'..='\u{218f}' | '\u{2460}'..='\u{24ff}' | '\u{2c60}'..='\u{2c7f}'
        | '\u{a720}'..='\u{a7ff}' | '\u{ab30}'..='\u{ab6f}' | '\u{1d400}'..='\u{1d7ff}' | '\u{1f100}'..='\u{1f1ff}')
}
