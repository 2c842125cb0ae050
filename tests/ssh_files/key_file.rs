//! What is said of real private keys, against what libssh2 then does with them.

use std::fs;

use keyward::secret::Secret;
use keyward::ssh::key_file::{Form, KeyFault, Lock, Seen, look};
use keyward::ssh::public_key::KeyType;

use crate::scratch::{Scratch, run, run_well};

const PASSPHRASE: &str = "canary of a passphrase";

fn see(text: &str, passphrase: Option<&str>) -> Result<Seen, KeyFault> {
    let passphrase = passphrase.map(|value| Secret::new(value.into()));
    look(&Secret::new(text.into()), passphrase.as_ref())
}

/// Whether libssh2 can use the key. Without a connection it gets as far as sending, which fails in its own way.
fn libssh2_reads(text: &str, passphrase: Option<&str>) -> bool {
    const SOCKET_SEND: i32 = -7;
    let session = ssh2::Session::new().unwrap();
    let fault = session.userauth_pubkey_memory("nobody", None, text, passphrase).unwrap_err();
    fault.code() == ssh2::ErrorCode::Session(SOCKET_SEND)
}

/// A key by ssh-keygen: its text and its fingerprint.
fn openssh(arguments: &str, passphrase: &str) -> (String, String) {
    let scratch = Scratch::new();
    let path = scratch.path("key");
    let path = path.to_str().unwrap();
    let mut all = vec!["-q", "-N", passphrase, "-C", "me@here", "-f", path];
    all.extend(arguments.split_whitespace());
    run_well("ssh-keygen", &all);
    let shown = run_well("ssh-keygen", &["-l", "-f", &format!("{path}.pub")]);
    let fingerprint = shown.split_whitespace().nth(1).unwrap().into();
    (fs::read_to_string(path).unwrap(), fingerprint)
}

/// What OpenSSL prints of a key.
fn openssl(arguments: &str) -> String {
    let scratch = Scratch::new();
    let path = scratch.path("key");
    let mut all: Vec<&str> = arguments.split_whitespace().collect();
    all.extend(["-out", path.to_str().unwrap()]);
    run_well("openssl", &all);
    fs::read_to_string(path).unwrap()
}

/// A DSA key, with its parameters first.
fn dsa() -> String {
    String::from_utf8(run("openssl", &["dsaparam", "-genkey", "1024"]).stdout).unwrap()
}

/// A key converted by OpenSSL.
fn converted(arguments: &str, key: &str) -> String {
    let scratch = Scratch::new();
    let key = scratch.write("old", key);
    openssl(&format!("{arguments} -in {}", key.display()))
}

