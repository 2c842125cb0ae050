//! TLS sessions: rustls with ring, the roots that a target trusts, and a word for what went wrong.
//!
//! Invariant: whether a certificate is good is rustls's judgement alone; what is added here is a name for a
//! refusal.

use std::io;
use std::net::TcpStream;
use std::sync::Arc;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{
    CertificateError, ClientConfig, ClientConnection, DigitallySignedStruct, OtherError,
    RootCertStore, SignatureScheme, StreamOwned,
};

use super::der;
use super::socket::Socket;
use super::transport::LinkFault;
use crate::clock::Deadline;
use crate::dial::{DialFault, Stop};
use crate::limits;

/// A TLS session over a socket.
pub(super) type Session = StreamOwned<ClientConnection, Socket>;

/// Why there is no TLS session.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum TlsFault {
    /// The certificate is not valid any more.
    Expired,
    /// The certificate is not valid yet.
    NotYetValid,
    /// The certificate is for another name.
    WrongName,
    /// The certificate's authority is not among the trusted ones.
    UnknownIssuer,
    /// The certificate vouches for itself.
    SelfSigned,
    /// The certificate is bad in another way.
    BadCertificate,
    /// The server speaks no TLS, or none that we do, or refuses us.
    NoAgreement,
    /// The server did not finish the handshake in time.
    Slow,
    /// The server closed the connection.
    Closed,
}

/// How TLS is spoken to one target.
#[derive(Debug)]
pub(super) struct Tls {
    config: Arc<ClientConfig>,
    server: ServerName<'static>,
}

impl Tls {
    /// Trusts the given roots, for a host as an origin names it; `None` where that can have no certificate.
    pub(super) fn new(host: &str, roots: RootCertStore) -> Option<Self> {
        let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
        let server = ServerName::try_from(bare).ok()?.to_owned();
        let provider = Arc::new(ring::default_provider());
        let verifier = Naming::new(roots, Arc::clone(&provider))?;
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .ok()?
            // A verifier of one's own counts as dangerous; this one only asks rustls's.
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(verifier))
            .with_no_client_auth();
        Some(Self { config: Arc::new(config), server })
    }

    /// Makes a session over a connected socket.
    pub(super) fn open(&self, stream: TcpStream) -> Result<Session, LinkFault> {
        let limit = Deadline::after(limits::HANDSHAKE_FOR);
        let mut socket = Socket::new(stream, limit);
        let config = Arc::clone(&self.config);
        let mut connection = ClientConnection::new(config, self.server.clone())
            .map_err(|error| LinkFault::Tls(fault_of(&error)))?;
        while connection.is_handshaking() {
            connection.complete_io(&mut socket).map_err(|error| fault_of_io(&error))?;
        }
        Ok(StreamOwned::new(connection, socket))
    }
}

/// The roots that browsers trust, as they were when this was built.
pub(super) fn builtin_roots() -> RootCertStore {
    RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() }
}

fn fault_of_io(error: &io::Error) -> LinkFault {
    let inner = error.get_ref();
    if let Some(&stop) = inner.and_then(|inner| inner.downcast_ref::<Stop>()) {
        return match stop {
            Stop::Cut | Stop::Deadline => LinkFault::Dial(DialFault::Stopped(stop)),
            Stop::Slow => LinkFault::Tls(TlsFault::Slow),
            Stop::Lost => LinkFault::Tls(TlsFault::Closed),
        };
    }
    let tls = inner.and_then(|inner| inner.downcast_ref::<rustls::Error>());
    LinkFault::Tls(tls.map_or(TlsFault::Closed, fault_of))
}

fn fault_of(error: &rustls::Error) -> TlsFault {
    use CertificateError as Bad;
    let rustls::Error::InvalidCertificate(bad) = error else { return TlsFault::NoAgreement };
    match bad {
        Bad::Expired | Bad::ExpiredContext { .. } => TlsFault::Expired,
        Bad::NotValidYet | Bad::NotValidYetContext { .. } => TlsFault::NotYetValid,
        Bad::NotValidForName | Bad::NotValidForNameContext { .. } => TlsFault::WrongName,
        Bad::UnknownIssuer => TlsFault::UnknownIssuer,
        Bad::Other(OtherError(cause)) if cause.is::<SelfSigned>() => TlsFault::SelfSigned,
        _ => TlsFault::BadCertificate,
    }
}

/// Rustls's verifier, with a name for certificates that vouch for themselves.
#[derive(Debug)]
struct Naming(Arc<WebPkiServerVerifier>);

#[derive(Debug)]
struct SelfSigned;

impl std::fmt::Display for SelfSigned {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("the certificate vouches for itself")
    }
}

impl std::error::Error for SelfSigned {}

impl Naming {
    fn new(roots: RootCertStore, provider: Arc<CryptoProvider>) -> Option<Self> {
        let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider);
        verifier.build().ok().map(Self)
    }
}

impl ServerCertVerifier for Naming {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let judged =
            self.0.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now);
        judged.map_err(|error| match error {
            // An authority's certificate that serves as a server's is refused as such, before its issuer is.
            rustls::Error::InvalidCertificate(
                CertificateError::UnknownIssuer | CertificateError::Other(_),
            ) if der::is_self_issued(end_entity) => {
                CertificateError::Other(OtherError(Arc::new(SelfSigned))).into()
            }
            other => other,
        })
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.0.verify_tls12_signature(message, cert, dss)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.0.verify_tls13_signature(message, cert, dss)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.supported_verify_schemes()
    }
}
