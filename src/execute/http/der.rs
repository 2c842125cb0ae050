//! As much of X.509 as it takes to see that a certificate names itself as its issuer.

/// Whether a certificate's issuer and subject are the same. Source: RFC 5280, section 4.1.
pub(super) fn is_self_issued(certificate: &[u8]) -> bool {
    names(certificate).is_some_and(|(issuer, subject)| issuer == subject)
}

fn names(certificate: &[u8]) -> Option<(&[u8], &[u8])> {
    const VERSION: u8 = 0xA0;
    let (_, certificate, _) = element(certificate)?;
    let (_, mut rest, _) = element(certificate)?;
    if rest.first() == Some(&VERSION) {
        rest = element(rest)?.2;
    }
    let (_, _, rest) = element(rest)?; // serial number
    let (_, _, rest) = element(rest)?; // signature algorithm
    let (_, issuer, rest) = element(rest)?;
    let (_, _, rest) = element(rest)?; // validity
    let (_, subject, _) = element(rest)?;
    Some((issuer, subject))
}

/// The first element's tag and contents, and what follows it. Source: X.690, section 8.1.
fn element(bytes: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (&tag, rest) = bytes.split_first()?;
    let (&length, rest) = rest.split_first()?;
    let (length, rest) = match usize::from(length) {
        short @ 0..0x80 => (short, rest),
        long => {
            let (digits, rest) = rest.split_at_checked(long & 0x7F)?;
            let value = digits.iter().try_fold(0usize, |value, &digit| {
                value.checked_mul(256)?.checked_add(usize::from(digit))
            });
            (value?, rest)
        }
    };
    let (contents, rest) = rest.split_at_checked(length)?;
    Some((tag, contents, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sequence(parts: &[&[u8]]) -> Vec<u8> {
        let body = parts.concat();
        [&[0x30, 0x81, body.len() as u8][..], &body].concat()
    }

    #[test]
    fn issuers() {
        let certificate = |version: &[u8], issuer: &[u8], subject: &[u8]| {
            let names = [version, b"\x02\x01\x07", b"\x30\x00", issuer, b"\x30\x00", subject];
            sequence(&[&sequence(&names), b"\x30\x00"])
        };
        let (a, b) = (b"\x30\x03\x0c\x01a".as_slice(), b"\x30\x03\x0c\x01b".as_slice());
        for version in [b"\xa0\x03\x02\x01\x02".as_slice(), b""] {
            assert!(is_self_issued(&certificate(version, a, a)));
            assert!(!is_self_issued(&certificate(version, a, b)));
        }
    }

    #[test]
    fn junk_is_not() {
        for junk in
            [&b""[..], b"\x30", b"\x30\x80", b"\x30\xff", b"\x30\x05\x30\x03\x02\x01", &[0x30; 40]]
        {
            assert!(!is_self_issued(junk), "{junk:?}");
        }
    }
}
