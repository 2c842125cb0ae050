use super::*;
use crate::policy::{Policy, config};

/// A policy with the host `h` of these keys beside an address and no rules, and with `hop`.
fn policy(keys: &str) -> Policy {
    let text = format!(
        r#"{{ "version": 1,
            "ssh": {{
                "h": {{ "rules": [], {keys} }},
                "hop": {{ "address": "hop.test", "user": "u", "credential": "c", "rules": [] }}
            }},
            "credentials": {{
                "c": {{ "type": "ssh_key", "source": {{ "file": "/k" }} }},
                "d": {{ "type": "ssh_password", "source": {{ "file": "/k" }} }}
            }} }}"#
    );
    config::parse(&text).unwrap_or_else(|faults| panic!("{faults:?}"))
}

const FINGERPRINT: &str = "SHA256:47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU";

#[test]
fn whatever_decides_where_an_action_goes_is_encoded() {
    let usual = r#""address": "h.test", "user": "u", "credential": "c""#;
    let with = |more: &str| format!("{usual}, {more}");
    let keys = [
        usual.to_owned(),
        r#""address": "i.test", "user": "u", "credential": "c""#.into(),
        r#""address": "h.test", "user": "v", "credential": "c""#.into(),
        r#""address": "h.test", "user": "u", "credential": "d""#.into(),
        with(r#""port": 23"#),
        with(r#""host_key": "accept-new""#),
        with(&format!(r#""host_key": "{FINGERPRINT}""#)),
        with(r#""remote_shell": "posix""#),
        with(r#""stop": "signal""#),
        with(r#""via": "hop""#),
        with(r#""ssh_config": "h""#),
        r#""ssh_config": "h""#.into(),
        r#""ssh_config": "h", "user": "u""#.into(),
        r#""ssh_config": "u""#.into(),
        r#""ssh_config": "h", "address": "u""#.into(),
    ];
    let encodings = keys.clone().map(|keys| {
        let policy = policy(&keys);
        let mut parts = Vec::new();
        let mut part = |label: &str, bytes: &[u8]| parts.push((label.to_owned(), bytes.to_vec()));
        policy.host("h").unwrap().encode(&mut part);
        parts
    });
    for (place, encoding) in encodings.iter().enumerate() {
        assert!(!encodings[..place].contains(encoding), "{}", keys[place]);
    }
}

#[test]
fn destinations() {
    for (keys, expected) in [
        (r#""address": "H.Test", "user": "u", "credential": "c""#, "u@h.test:22"),
        (r#""address": "::1", "user": "u", "port": 2222, "credential": "c""#, "u@[::1]:2222"),
        (r#""address": "192.0.2.1", "user": "d\\u@x", "credential": "c""#, r"d\u@x@192.0.2.1:22"),
        (r#""ssh_config": "web""#, "ssh_config web"),
        (r#""ssh_config": "web", "user": "u", "port": 23"#, "u@ssh_config web:23"),
    ] {
        assert_eq!(policy(keys).host("h").unwrap().destination(), expected);
    }
}

#[test]
fn what_an_entry_does_not_say_is_usual() {
    let policy = policy(r#""address": "h.test", "user": "u", "credential": "c", "via": "hop""#);
    let host = policy.host("h").unwrap();
    assert_eq!(host.host_key(), HostKeyRule::Strict);
    assert_eq!(host.stop(), Stop::Connection);
    assert_eq!(host.remote_shell(), RemoteShell::Unknown);
    assert_eq!(host.port(), Some(22));
    assert_eq!(host.via().map(|via| via.name().as_str()), Some("hop"));
}

#[test]
fn addresses() {
    let name = |text: &str| Some(Address::Name(text.into()));
    let longest = ["a".repeat(63), "b".repeat(63), "c".repeat(63), "d".repeat(61)].join(".");
    for (text, address) in [
        ("h", name("h")),
        ("Web-1.Example.NET", name("web-1.example.net")),
        ("1.example", name("1.example")),
        ("xn--bcher-kva.test", name("xn--bcher-kva.test")),
        ("a.1b", name("a.1b")),
        (longest.as_str(), name(&longest)),
        ("192.0.2.1", Some(Address::Ip([192, 0, 2, 1].into()))),
        ("::ffff:192.0.2.1", Some(Address::Ip("::ffff:192.0.2.1".parse().unwrap()))),
        ("192.0.2.01", None),
        ("192.0.2", None),
        ("2130706433", None),
        ("0x7F000001", None),
        ("h.0x1", None),
        ("a..b", None),
        (".a", None),
        ("-a", None),
        ("a-", None),
        ("a b", None),
        ("a\n", None),
        ("a/b", None),
        (&"a".repeat(64), None),
        (&format!("{longest}e"), None),
    ] {
        assert_eq!(Address::parse(text), address, "{text}");
    }
}
