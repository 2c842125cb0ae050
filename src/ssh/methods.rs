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

    /// They are the library's own: none but these, which the README names.
    #[test]
    fn no_other_exchange_of_keys_is_spoken() {
        const EXCHANGES: [&str; 12] = [
            "mlkem768x25519-sha256",
            "mlkem768nistp256-sha256",
            "mlkem1024nistp384-sha384",
            "curve25519-sha256",
            "curve25519-sha256@libssh.org",
            "ecdh-sha2-nistp256",
            "ecdh-sha2-nistp384",
            "ecdh-sha2-nistp521",
            "diffie-hellman-group-exchange-sha256",
            "diffie-hellman-group16-sha512",
            "diffie-hellman-group18-sha512",
            "diffie-hellman-group14-sha256",
        ];
        const EXTENSIONS: [&str; 2] = ["ext-info-c", "kex-strict-c-v00@openssh.com"];
        let session = Session::new().unwrap();
        let known = session.supported_algs(MethodType::Kex).unwrap();
        assert_eq!(known, [EXCHANGES.as_slice(), &EXTENSIONS].concat());
        assert_eq!(session.supported_algs(MethodType::CompCs).unwrap(), ["none"]);
    }
}