#[test]
fn keys_of_openssh_of_every_type_and_cipher() {
    use KeyType::{EcdsaP256, EcdsaP384, EcdsaP521, Ed25519, Rsa};
    let pass = Some(PASSPHRASE);
    for (arguments, passphrase, key_type, lock) in [
        ("-t ed25519", None, Ed25519, Lock::Open),
        ("-t ecdsa -b 256", None, EcdsaP256, Lock::Open),
        ("-t ecdsa -b 384", None, EcdsaP384, Lock::Open),
        ("-t ecdsa -b 521", None, EcdsaP521, Lock::Open),
        ("-t rsa -b 2048", None, Rsa, Lock::Open),
        ("-t rsa -b 3072", None, Rsa, Lock::Open),
        ("-t ed25519 -a 1", pass, Ed25519, Lock::Encrypted),
        ("-t ed25519", pass, Ed25519, Lock::Encrypted),
        ("-t ecdsa -a 1", pass, EcdsaP256, Lock::Encrypted),
        ("-t rsa -b 2048 -a 1", pass, Rsa, Lock::Encrypted),
        ("-t ed25519 -a 1 -Z aes128-ctr", pass, Ed25519, Lock::Encrypted),
        ("-t ed25519 -a 1 -Z aes192-ctr", pass, Ed25519, Lock::Encrypted),
        ("-t ed25519 -a 1 -Z aes256-ctr", pass, Ed25519, Lock::Encrypted),
        ("-t ed25519 -a 1 -Z aes128-cbc", pass, Ed25519, Lock::Encrypted),
        ("-t ed25519 -a 1 -Z aes192-cbc", pass, Ed25519, Lock::Encrypted),
        ("-t ed25519 -a 1 -Z aes256-cbc", pass, Ed25519, Lock::Encrypted),
        ("-t ed25519 -a 1 -Z aes128-gcm@openssh.com", pass, Ed25519, Lock::Encrypted),
        ("-t ed25519 -a 1 -Z aes256-gcm@openssh.com", pass, Ed25519, Lock::Encrypted),
        ("-t ed25519 -a 1 -Z chacha20-poly1305@openssh.com", pass, Ed25519, Lock::Encrypted),
        ("-t rsa -b 2048 -a 1 -Z aes256-gcm@openssh.com", pass, Rsa, Lock::Encrypted),
        ("-t ecdsa -b 521 -a 1 -Z aes256-gcm@openssh.com", pass, EcdsaP521, Lock::Encrypted),
    ] {
        let (text, fingerprint) = openssh(arguments, passphrase.unwrap_or_default());
        let fingerprint = Some(fingerprint.parse().unwrap());
        let seen = Seen { form: Form::OpenSsh, key_type: Some(key_type), fingerprint, lock };
        for written in [
            text.clone(),
            text.replace('\n', "\r\n"),
            text.trim_end().to_owned(),
            text.replace('\n', "\r\n").trim_end().to_owned(),
            format!("a comment before\n\n{text}\n\n"),
        ] {
            assert_eq!(see(&written, passphrase), Ok(seen), "{arguments}");
            assert!(libssh2_reads(&written, passphrase), "{arguments}");
        }
        match passphrase {
            Some(_) => {
                assert_eq!(see(&text, None), Err(KeyFault::PassphraseMissing), "{arguments}");
                assert_eq!(see(&text, Some("")), Err(KeyFault::PassphraseMissing), "{arguments}");
                assert_eq!(see(&text, Some("wrong")), Ok(seen), "only its use tells");
                assert!(!libssh2_reads(&text, Some("wrong")), "{arguments}");
            }
            None => {
                let seen = Seen { lock: Lock::OpenDespitePassphrase, ..seen };
                assert_eq!(see(&text, pass), Ok(seen), "{arguments}");
                assert!(libssh2_reads(&text, pass), "{arguments}");
            }
        }
    }
}

#[test]
fn keys_of_openssh_that_cannot_be_used() {
    let (text, _) = openssh("-t ed25519 -a 1 -Z 3des-cbc", PASSPHRASE);
    assert_eq!(see(&text, Some(PASSPHRASE)), Err(KeyFault::Cipher));
    assert!(!libssh2_reads(&text, Some(PASSPHRASE)));
    let (text, _) = openssh("-t ed25519 -a 1", PASSPHRASE);
    assert_eq!(see(&with_rounds(&text, 256), Some("x")).map(|it| it.lock), Ok(Lock::Encrypted));
    assert_eq!(see(&with_rounds(&text, 257), Some("x")), Err(KeyFault::Rounds));
    assert_eq!(see(&with_rounds(&text, u32::MAX), Some("x")), Err(KeyFault::Rounds));
    assert_eq!(see(&with_rounds(&text, 0), Some("x")), Err(KeyFault::Malformed));
}

/// An encrypted key with another number of rounds.
fn with_rounds(text: &str, rounds: u32) -> String {
    patched(text, |bytes| {
        let options = bytes.windows(6).position(|window| window == b"bcrypt").unwrap() + 6;
        bytes[options + 24..options + 28].copy_from_slice(&rounds.to_be_bytes());
    })
}

