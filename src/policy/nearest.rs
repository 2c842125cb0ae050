//! The known word that a mistyped one most likely meant.

/// The nearest of the known words, where one is near: at most a third of the letters differ.
pub(crate) fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    const LONGEST: usize = 64;
    if word.len() > LONGEST {
        return None;
    }
    let word = word.to_lowercase();
    known
        .into_iter()
        .map(|candidate| (edits(&word, &candidate.to_lowercase()), candidate))
        .filter(|(edits, candidate)| edits * 3 <= candidate.len().max(3))
        .min_by_key(|(edits, _)| *edits)
        .map(|(_, candidate)| candidate)
}

/// How many letters must be put in, taken out, replaced, or swapped with their neighbour.
fn edits(one: &str, other: &str) -> usize {
    let (one, other): (Vec<char>, Vec<char>) = (one.chars().collect(), other.chars().collect());
    let mut before = Vec::new();
    let mut above: Vec<usize> = (0..=other.len()).collect();
    for (row, letter) in one.iter().enumerate() {
        let mut current = vec![row + 1];
        for (column, wanted) in other.iter().enumerate() {
            let replaced = above[column] + usize::from(letter != wanted);
            let mut fewest = replaced.min(above[column + 1] + 1).min(current[column] + 1);
            let is_swap =
                row > 0 && column > 0 && *letter == other[column - 1] && one[row - 1] == *wanted;
            if is_swap {
                fewest = fewest.min(before[column - 1] + 1);
            }
            current.push(fewest);
        }
        before = std::mem::replace(&mut above, current);
    }
    above[other.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_is_understood_and_a_stranger_is_not() {
        let known = ["base_url", "credential", "rules", "private", "ca_file"];
        for (word, meant) in [
            ("baseurl", Some("base_url")),
            ("Base_URL", Some("base_url")),
            ("rlues", Some("rules")),
            ("rule", Some("rules")),
            ("credentials", Some("credential")),
            ("cafile", Some("ca_file")),
            ("timeout", None),
            ("", None),
            (&"x".repeat(65), None),
        ] {
            assert_eq!(nearest(word, known), meant, "{word}");
        }
    }
}
