//! The HTTP/1.1 service that allowed calls reach, and ureq alone reaching it.
//!
//! One thread per kept-alive connection, one write per answer.

use std::io::{self, BufRead, BufReader, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use ureq::http::Request;

use crate::fault::Fault;
use crate::home::TOKEN;

/// What every request is answered.
pub(crate) const BODY: &str = r#"{"full_name":"keyward/bench","open_issues":3}"#;

const TIMEOUT: Duration = Duration::from_secs(5);

/// The listening service; dropping it ends its threads.
pub(crate) struct Service {
    listener: Arc<TcpListener>,
    address: SocketAddr,
    seen: Arc<Seen>,
    thread: Option<JoinHandle<()>>,
}

/// What reached the service.
#[derive(Default)]
struct Seen {
    connections: AtomicU64,
    authorized: AtomicU64,
    others: AtomicU64,
}

impl Service {
    /// Listens on a free loopback port.
    pub(crate) fn start() -> Result<Self, Fault> {
        Self::listen().map_err(Fault::setup("starting the HTTP service"))
    }

    fn listen() -> io::Result<Self> {
        let listener = Arc::new(TcpListener::bind(("127.0.0.1", 0))?);
        let address = listener.local_addr()?;
        let seen = Arc::new(Seen::default());
        let (accepting, counting) = (Arc::clone(&listener), Arc::clone(&seen));
        let thread = thread::Builder::new()
            .name("service".into())
            .spawn(move || accept(&accepting, &counting))?;
        Ok(Self { listener, address, seen, thread: Some(thread) })
    }

    /// `http://127.0.0.1:PORT`, without a final slash.
    pub(crate) fn origin(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The URL of the allowed request.
    pub(crate) fn url(&self) -> String {
        format!("{}/repos/keyward/bench", self.origin())
    }

    /// Connections so far.
    pub(crate) fn connections(&self) -> u64 {
        self.seen.connections.load(Relaxed)
    }

    /// Fails unless it saw this many GETs with the credential, and nothing else.
    pub(crate) fn check(&self, authorized: u64) -> Result<(), Fault> {
        let (seen, others) = (self.seen.authorized.load(Relaxed), self.seen.others.load(Relaxed));
        if seen != authorized || others != 0 {
            return Err(Fault::Service(format!(
                "it saw {seen} requests with the credential where {authorized} were due, and {others} others"
            )));
        }
        Ok(())
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        // On Linux this wakes the accepting thread with an error.
        rustix::net::shutdown(&*self.listener, rustix::net::Shutdown::Both).unwrap_or(());
        if let Some(thread) = self.thread.take() {
            drop(thread.join());
        }
    }
}

fn accept(listener: &TcpListener, seen: &Arc<Seen>) {
    let mut open: Vec<(TcpStream, JoinHandle<()>)> = Vec::new();
    while let Ok((stream, _)) = listener.accept() {
        seen.connections.fetch_add(1, Relaxed);
        let Ok(ours) = stream.try_clone() else { break };
        let seen = Arc::clone(seen);
        // A connection that breaks shows in the measurement that used it.
        let serving = move || drop(serve(&ours, &seen));
        let Ok(thread) = thread::Builder::new().name("connection".into()).spawn(serving) else {
            break;
        };
        open.push((stream, thread));
    }
    for (stream, thread) in open {
        drop(stream.shutdown(Shutdown::Both));
        drop(thread.join());
    }
}

fn serve(stream: &TcpStream, seen: &Seen) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let answer = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{BODY}",
        BODY.len()
    );
    let credential = format!("authorization: bearer {}", TOKEN.to_ascii_lowercase());
    let mut input = BufReader::new(stream);
    let mut head = String::new();
    loop {
        head.clear();
        while !head.ends_with("\r\n\r\n") {
            if input.read_line(&mut head)? == 0 {
                return Ok(());
            }
        }
        let expected = head.starts_with("GET ") && head.to_ascii_lowercase().contains(&credential);
        let count = if expected { &seen.authorized } else { &seen.others };
        count.fetch_add(1, Relaxed);
        (&*stream).write_all(answer.as_bytes())?;
    }
}

/// The same request, made by ureq and nothing else, on a kept-alive connection.
pub(crate) struct Alone {
    agent: ureq::Agent,
    url: String,
    credential: String,
}

impl Alone {
    /// An agent that adds nothing of its own and follows nothing.
    ///
    /// It has the deadlines of two phases only: one over all phases would make ureq start
    /// a thread for each lookup, and the comparison too easy.
    pub(crate) fn new(service: &Service) -> Self {
        let config = ureq::Agent::config_builder()
            .http_status_as_error(false)
            .proxy(None)
            .max_redirects(0)
            .max_redirects_will_error(false)
            .user_agent("")
            .accept("")
            .accept_encoding("")
            .timeout_recv_response(Some(TIMEOUT))
            .timeout_recv_body(Some(TIMEOUT))
            .build();
        Self { agent: config.into(), url: service.url(), credential: format!("Bearer {TOKEN}") }
    }

    /// One request, and its whole body.
    pub(crate) fn request(&self) -> Result<(), Fault> {
        let request = Request::get(&self.url).header("authorization", &self.credential).body(());
        let request = request.map_err(|error| Fault::Service(error.to_string()))?;
        let answer =
            self.agent.run(request).and_then(|mut response| response.body_mut().read_to_string());
        match answer {
            Ok(body) if body == BODY => Ok(()),
            Ok(body) => Err(Fault::Service(format!("ureq alone got {body:?}"))),
            Err(error) => Err(Fault::Service(format!("ureq alone: {error}"))),
        }
    }
}
