//! A small HTTP service on a loopback port that wants a token, and says back what it was sent.

use std::io::{self, BufRead, BufReader, Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

/// A request as it came.
pub(crate) struct Request {
    /// Method and path.
    pub(crate) line: String,
    /// The header of that name, or nothing.
    pub(crate) authorization: String,
}

/// A running service. It serves one connection at a time, each for one request.
pub(crate) struct Service {
    pub(crate) port: u16,
    visits: Receiver<Visit>,
}

/// Somebody connected, and perhaps asked for something.
struct Visit {
    from: SocketAddr,
    request: Option<Request>,
}

impl Service {
    pub(crate) fn start() -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let port = listener.local_addr()?.port();
        let (visitors, visits) = channel();
        thread::Builder::new().name("service".into()).spawn(move || serve(&listener, &visitors))?;
        Ok(Self { port, visits })
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }

    /// The requests since it was last asked; a connection without one counts as an empty request.
    ///
    /// Connections are taken in order, so once one of our own has come, none that was made before is missed.
    pub(crate) fn requests(&self) -> io::Result<Vec<Request>> {
        let own = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port))?;
        let from = own.local_addr()?;
        drop(own);
        let others = self.visits.iter().take_while(|visit| visit.from != from);
        let nothing = || Request { line: String::new(), authorization: String::new() };
        Ok(others.map(|visit| visit.request.unwrap_or_else(nothing)).collect())
    }
}

fn serve(listener: &TcpListener, visitors: &Sender<Visit>) {
    while let Ok((stream, from)) = listener.accept() {
        let request = answer(&stream).ok();
        if visitors.send(Visit { from, request }).is_err() {
            return;
        }
    }
}

fn answer(mut stream: &TcpStream) -> io::Result<Request> {
    let request = read(stream)?;
    let said =
        serde_json::json!({ "notes": ["water the plants"], "you_sent": request.authorization });
    let body = said.to_string();
    write!(
        stream,
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    )?;
    Ok(request)
}

fn read(stream: &TcpStream) -> io::Result<Request> {
    let mut lines = BufReader::new(stream);
    let first = line(&mut lines)?;
    let line_of = first.rsplit_once(" HTTP/").map_or(&*first, |(line, _)| line);
    let mut request = Request { line: line_of.to_owned(), authorization: String::new() };
    let mut length = 0;
    loop {
        let header = line(&mut lines)?;
        match header.split_once(": ") {
            Some((name, value)) if name.eq_ignore_ascii_case("authorization") => {
                request.authorization = value.to_owned();
            }
            Some((name, value)) if name.eq_ignore_ascii_case("content-length") => {
                length = value.parse().unwrap_or(0);
            }
            Some(_) => {}
            None => break,
        }
    }
    io::copy(&mut lines.take(length), &mut io::sink())?;
    Ok(request)
}

fn line(from: &mut impl BufRead) -> io::Result<String> {
    let mut line = String::new();
    if from.read_line(&mut line)? == 0 {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(line.trim_end().to_owned())
}
