//! What is said to the agent of a request that went wrong.
//!
//! Invariant: these sentences are fixed. No error text of a library, no address and no header goes into one.

use ureq::Error;

use super::call::Progress;
use super::tls::TlsFault;
use super::transport::LinkFault;
use crate::dial::{DialFault, LookupFault, Stop};

pub(super) const DEADLINE_BEFORE: &str = "The deadline passed before anything was sent.";
pub(super) const CA_FILE: &str =
    "Nothing was sent: the file of certificate authorities of this target cannot be used.";
pub(super) const NO_CERTIFICATE_NAME: &str =
    "Nothing was sent: no certificate can be made out to the host of this target.";
pub(super) const CREDENTIAL_IN_THE_CLEAR: &str =
    "Nothing was sent: the credential of this target may not be sent in the clear.";
pub(super) const HEAD_TOO_LONG: &str = "Nothing was sent: URL and headers are too long together.";
pub(super) const NO_REQUEST: &str = "Nothing was sent: this is no valid HTTP request.";
pub(super) const MALFORMED: &str =
    "The request was sent; the answer has no single meaning in HTTP and was not read.";
pub(super) const DEADLINE_IN_BODY: &str =
    "The request was sent; the deadline passed before the answer was complete.";
pub(super) const LOST_IN_BODY: &str =
    "The request was sent; the connection was lost before the answer was complete.";

pub(super) const BROKEN_BODY: &str =
    "The request was sent; the body of the answer is malformed or broke off.";

/// What is said of response headers that are not shown for want of room.
pub(super) fn left_out(count: usize) -> Option<String> {
    (count > 0)
        .then(|| format!("{count} response headers are left out: they are too many or too long."))
}

/// What is said of a call that was withdrawn.
pub(super) fn cut(progress: &Progress) -> String {
    let sent = if progress.begun {
        "the request, or a part of it, was sent"
    } else {
        "nothing of the request was sent"
    };
    format!("Withdrawn after it began; {sent}.")
}

/// What is said where nothing was sent.
pub(super) fn before_sending(progress: &Progress) -> &'static str {
    match (progress.stop, &progress.link) {
        (Some(Stop::Deadline), _) => DEADLINE_BEFORE,
        (_, Some(LinkFault::Dial(fault))) => not_dialled(fault),
        (_, Some(LinkFault::Tls(fault))) => no_session(*fault),
        (_, None) => "Nothing was sent: the connection was lost.",
    }
}

fn not_dialled(fault: &DialFault) -> &'static str {
    match fault {
        DialFault::Lookup(LookupFault::Failed) => {
            "Nothing was sent: the host's name could not be resolved."
        }
        DialFault::Lookup(LookupFault::Slow) => {
            "Nothing was sent: the lookup of the host's name took too long."
        }
        DialFault::Lookup(LookupFault::Busy) => "Nothing was sent: too many name lookups hang.",
        DialFault::Forbidden => {
            "Nothing was sent: the host has no address that this target may reach; inside addresses need \
             `\"private\": true`, and some are never dialled."
        }
        DialFault::Refused => "Nothing was sent: the host refuses the connection.",
        DialFault::Unreachable => "Nothing was sent: the host cannot be reached.",
        DialFault::Slow => "Nothing was sent: the host did not accept the connection in time.",
        DialFault::Lookup(LookupFault::Stopped(_)) | DialFault::Stopped(_) => {
            "Nothing was sent: the call was stopped."
        }
    }
}

fn no_session(fault: TlsFault) -> &'static str {
    match fault {
        TlsFault::Expired => "Nothing was sent: the server's certificate has expired.",
        TlsFault::NotYetValid => "Nothing was sent: the server's certificate is not valid yet.",
        TlsFault::WrongName => "Nothing was sent: the server's certificate is for another name.",
        TlsFault::UnknownIssuer => {
            "Nothing was sent: the server's certificate is from an authority that is not trusted here."
        }
        TlsFault::SelfSigned => "Nothing was sent: the server's certificate is self-signed.",
        TlsFault::BadCertificate => "Nothing was sent: the server's certificate is not acceptable.",
        TlsFault::NoAgreement => "Nothing was sent: the server does not agree on TLS.",
        TlsFault::Slow => "Nothing was sent: the server did not finish the TLS handshake in time.",
        TlsFault::Closed => {
            "Nothing was sent: the server closed the connection in the TLS handshake."
        }
    }
}

/// Why there is no connection, in a word for the operator.
pub(super) fn not_linked(fault: &LinkFault) -> &'static str {
    match fault {
        LinkFault::Dial(fault) => match fault {
            DialFault::Lookup(LookupFault::Failed) => "lookup_failed",
            DialFault::Lookup(LookupFault::Slow) => "lookup_slow",
            DialFault::Lookup(LookupFault::Busy) => "lookup_busy",
            DialFault::Forbidden => "address_forbidden",
            DialFault::Refused => "connection_refused",
            DialFault::Unreachable => "unreachable",
            DialFault::Slow => "connection_slow",
            DialFault::Lookup(LookupFault::Stopped(_)) | DialFault::Stopped(_) => "stopped",
        },
        LinkFault::Tls(fault) => match fault {
            TlsFault::Expired => "certificate_expired",
            TlsFault::NotYetValid => "certificate_not_yet_valid",
            TlsFault::WrongName => "certificate_wrong_name",
            TlsFault::UnknownIssuer => "certificate_unknown_issuer",
            TlsFault::SelfSigned => "certificate_self_signed",
            TlsFault::BadCertificate => "certificate_bad",
            TlsFault::NoAgreement => "tls_no_agreement",
            TlsFault::Slow => "tls_slow",
            TlsFault::Closed => "tls_closed",
        },
    }
}

/// What is said where the request, or a part of it, was sent and no head of an answer came.
pub(super) fn after_sending(error: &Error, progress: &Progress) -> &'static str {
    match progress.stop {
        Some(Stop::Deadline) => {
            "The request was sent; the deadline passed before the answer began."
        }
        Some(Stop::Slow) => "The request was sent in part; the server did not take it in time.",
        Some(Stop::Lost) => LOST_BEFORE_HEAD,
        Some(Stop::Cut) | None => match error {
            Error::LargeResponseHeader(..) => {
                "The request was sent; the head of the answer is too long and was not read."
            }
            Error::Protocol(_) => {
                "The request was sent; the head of the answer is malformed, or has too many headers."
            }
            _ => LOST_BEFORE_HEAD,
        },
    }
}

const LOST_BEFORE_HEAD: &str =
    "The request was sent; the connection was lost before the answer began.";
