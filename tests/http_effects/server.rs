//! A server on a loopback port that does what a test says, and keeps what it was sent.
//!
//! Every wait has a limit, after which the test fails where it looks.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::thread::JoinHandle;
use std::time::Duration;

use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};

/// Longer than anything that a test waits for, and shorter than anybody's patience.
pub(crate) const LIMIT: Duration = Duration::from_secs(20);

pub(crate) struct Server {
    address: SocketAddr,
    shared: Arc<Shared>,
    events: mpsc::Receiver<()>,
    accepting: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct Shared {
    connections: AtomicUsize,
    requests: Mutex<Vec<Request>>,
    closing: AtomicBool,
}

/// A request as it came.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    /// From the method to the empty line.
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
}

impl Request {
    pub(crate) fn line(&self) -> &str {
        self.head.split("\r\n").next().unwrap()
    }

    /// Every value of a header, by its name in lower case.
    pub(crate) fn values(&self, name: &str) -> Vec<&str> {
        let lines = self.head.split("\r\n").skip(1);
        let pairs = lines.filter_map(|line| line.split_once(": "));
        pairs
            .filter(|(given, _)| given.eq_ignore_ascii_case(name))
            .map(|(_, value)| value)
            .collect()
    }
}

impl Server {
    /// Serves each connection in a thread of its own; a connection is closed when the function returns.
    pub(crate) fn start(serve: impl Fn(&mut Peer) + Send + Sync + 'static) -> Self {
        Self::listen(None, serve)
    }

    /// The same over TLS, with a certificate of `fixtures/tls`.
    pub(crate) fn start_tls(name: &str, serve: impl Fn(&mut Peer) + Send + Sync + 'static) -> Self {
        Self::listen(Some(tls_config(name)), serve)
    }

    /// Answers every request of every connection with these bytes.
    pub(crate) fn answering(answer: impl Into<Vec<u8>>) -> Self {
        let answer = answer.into();
        Self::start(move |peer| {
            while peer.read_request().is_some() {
                peer.send(&answer);
            }
        })
    }

    fn listen(
        tls: Option<Arc<ServerConfig>>,
        serve: impl Fn(&mut Peer) + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let shared = Arc::new(Shared::default());
        let (sender, events) = mpsc::channel();
        let accepting = {
            let shared = Arc::clone(&shared);
            let serve = Arc::new(serve);
            spawn(move || {
                let mut serving = Vec::new();
                for stream in listener.incoming() {
                    let stream = stream.unwrap();
                    if shared.closing.load(Ordering::SeqCst) {
                        break;
                    }
                    shared.connections.fetch_add(1, Ordering::SeqCst);
                    let (shared, serve) = (Arc::clone(&shared), Arc::clone(&serve));
                    let (tls, sender) = (tls.clone(), sender.clone());
                    serving.push(spawn(move || {
                        let mut peer = Peer::new(stream, tls, shared, sender);
                        serve(&mut peer);
                        if !peer.gone {
                            peer.close();
                        }
                    }));
                }
                for thread in serving {
                    thread.join().unwrap();
                }
            })
        };
        Self { address, shared, events, accepting: Some(accepting) }
    }

    pub(crate) fn port(&self) -> u16 {
        self.address.port()
    }

    pub(crate) fn http(&self) -> String {
        format!("http://{}/", self.address)
    }

    pub(crate) fn https(&self) -> String {
        format!("https://{}/", self.address)
    }

    pub(crate) fn connections(&self) -> usize {
        self.shared.connections.load(Ordering::SeqCst)
    }

    pub(crate) fn requests(&self) -> Vec<Request> {
        self.shared.requests.lock().unwrap().clone()
    }

    /// Waits until a peer calls [`Peer::signal`].
    pub(crate) fn wait_for_signal(&self) {
        self.events.recv_timeout(LIMIT).expect("the server gives its signal");
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.shared.closing.store(true, Ordering::SeqCst);
        TcpStream::connect(self.address).ok();
        let ended = self.accepting.take().unwrap().join();
        if !std::thread::panicking() {
            ended.expect("no thread of the server fails");
        }
    }
}

fn spawn<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> JoinHandle<T> {
    std::thread::Builder::new().name("server".into()).spawn(work).unwrap()
}

/// The other end of one connection.
pub(crate) struct Peer {
    stream: Stream,
    shared: Arc<Shared>,
    sender: mpsc::Sender<()>,
    /// Dropping the socket is all that is left to do.
    gone: bool,
}

enum Stream {
    Plain(TcpStream),
    Tls(Box<StreamOwned<ServerConnection, TcpStream>>),
}

impl Peer {
    fn new(
        stream: TcpStream,
        tls: Option<Arc<ServerConfig>>,
        shared: Arc<Shared>,
        sender: mpsc::Sender<()>,
    ) -> Self {
        stream.set_read_timeout(Some(LIMIT)).unwrap();
        stream.set_write_timeout(Some(LIMIT)).unwrap();
        stream.set_nodelay(true).unwrap();
        let stream = match tls {
            None => Stream::Plain(stream),
            Some(config) => {
                let connection = ServerConnection::new(config).unwrap();
                Stream::Tls(Box::new(StreamOwned::new(connection, stream)))
            }
        };
        Self { stream, shared, sender, gone: false }
    }

