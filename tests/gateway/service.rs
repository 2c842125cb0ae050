//! A real HTTP service on a loopback port: answers by path, counts connections, keeps what it received.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use super::harness::PATIENCE;

/// A request as it arrived.
#[derive(Clone, Debug)]
pub struct Received {
    pub method: String,
    pub path: String,
    /// In order, names as they came.
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Received {
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut fields = self.headers.iter();
        fields.find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }
}

/// What a request is answered with: raw bytes, then the connection stays or not.
pub struct Reply {
    pub bytes: Vec<u8>,
    pub then: Then,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Then {
    Keep,
    Close,
    /// Say nothing more and wait until the client goes away.
    Hang,
}

impl Reply {
    pub fn json(body: &str) -> Self {
        Self::ok("content-type: application/json\r\n", body.as_bytes())
    }

    pub fn ok(headers: &str, body: &[u8]) -> Self {
        let head = format!("HTTP/1.1 200 OK\r\n{headers}content-length: {}\r\n\r\n", body.len());
        Self { bytes: [head.as_bytes(), body].concat(), then: Then::Keep }
    }

    pub fn raw(bytes: impl Into<Vec<u8>>, then: Then) -> Self {
        Self { bytes: bytes.into(), then }
    }
}

#[derive(Default)]
struct Seen {
    connections: usize,
    requests: Vec<Received>,
    gone: usize,
}

pub struct Service {
    pub port: u16,
    seen: Arc<(Mutex<Seen>, Condvar)>,
}

impl Service {
    /// Answers each request with what the given function makes of it.
    pub fn start(reply: impl Fn(&Received) -> Reply + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let seen: Arc<(Mutex<Seen>, Condvar)> = Arc::default();
        let shared = Arc::clone(&seen);
        let reply = Arc::new(reply);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let Ok(stream) = stream else { return };
                shared.0.lock().unwrap().connections += 1;
                shared.1.notify_all();
                let (shared, reply) = (Arc::clone(&shared), Arc::clone(&reply));
                std::thread::spawn(move || {
                    serve(stream, &shared, &*reply);
                    shared.0.lock().unwrap().gone += 1;
                    shared.1.notify_all();
                });
            }
        });
        Self { port, seen }
    }

    /// `{"ok":true}` to everything but paths that hold `hang`, which never get an answer.
    pub fn simple() -> Self {
        Self::start(|request| {
            if request.path.contains("hang") {
                Reply::raw("", Then::Hang)
            } else {
                Reply::json("{\"ok\":true}")
            }
        })
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }

    pub fn connections(&self) -> usize {
        self.seen.0.lock().unwrap().connections
    }

    pub fn requests(&self) -> Vec<Received> {
        self.seen.0.lock().unwrap().requests.clone()
    }

    /// Waits until so many requests have come.
    pub fn wait_for_requests(&self, count: usize) {
        self.wait_until("requests", |seen| seen.requests.len() >= count);
    }

    /// Waits until so many connections have ended.
    pub fn wait_for_gone(&self, count: usize) {
        self.wait_until("ended connections", |seen| seen.gone >= count);
    }

    fn wait_until(&self, what: &str, is_there: impl Fn(&Seen) -> bool) {
        let deadline = Instant::now() + PATIENCE;
        let mut seen = self.seen.0.lock().unwrap();
        while !is_there(&seen) {
            let left = deadline.saturating_duration_since(Instant::now());
            assert!(left > Duration::ZERO, "{what} did not come");
            seen = self.seen.1.wait_timeout(seen, left).unwrap().0;
        }
    }

    /// The service saw nothing at all.
    pub fn assert_untouched(&self) {
        assert_eq!(self.connections(), 0, "a connection came: {:?}", self.requests());
    }
}

fn serve(
    stream: TcpStream,
    seen: &(Mutex<Seen>, Condvar),
    reply: &(dyn Fn(&Received) -> Reply + Send + Sync),
) {
    stream.set_nodelay(true).unwrap();
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let mut stream = stream;
    while let Some(request) = read_request(&mut reader) {
        seen.0.lock().unwrap().requests.push(request.clone());
        seen.1.notify_all();
        let Reply { bytes, then } = reply(&request);
        if stream.write_all(&bytes).is_err() || then == Then::Close {
            return;
        }
        if then == Then::Hang {
            reader.read_exact(&mut [0]).ok();
            return;
        }
    }
}

fn read_request(reader: &mut BufReader<TcpStream>) -> Option<Received> {
    let mut line = String::new();
    reader.read_line(&mut line).ok().filter(|count| *count > 0)?;
    let mut words = line.split_whitespace();
    let (method, path) = (words.next()?.to_owned(), words.next()?.to_owned());
    let mut headers = Vec::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok().filter(|count| *count > 0)?;
        let line = line.trim_end_matches(['\r', '\n']);
        if line.is_empty() {
            break;
        }
        let (name, value) = line.split_once(": ").unwrap_or((line, ""));
        headers.push((name.to_owned(), value.to_owned()));
    }
    let length = headers.iter().find(|(name, _)| name.eq_ignore_ascii_case("content-length"));
    let length = length.and_then(|(_, value)| value.parse().ok()).unwrap_or(0);
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some(Received { method, path, headers, body })
}