/// A key with other bytes inside.
fn patched(text: &str, patch: impl Fn(&mut Vec<u8>)) -> String {
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;
    let encoded: String = text.lines().filter(|line| !line.starts_with('-')).collect();
    let mut bytes = STANDARD.decode(encoded).unwrap();
    patch(&mut bytes);
    let label = "OPENSSH PRIVATE KEY";
    format!("-----BEGIN {label}-----\n{}\n-----END {label}-----\n", STANDARD.encode(bytes))
}

#[test]
fn types_that_cannot_be_used_are_told_apart() {
    let (text, _) = openssh("-t ed25519", "");
    let point = [7; 32];
    let with = |fields: &[&[u8]]| {
        let length = |bytes: &[u8]| u32::try_from(bytes.len()).unwrap().to_be_bytes();
        let string = |bytes: &&[u8]| [&length(bytes), *bytes].concat();
        let public: Vec<u8> = fields.iter().flat_map(string).collect();
        let text = patched(&text, |bytes| {
            // The public part: the lengths of it all and of the name, the name, the length and the point.
            let at = bytes.windows(11).position(|window| window == b"ssh-ed25519").unwrap();
            bytes.splice(at - 8..at + 47, string(&public.as_slice()));
        });
        see(&text, None)
    };
    assert_eq!(with(&[b"sk-ssh-ed25519@openssh.com", &point, b"ssh:"]), Err(KeyFault::Hardware));
    assert_eq!(with(&[b"ssh-dss", b"1", b"1", b"1", b"1"]), Err(KeyFault::Dsa));
    assert_eq!(with(&[b"ssh-xmss@openssh.com", &point]), Err(KeyFault::OtherType));
    assert_eq!(with(&[b"ssh-ed25519", &point[..31]]), Err(KeyFault::Malformed));
    assert_eq!(with(&[b"ssh-ed25519", &point]).map(|seen| seen.lock), Ok(Lock::Open));
}

#[test]
fn keys_of_openssl_in_every_form() {
    use Form::{Pkcs8, Traditional};
    use KeyType::{EcdsaP256, EcdsaP384, EcdsaP521, Ed25519, Rsa};
    use Lock::{Encrypted, Open};
    let pass = format!("pass:{PASSPHRASE}").replace(' ', "_");
    let (given, pass) = (Some(PASSPHRASE.replace(' ', "_")), pass.as_str());
    let rsa = openssl("genpkey -algorithm RSA -pkeyopt rsa_keygen_bits:2048");
    let curve =
        |name: &str| openssl(&format!("genpkey -algorithm EC -pkeyopt ec_paramgen_curve:{name}"));
    let ec = curve("P-256");
    let edwards = openssl("genpkey -algorithm ED25519");
    let sec1 = converted("ec", &ec);
    let locked =
        |how: &str, key: &str| converted(&format!("pkcs8 -topk8 -passout {pass} {how}"), key);
    let old = |how: &str| converted(&format!("rsa -traditional -passout {pass} {how}"), &rsa);
    for (name, text, form, key_type, lock) in [
        ("rsa", rsa.clone(), Pkcs8, Some(Rsa), Open),
        ("p256", ec.clone(), Pkcs8, Some(EcdsaP256), Open),
        ("p384", curve("P-384"), Pkcs8, Some(EcdsaP384), Open),
        ("p521", curve("P-521"), Pkcs8, Some(EcdsaP521), Open),
        ("ed25519", edwards.clone(), Pkcs8, Some(Ed25519), Open),
        ("pkcs1", converted("rsa -traditional", &rsa), Traditional, Some(Rsa), Open),
        ("sec1", sec1.clone(), Traditional, Some(EcdsaP256), Open),
        (
            "parameters first",
            openssl("ecparam -name prime256v1 -genkey"),
            Traditional,
            Some(EcdsaP256),
            Open,
        ),
        ("aes-256 on rsa", locked("-v2 aes-256-cbc", &rsa), Pkcs8, None, Encrypted),
        ("aes-192 on ec", locked("-v2 aes-192-cbc", &ec), Pkcs8, None, Encrypted),
        ("aes-128 on ed25519", locked("-v2 aes-128-cbc", &edwards), Pkcs8, None, Encrypted),
        ("3des", locked("-v2 des3", &rsa), Pkcs8, None, Encrypted),
        ("3des of pkcs12", locked("-v1 PBE-SHA1-3DES", &rsa), Pkcs8, None, Encrypted),
        ("scrypt", locked("-scrypt", &edwards), Pkcs8, None, Encrypted),
        ("old aes-128", old("-aes128"), Traditional, Some(Rsa), Encrypted),
        ("old aes-256", old("-aes256"), Traditional, Some(Rsa), Encrypted),
        ("old 3des", old("-des3"), Traditional, Some(Rsa), Encrypted),
        (
            "old ec",
            converted(&format!("ec -aes256 -passout {pass}"), &ec),
            Traditional,
            None,
            Encrypted,
        ),
        ("pem of ssh-keygen", openssh("-t rsa -b 2048 -m PEM", "").0, Traditional, Some(Rsa), Open),
        ("pkcs8 of ssh-keygen", openssh("-t ecdsa -m PKCS8", "").0, Pkcs8, Some(EcdsaP256), Open),
    ] {
        let passphrase = given.as_deref().filter(|_| lock == Encrypted);
        let seen = Seen { form, key_type, fingerprint: None, lock };
        for written in [
            text.clone(),
            text.replace('\n', "\r\n"),
            text.trim_end().to_owned(),
            text.replace('\n', "\r\n").trim_end().to_owned(),
        ] {
            assert_eq!(see(&written, passphrase), Ok(seen), "{name}");
            assert!(libssh2_reads(&written, passphrase), "{name}");
        }
        if lock == Encrypted {
            assert_eq!(see(&text, None), Err(KeyFault::PassphraseMissing), "{name}");
            assert!(!libssh2_reads(&text, Some("wrong")), "{name}");
        }
    }
}