    /// Reads a request with its body; `None` where the client closes first.
    pub(crate) fn read_request(&mut self) -> Option<Request> {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            match self.read(&mut byte) {
                Ok(1) => head.push(byte[0]),
                _ => return None,
            }
        }
        let head = String::from_utf8(head).unwrap();
        let mut request = Request { head, body: Vec::new() };
        let length =
            request.values("content-length").first().map_or(0, |text| text.parse().unwrap());
        request.body.resize(length, 0);
        let mut body = std::mem::take(&mut request.body);
        self.read_exact(&mut body).ok()?;
        request.body = body;
        self.shared.requests.lock().unwrap().push(request.clone());
        Some(request)
    }

    /// Sends bytes; that the client is gone is no fault of the server's.
    pub(crate) fn send(&mut self, bytes: impl AsRef<[u8]>) -> bool {
        self.write_all(bytes.as_ref()).and_then(|()| self.flush()).is_ok()
    }

    /// Tells the test that this point is reached.
    pub(crate) fn signal(&self) {
        self.sender.send(()).ok();
    }

    /// Waits until the client closes.
    pub(crate) fn wait_for_close(&mut self) {
        let mut rest = [0; 4096];
        while matches!(self.read(&mut rest), Ok(1..)) {}
    }

    /// Whether the client closes before a span has passed; it is to send nothing meanwhile.
    pub(crate) fn is_closed_within(&mut self, span: Duration) -> bool {
        self.socket().set_read_timeout(Some(span)).unwrap();
        let closed = match self.read(&mut [0]) {
            Ok(_) => true,
            Err(error) => {
                !matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut)
            }
        };
        self.socket().set_read_timeout(Some(LIMIT)).unwrap();
        closed
    }

    /// Reads nothing until the client is gone, or longer than any test here goes on sending: with a full buffer
    /// in between, the client's end is not to be seen.
    pub(crate) fn wait_for_hangup(&self) {
        const SPAN: Duration = Duration::from_secs(3);
        use rustix::event::{PollFd, PollFlags, Timespec, poll};
        let mut waited = [PollFd::new(self.socket(), PollFlags::RDHUP)];
        poll(&mut waited, Some(&Timespec::try_from(SPAN).unwrap())).unwrap();
    }

    /// Closes so that the client sees a reset.
    pub(crate) fn reset(&mut self) {
        rustix::net::sockopt::set_socket_linger(self.socket(), Some(Duration::ZERO)).unwrap();
        self.gone = true;
    }

    /// Closes in good order, over TLS by its own farewell first.
    fn close(&mut self) {
        if let Stream::Tls(session) = &mut self.stream {
            session.conn.send_close_notify();
            session.flush().ok();
        }
        self.shut();
    }

    /// Closes without TLS's farewell.
    pub(crate) fn shut(&mut self) {
        self.socket().shutdown(Shutdown::Both).ok();
    }

    fn socket(&self) -> &TcpStream {
        match &self.stream {
            Stream::Plain(stream) => stream,
            Stream::Tls(session) => &session.sock,
        }
    }
}

impl Read for Peer {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match &mut self.stream {
            Stream::Plain(stream) => stream.read(buffer),
            Stream::Tls(session) => session.read(buffer),
        }
    }
}

impl Write for Peer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.stream {
            Stream::Plain(stream) => stream.write(bytes),
            Stream::Tls(session) => session.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.stream {
            Stream::Plain(stream) => stream.flush(),
            Stream::Tls(session) => session.flush(),
        }
    }
}

pub(crate) fn fixture(name: &str) -> Vec<u8> {
    let path = format!("{}/fixtures/tls/{name}", env!("CARGO_MANIFEST_DIR"));
    std::fs::read(&path).unwrap_or_else(|error| panic!("{path}: {error}; try: fixtures/tls/make"))
}

fn tls_config(name: &str) -> Arc<ServerConfig> {
    let certificate = CertificateDer::from_pem_slice(&fixture(&format!("{name}.pem"))).unwrap();
    let key = PrivateKeyDer::from_pem_slice(&fixture(&format!("{name}.key"))).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)
        .unwrap();
    Arc::new(config)
}

/// A whole answer with a length.
pub(crate) fn answer(status: u16, headers: &[(&str, &str)], body: impl AsRef<[u8]>) -> Vec<u8> {
    let body = body.as_ref();
    let mut bytes = format!("HTTP/1.1 {status} Whatever\r\n").into_bytes();
    for (name, value) in headers {
        bytes.extend_from_slice(format!("{name}: {value}\r\n").as_bytes());
    }
    bytes.extend_from_slice(format!("content-length: {}\r\n\r\n", body.len()).as_bytes());
    bytes.extend_from_slice(body);
    bytes
}
