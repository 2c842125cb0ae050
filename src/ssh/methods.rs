//! Which ciphers and checksums are spoken.
//!
//! The library's own lists have older ones at their ends, and at their head a cipher that it computes without the
//! processor's help.
//!
//! Invariant: what is not in these lists is not spoken.

use ssh2::{MethodType, Session};

const CIPHERS: &str = "aes128-gcm@openssh.com,aes256-gcm@openssh.com,chacha20-poly1305@openssh.com,\
                       aes128-ctr,aes192-ctr,aes256-ctr";
/// For ciphers that bring none of their own.
const CHECKSUMS: &str = "hmac-sha2-256-etm@openssh.com,hmac-sha2-512-etm@openssh.com,\
                         hmac-sha2-256,hmac-sha2-512";

/// Sets them for both directions.
///
/// # Errors
/// The library does not know one of them, and would silently go on with its own list.
pub(super) fn prefer(session: &Session) -> Result<(), ssh2::Error> {
    session.method_pref(MethodType::CryptCs, CIPHERS)?;
    session.method_pref(MethodType::CryptSc, CIPHERS)?;
    session.method_pref(MethodType::MacCs, CHECKSUMS)?;
    session.method_pref(MethodType::MacSc, CHECKSUMS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_library_knows_them_all() {
        let session = Session::new().unwrap();
        for (names, method) in [(CIPHERS, MethodType::CryptCs), (CHECKSUMS, MethodType::MacCs)] {
            let known = session.supported_algs(method).unwrap();
            for name in names.split(',') {
                assert!(known.contains(&name), "{name}");
            }
        }
        prefer(&session).unwrap();
    }

    /// Exchanges of keys are the library's own; a change of them is one of the README too.
    #[test]
    fn the_readme_names_all_that_is_spoken() {
        const README: &str = include_str!("../../README.md");
        const EXTENSIONS: [&str; 2] = ["ext-info-c", "kex-strict-c-v00@openssh.com"];
        let row = |of: &str, names: &[&str]| {
            let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
            let row = format!("| {of} | {} |", names.join(", "));
            assert!(README.contains(&row), "{row}");
        };
        let session = Session::new().unwrap();
        let mut exchanges = session.supported_algs(MethodType::Kex).unwrap();
        exchanges.retain(|name| !EXTENSIONS.contains(name));
        row("exchange of keys", &exchanges);
        row("ciphers", &CIPHERS.split(',').collect::<Vec<_>>());
        row("checksums, where the cipher has none", &CHECKSUMS.split(',').collect::<Vec<_>>());
        assert!(exchanges.iter().all(|name| !name.ends_with("sha1")), "{exchanges:?}");
        assert_eq!(session.supported_algs(MethodType::CompCs).unwrap(), ["none"]);
    }
}