#[test]
fn keys_of_openssl_that_cannot_be_used() {
    let pass = Some("x");
    let rsa = openssl("genpkey -algorithm RSA -pkeyopt rsa_keygen_bits:2048");
    let curve =
        |name: &str| openssl(&format!("genpkey -algorithm EC -pkeyopt ec_paramgen_curve:{name}"));
    let dsa = dsa();
    let locked = |how: &str| converted(&format!("pkcs8 -topk8 -passout pass:x {how}"), &rsa);
    let explicit =
        "genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256 -pkeyopt ec_param_enc:explicit";
    for (name, text, expected) in [
        ("x25519", openssl("genpkey -algorithm X25519"), KeyFault::OtherType),
        ("ed448", openssl("genpkey -algorithm ED448"), KeyFault::OtherType),
        ("another curve", curve("secp256k1"), KeyFault::OtherType),
        ("another curve in sec1", converted("ec", &curve("secp256k1")), KeyFault::OtherType),
        ("a curve without name", openssl(explicit), KeyFault::OtherType),
        ("dsa", dsa.clone(), KeyFault::Dsa),
        ("dsa in pkcs8", converted("pkcs8 -topk8 -nocrypt", &dsa), KeyFault::Dsa),
        ("rsa-pss", openssl("genpkey -algorithm RSA-PSS"), KeyFault::OtherType),
        ("camellia", locked("-v2 camellia-256-cbc"), KeyFault::Cipher),
        (
            "old camellia",
            converted("rsa -traditional -camellia256 -passout pass:x", &rsa),
            KeyFault::Cipher,
        ),
        ("public", converted("pkey -pubout", &rsa), KeyFault::PublicKey),
        ("public rsa", converted("rsa -RSAPublicKey_out", &rsa), KeyFault::PublicKey),
        ("two", rsa.clone() + &rsa, KeyFault::SeveralKeys),
    ] {
        assert_eq!(see(&text, pass), Err(expected), "{name}");
        // libssh2 takes the first of two, and offers a key of any curve under a name that need not be its own.
        let is_taken = name.contains("curve") || expected == KeyFault::SeveralKeys;
        if !is_taken {
            assert!(!libssh2_reads(&text, pass), "{name}");
        }
    }
}

