//! What is said of certificates that `ssh-keygen` made.

use std::fs;
use std::time::{Duration, UNIX_EPOCH};

use keyward::ssh::certificate::{CertificateFault, UserCertificate, Validity};

use crate::scratch::{Scratch, run_well};

/// A certificate, and the fingerprint of its key.
fn make(key: &str, how: &str) -> (String, String) {
    let scratch = Scratch::new();
    let (ca, path) = (scratch.path("ca"), scratch.path("key"));
    let (ca, path) = (ca.to_str().unwrap(), path.to_str().unwrap());
    run_well("ssh-keygen", &["-q", "-t", "ed25519", "-N", "", "-f", ca]);
    let mut all = vec!["-q", "-N", "", "-C", "me@here", "-f", path];
    all.extend(key.split(' '));
    run_well("ssh-keygen", &all);
    let public = format!("{path}.pub");
    let mut all = vec!["-q", "-s", ca, "-I", "some id"];
    all.extend(how.split_whitespace());
    all.push(&public);
    run_well("ssh-keygen", &all);
    let shown = run_well("ssh-keygen", &["-l", "-f", &public]);
    let text = fs::read_to_string(scratch.path("key-cert.pub")).unwrap();
    (text, shown.split_whitespace().nth(1).unwrap().into())
}

#[test]
fn user_certificates_of_every_type() {
    for (key, how) in [
        ("-t ed25519", "-n me"),
        ("-t ecdsa", "-n me,you -O force-command=date"),
        ("-t ecdsa -b 384", "-n me"),
        ("-t ecdsa -b 521", ""),
        ("-t rsa -b 2048", "-n me -z 7"),
    ] {
        let (text, fingerprint) = make(key, how);
        for written in [text.clone(), text.replace('\n', "\r\n"), text.trim_end().into()] {
            let certificate = UserCertificate::parse(written.as_bytes()).unwrap();
            assert_eq!(certificate.key().fingerprint().to_string(), fingerprint, "{key}");
        }
        let (name, rest) = text.split_once(' ').unwrap();
        let encoded = rest.split(' ').next().unwrap();
        for cut in 0..encoded.len() {
            let cut = format!("{name} {}", &encoded[..cut]);
            let fault = UserCertificate::parse(cut.as_bytes()).unwrap_err();
            assert_eq!(fault, CertificateFault::Malformed, "{key}");
        }
    }
}

#[test]
fn a_certificate_has_its_time() {
    let (text, _) = make("-t ed25519", "-V 20300101000000:20300102000000");
    let certificate = UserCertificate::parse(text.as_bytes()).unwrap();
    // The moments are local ones: a day further is past all zones.
    let begin = 1_893_456_000;
    let day = 24 * 3600;
    let at = |seconds: u64| certificate.validity(UNIX_EPOCH + Duration::from_secs(seconds));
    assert_eq!(at(begin - day), Validity::NotYet);
    assert_eq!(at(begin + 2 * day), Validity::Expired);
    let seconds =
        (begin - day..begin + 2 * day).step_by(600).filter(|now| at(*now) == Validity::Valid);
    assert_eq!(seconds.count(), 144, "a day, in steps of ten minutes");
    let (text, _) = make("-t ed25519", "");
    let always = UserCertificate::parse(text.as_bytes()).unwrap();
    for seconds in [0, u64::from(u32::MAX), 1 << 60] {
        let now = UNIX_EPOCH + Duration::from_secs(seconds);
        assert_eq!(always.validity(now), Validity::Valid, "{seconds}");
    }
}

#[test]
fn what_is_no_user_certificate() {
    let (host, _) = make("-t ed25519", "-h -n web1");
    assert_eq!(UserCertificate::parse(host.as_bytes()).unwrap_err(), CertificateFault::ForHost);
    let (user, _) = make("-t ed25519", "");
    let (name, rest) = user.split_once(' ').unwrap();
    let other = format!("ssh-rsa-cert-v01@openssh.com {rest}");
    for (text, expected) in [
        (String::new(), CertificateFault::NoCertificate),
        ("ssh-ed25519 AAAA".into(), CertificateFault::NoCertificate),
        ("-----BEGIN CERTIFICATE-----".into(), CertificateFault::NoCertificate),
        (name.into(), CertificateFault::Malformed),
        (other, CertificateFault::Malformed),
        (format!("sk-{user}"), CertificateFault::OtherType),
        (format!("ssh-dss-cert-v01@openssh.com {rest}"), CertificateFault::OtherType),
    ] {
        assert_eq!(UserCertificate::parse(text.as_bytes()).unwrap_err(), expected, "{text}");
    }
}
