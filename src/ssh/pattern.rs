//! Patterns of OpenSSH, as known_hosts and ssh_config have them.
//!
//! Invariant: a negated pattern that matches outweighs every other, wherever it stands.

/// Whether a pattern fits a whole text: `*` is any bytes, `?` is one.
///
/// Source: ssh_config(5), PATTERNS.
pub fn fits(pattern: &[u8], text: &[u8]) -> bool {
    let (mut at, mut read) = (0, 0);
    // Where to go on after the last star, should what follows it not fit: past the star, one byte further.
    let mut retry = None;
    loop {
        match (pattern.get(at), text.get(read)) {
            (Some(b'*'), _) => {
                at += 1;
                retry = Some((at, read));
            }
            (Some(wanted), Some(byte)) if *wanted == b'?' || wanted == byte => {
                at += 1;
                read += 1;
            }
            (None, None) => return true,
            (_, at_byte) => match retry {
                Some((after_star, from)) if at_byte.is_some() => {
                    retry = Some((after_star, from + 1));
                    (at, read) = (after_star, from + 1);
                }
                _ => return false,
            },
        }
    }
}

/// Whether a list of patterns lets a text in: one fits, and none that begins with `!` does.
pub fn list_fits<'a>(patterns: impl IntoIterator<Item = &'a [u8]>, text: &[u8]) -> bool {
    let mut is_in = false;
    for pattern in patterns {
        match pattern.strip_prefix(b"!") {
            Some(negated) if fits(negated, text) => return false,
            Some(_) => {}
            None => is_in |= fits(pattern, text),
        }
    }
    is_in
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns() {
        for (pattern, text, expected) in [
            ("", "", true),
            ("", "a", false),
            ("a", "", false),
            ("*", "", true),
            ("**", "ab", true),
            ("?", "", false),
            ("?", "a", true),
            ("a*", "a", true),
            ("*a", "ba", true),
            ("*a", "bab", false),
            ("*ab", "aab", true),
            ("*ab*", "xxaxabx", true),
            ("a*b?c", "axxbbxc", true),
            ("a*b?c", "axxbc", false),
            ("*.example.net", "a.b.example.net", true),
            ("*.example.net", "example.net", false),
            ("192.0.2.?", "192.0.2.10", false),
            ("*?", "", false),
            ("*?", "a", true),
        ] {
            assert_eq!(fits(pattern.as_bytes(), text.as_bytes()), expected, "{pattern} {text}");
        }
        let long = vec![b'a'; 100_000];
        assert!(!fits(b"*a*a*a*a*a*a*a*b", &long), "in reasonable time");
    }

    #[test]
    fn lists() {
        for (list, text, expected) in [
            ("a,b", "b", true),
            ("a,!b", "b", false),
            ("!b,*", "b", false),
            ("*,!b", "b", false),
            ("!b", "a", false),
            ("!b,*", "a", true),
            (",", "a", false),
            ("!,a", "a", true),
            ("!!a,*", "a", true),
            ("!!a,*", "!a", false),
        ] {
            let patterns = list.as_bytes().split(|byte| *byte == b',');
            assert_eq!(list_fits(patterns, text.as_bytes()), expected, "{list} {text}");
        }
    }
}
