//! Reads a credential's value, at the moment of use.
//!
//! Invariant: no value leaves this file without a permission: an [`Authorized`], or for a login at a host the
//! operator's own [`Examination`]. What [`inspect`] reads stays inside, and only a verdict comes out. A value that could not be sent as it is becomes a fault, never another
//! value.

use std::fs::File;
use std::io::{self, Read as _};
use std::os::unix::ffi::OsStringExt as _;
use std::path::Path;

use zeroize::Zeroizing;

use crate::authorize::{Authorized, Permitted};
use crate::examination::Examination;
use crate::limits;
use crate::policy::config::{Credential, CredentialKind, Source};
use crate::secret::Secret;
use crate::trust::{self, Flaw, TrustFault};

/// A credential in hand: its entry and its value.
pub struct Fetched<'a> {
    pub(super) entry: &'a Credential,
    pub(super) value: Secret,
}

/// Why a credential cannot be used.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum CredentialFault {
    /// There is no such file or variable.
    Missing,
    /// The file breaks the ownership rule. For the operator only: it holds a path.
    Untrusted(TrustFault),
    /// The file cannot be read.
    Unreadable(io::ErrorKind),
    /// There is nothing in it.
    Empty,
    /// It is longer than [`limits::CREDENTIAL_BYTES`].
    TooLong,
    /// It has bytes that cannot be sent where it should go.
    Unsendable,
    /// The same of the certificate that goes with it.
    Certificate(Box<Self>),
}

impl CredentialFault {
    /// What is wrong, for the agent: the end of a sentence, without any path.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Missing => "is not there: its file or variable does not exist",
            Self::Untrusted(fault) => match fault.flaw {
                Flaw::Readable => "is not used: others may read its file",
                Flaw::Owner | Flaw::Writable => "is not used: others may read or change its file",
                Flaw::NotAFile => "is not used: where its file should be is something else",
                Flaw::Missing | Flaw::NotAFolder | Flaw::Relative => {
                    "is not there: its file does not exist"
                }
                Flaw::Refused(_) => "is not used: its file cannot be opened",
            },
            Self::Unreadable(_) => "cannot be read",
            Self::Empty => "is empty",
            Self::TooLong => "is too long",
            Self::Unsendable => "has bytes that cannot be sent in a request",
            Self::Certificate(fault) => match fault.as_ref() {
                Self::Missing => "is not used: its certificate does not exist",
                Self::Untrusted(fault) if matches!(fault.flaw, Flaw::Owner | Flaw::Writable) => {
                    "is not used: others may change its certificate"
                }
                _ => "is not used: its certificate cannot be read",
            },
        }
    }
}

/// Reads the credential that an authorized action is to use, where it has one.
///
/// # Errors
/// [`CredentialFault`].
pub fn fetch(permission: &Authorized) -> Result<Option<Fetched<'_>>, CredentialFault> {
    match permission.permitted() {
        Permitted::Http(_, grant) => grant.target().credential.as_ref().map(fetch_one).transpose(),
        Permitted::Helper(..) | Permitted::Ssh(..) => Ok(None),
    }
}

/// Reads the credentials that an authorized helper gets, each with the variable of its environment that carries it.
///
/// # Errors
/// The variable's name, and [`CredentialFault`].
pub fn fetch_variables(
    permission: &Authorized,
) -> Result<Vec<(String, Fetched<'_>)>, (String, CredentialFault)> {
    let Permitted::Helper(_, _, grant) = permission.permitted() else { return Ok(Vec::new()) };
    let mut all = Vec::new();
    for (variable, entry) in grant.target().credentials() {
        let fetched = fetch_variable(entry).map_err(|fault| (variable.clone(), fault))?;
        all.push((variable.clone(), fetched));
    }
    Ok(all)
}

/// By whose word the values of a login are read.
#[derive(Clone, Copy, Debug)]
pub enum Warrant<'a> {
    /// An agent's, within the policy.
    Action(&'a Authorized),
    /// The operator's.
    Examination(&'a Examination),
}

/// Reads a value that a login at the host needs that was permitted.
///
/// # Errors
/// [`CredentialFault`].
pub fn fetch_source(_: Warrant<'_>, source: &Source) -> Result<Secret, CredentialFault> {
    read(source)
}

/// Reads a certificate, which is public: others may read its file, and none may change it.
///
/// # Errors
/// [`CredentialFault`].
pub fn read_certificate(path: &Path) -> Result<Vec<u8>, CredentialFault> {
    let bytes = read_at_once(trust::open_trusted(path).map_err(of_trust)?)?;
    check_size(&bytes)?;
    Ok(bytes.to_vec())
}

/// Reads values for nothing but a look at them, when the operator asks whether they can be used: nothing is
/// authorized, so nothing is sent, and a verdict owns and borrows nothing in which a value could leave.
///
/// # Errors
/// The place of the source at fault, and [`CredentialFault`].
pub fn inspect<const N: usize, V: Copy + 'static>(
    sources: [&Source; N],
    judge: impl FnOnce(&[Secret; N]) -> V,
) -> Result<V, (usize, CredentialFault)> {
    let mut values = Vec::with_capacity(N);
    for (place, source) in sources.into_iter().enumerate() {
        values.push(read(source).map_err(|fault| (place, fault))?);
    }
    let values: [Secret; N] =
        values.try_into().unwrap_or_else(|_| unreachable!("one value was read for each source"));
    Ok(judge(&values))
}