#[test]
fn keys_that_were_cut_or_damaged() {
    let (plain, _) = openssh("-t ed25519", "");
    let (locked, _) = openssh("-t ed25519 -a 1 -Z aes256-gcm@openssh.com", PASSPHRASE);
    let pem = openssl("genpkey -algorithm RSA -pkeyopt rsa_keygen_bits:2048");
    for text in [&plain, &locked, &pem] {
        let lines: Vec<&str> = text.lines().collect();
        for kept in 1..lines.len() {
            let cut = lines[..kept].join("\n");
            assert_eq!(see(&cut, Some("x")), Err(KeyFault::Truncated), "{kept} lines");
        }
        // Without some of its middle, but with its end.
        let mut holed = lines.clone();
        holed.truncate(lines.len() - 2);
        holed.push(lines[lines.len() - 1]);
        let holed = holed.join("\n");
        let fault = see(&holed, Some("x")).unwrap_err();
        let told = [KeyFault::Truncated, KeyFault::Malformed, KeyFault::NotBase64];
        assert!(told.contains(&fault), "{fault:?}");
        let wrong = text.replacen("\n", "\n%", 1);
        assert_eq!(see(&wrong, Some("x")), Err(KeyFault::NotBase64));
        let label = text.replace("PRIVATE KEY-----", "PRIVATE  KEY-----");
        assert!(see(&label, Some("x")).is_err());
    }
    let other = patched(&plain, |bytes| {
        let at = bytes.windows(11).rposition(|window| window == b"ssh-ed25519").unwrap();
        bytes[at - 6] ^= 1;
    });
    assert_eq!(see(&other, None), Err(KeyFault::Malformed), "the two numbers differ");
    assert!(!libssh2_reads(&other, None));
    assert_eq!(
        see(&patched(&locked, |bytes| bytes.truncate(bytes.len() - 1)), Some("x")),
        Err(KeyFault::Truncated)
    );
    assert_eq!(see(&patched(&plain, |bytes| bytes[0] ^= 1), None), Err(KeyFault::Malformed));
}

#[test]
fn every_damage_of_one_byte_is_survived() {
    let (plain, _) = openssh("-t ecdsa", "");
    let pem = openssl("genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256");
    let mut refused = 0;
    for text in [plain, pem] {
        for at in 0..text.len() {
            for byte in [b'\n', b'A', b'/', b'-'] {
                let mut bytes = text.clone().into_bytes();
                bytes[at] = byte;
                let damaged = String::from_utf8(bytes).unwrap();
                refused += usize::from(see(&damaged, None).is_err());
            }
            refused += usize::from(see(&text[..at], None).is_err());
        }
    }
    assert!(refused > 500, "{refused}");
}

#[test]
fn a_public_key_and_a_certificate_by_mistake() {
    let scratch = Scratch::new();
    for name in ["ca", "key"] {
        let path = scratch.path(name);
        run_well("ssh-keygen", &["-q", "-t", "ed25519", "-N", "", "-f", path.to_str().unwrap()]);
    }
    let (ca, key) = (scratch.path("ca"), scratch.path("key.pub"));
    let (ca, key) = (ca.to_str().unwrap(), key.to_str().unwrap());
    run_well("ssh-keygen", &["-q", "-s", ca, "-I", "id", "-n", "me", key]);
    let read = |name: &str| fs::read_to_string(scratch.path(name)).unwrap();
    assert_eq!(see(&read("key.pub"), None), Err(KeyFault::PublicKey));
    assert_eq!(see(&read("key-cert.pub"), None), Err(KeyFault::Certificate));
    let exported = run("ssh-keygen", &["-e", "-f", key]);
    let exported = String::from_utf8(exported.stdout).unwrap();
    assert_eq!(see(&exported, None), Err(KeyFault::PublicKey), "{exported}");
}