fn read(source: &Source) -> Result<Secret, CredentialFault> {
    let value = read_unchecked(source)?;
    check_size(value.expose())?;
    Ok(value)
}

fn read_unchecked(source: &Source) -> Result<Secret, CredentialFault> {
    match source {
        Source::File(path) => read_file(path),
        Source::Environment(name) => read_variable(name),
    }
}

fn fetch_variable(entry: &Credential) -> Result<Fetched<'_>, CredentialFault> {
    let fetched = fetch_one(entry)?;
    // An environment ends each value at a NUL.
    if fetched.value.expose().contains(&0) { Err(CredentialFault::Unsendable) } else { Ok(fetched) }
}

fn fetch_one(entry: &Credential) -> Result<Fetched<'_>, CredentialFault> {
    let value = read_unchecked(&entry.source)?;
    check(&entry.kind, value.expose())?;
    Ok(Fetched { entry, value })
}

/// One line feed, or carriage return and line feed, at the end is an editor's and not the value's.
fn read_file(path: &Path) -> Result<Secret, CredentialFault> {
    let file = trust::open_secret(path).map_err(of_trust)?;
    let mut bytes = read_at_once(file)?;
    if bytes.last() == Some(&b'\n') {
        bytes.pop();
        if bytes.last() == Some(&b'\r') {
            bytes.pop();
        }
    }
    Ok(Secret::new(std::mem::take(&mut *bytes)))
}

fn of_trust(fault: TrustFault) -> CredentialFault {
    match fault.flaw {
        Flaw::Missing => CredentialFault::Missing,
        _ => CredentialFault::Untrusted(fault),
    }
}

/// Reads into one buffer of the right size, so that no copy is left behind by growing.
fn read_at_once(mut file: File) -> Result<Zeroizing<Vec<u8>>, CredentialFault> {
    const LINE_END: usize = 2;
    let unreadable = |error: io::Error| CredentialFault::Unreadable(error.kind());
    let size = file.metadata().map_err(unreadable)?.len();
    let size = usize::try_from(size).map_err(|_| CredentialFault::TooLong)?;
    if size > limits::CREDENTIAL_BYTES + LINE_END {
        return Err(CredentialFault::TooLong);
    }
    let mut bytes = Zeroizing::new(vec![0; size]);
    let mut filled = 0;
    while filled < size {
        match file.read(&mut bytes[filled..]) {
            Ok(0) => break,
            Ok(count) => filled += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(unreadable(error)),
        }
    }
    bytes.truncate(filled);
    Ok(bytes)
}

fn read_variable(name: &str) -> Result<Secret, CredentialFault> {
    let value = std::env::var_os(name).ok_or(CredentialFault::Missing)?;
    Ok(Secret::new(value.into_vec()))
}

fn check_size(value: &[u8]) -> Result<(), CredentialFault> {
    match value.len() {
        0 => Err(CredentialFault::Empty),
        1..=limits::CREDENTIAL_BYTES => Ok(()),
        _ => Err(CredentialFault::TooLong),
    }
}

fn check(kind: &CredentialKind, value: &[u8]) -> Result<(), CredentialFault> {
    check_size(value)?;
    let sendable = match kind {
        // Base64 and percent-encoding carry any byte. A control byte is a file that is not what it seems.
        CredentialKind::Basic { .. } | CredentialKind::Query { .. } => {
            !value.iter().any(u8::is_ascii_control)
        }
        // Servers strip blanks at the ends of a header's value.
        CredentialKind::Bearer | CredentialKind::Header { .. } => {
            let inside = value.iter().all(|byte| matches!(byte, b' '..=b'~'));
            inside && value.first() != Some(&b' ') && value.last() != Some(&b' ')
        }
    };
    if sendable { Ok(()) } else { Err(CredentialFault::Unsendable) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values() {
        use CredentialFault::{Empty, TooLong, Unsendable};
        let header = CredentialKind::Header { header: "x-key".into(), prefix: String::new() };
        let basic = CredentialKind::Basic { username: "user".into() };
        let longest = vec![b'a'; limits::CREDENTIAL_BYTES];
        let too_long = vec![b'a'; limits::CREDENTIAL_BYTES + 1];
        for (value, in_header, encoded) in [
            (&b"token"[..], Ok(()), Ok(())),
            (b"two words", Ok(()), Ok(())),
            (b"", Err(Empty), Err(Empty)),
            (b" token", Err(Unsendable), Ok(())),
            (b"token ", Err(Unsendable), Ok(())),
            (b"p\xc3\xa4ss", Err(Unsendable), Ok(())),
            (b"a\0b", Err(Unsendable), Err(Unsendable)),
            (b"a\nb", Err(Unsendable), Err(Unsendable)),
            (b"a\r", Err(Unsendable), Err(Unsendable)),
            (b"a\tb", Err(Unsendable), Err(Unsendable)),
            (b"a\x7f", Err(Unsendable), Err(Unsendable)),
            (&longest, Ok(()), Ok(())),
            (&too_long, Err(TooLong), Err(TooLong)),
        ] {
            let shown = String::from_utf8_lossy(&value[..value.len().min(12)]);
            assert_eq!(check(&header, value), in_header, "{shown}");
            assert_eq!(check(&CredentialKind::Bearer, value), in_header, "{shown}");
            assert_eq!(check(&basic, value), encoded, "{shown}");
        }
    }
}
