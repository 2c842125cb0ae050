//! A host that speaks SSH well enough to let anybody in, and then sends what it likes.
//!
//! Source: RFC 4253, 4252, 4254 and 8731; PROTOCOL.chacha20poly1305 of OpenSSH.

use std::io::{BufRead as _, BufReader, Read as _, Result, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use ring::aead::chacha20_poly1305_openssh::{KEY_LEN, OpeningKey, SealingKey, TAG_LEN};
use ring::agreement::{EphemeralPrivateKey, UnparsedPublicKey, X25519, agree_ephemeral};
use ring::digest::{SHA256, digest};
use ring::rand::SystemRandom;
use ring::signature::{Ed25519KeyPair, KeyPair as _};

const OUR_NAME: &[u8] = b"SSH-2.0-any";
/// What is written at once.
const BATCH_BYTES: usize = 64 * 1024;

/// When a host begins to send what it likes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum When {
    BeforeKeys,
    BeforeLogin,
    BeforeChannel,
    BeforeStart,
    Started,
}

/// A host at a port of its own, for one connection after the other.
pub(crate) struct Host {
    pub(crate) port: u16,
    thread: Option<JoinHandle<()>>,
    listener: TcpListener,
    /// The connection that is served.
    stream: Arc<Mutex<Option<TcpStream>>>,
}

impl Host {
    /// One that calls `send` once it is time.
    pub(crate) fn start(
        when: When,
        send: impl Fn(&mut Wire) -> Result<()> + Send + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let accepting = listener.try_clone().unwrap();
        let served = Arc::new(Mutex::default());
        let stream = Arc::clone(&served);
        let thread = std::thread::spawn(move || {
            while let Ok((stream, _)) = accepting.accept() {
                *served.lock().unwrap() = stream.try_clone().ok();
                // Whoever is fed up with it closes the connection.
                serve(&stream, when, &send).ok();
                stream.shutdown(Shutdown::Both).ok();
                *served.lock().unwrap() = None;
            }
        });
        Self { port, thread: Some(thread), listener, stream }
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        // Wakes the thread, which accepts nothing after that.
        rustix::net::shutdown(&self.listener, rustix::net::Shutdown::Both).ok();
        // A connection that is kept ends, too.
        if let Some(stream) = &*self.stream.lock().unwrap() {
            stream.shutdown(Shutdown::Both).ok();
        }
        if let Some(thread) = self.thread.take() {
            thread.join().ok();
        }
    }
}

fn serve(stream: &TcpStream, when: When, send: &impl Fn(&mut Wire) -> Result<()>) -> Result<()> {
    let mut wire = Wire::new(stream)?;
    wire.agree(|wire| if when == When::BeforeKeys { send(wire) } else { Ok(()) })?;
    loop {
        let packet = wire.read()?;
        match packet[0] {
            // Service.
            5 => {
                if when == When::BeforeLogin {
                    send(&mut wire)?;
                }
                wire.put(&[&[6], &packet[1..]].concat())?;
            }
            // Login: whoever it is.
            50 => wire.put(&[52])?,
            // Channel.
            90 => {
                if when == When::BeforeChannel {
                    send(&mut wire)?;
                }
                let name = 5 + number(&packet[1..]);
                let channel = &packet[name..name + 4];
                wire.channel = channel[3];
                wire.put(&[&[91], channel, &[0; 4], &[0, 32, 0, 0], &[0, 0, 128, 0]].concat())?;
            }
            // Command, or subsystem.
            98 => {
                if when == When::BeforeStart {
                    send(&mut wire)?;
                }
                wire.put(&[99, 0, 0, 0, wire.channel])?;
                if when == When::Started {
                    wire.flush()?;
                    send(&mut wire)?;
                }
            }
            _ => {}
        }
        wire.flush()?;
    }
}

/// The packets of one connection.
pub(crate) struct Wire {
    reader: BufReader<TcpStream>,
    writer: TcpStream,
    batch: Vec<u8>,
    sealing: Option<SealingKey>,
    opening: Option<OpeningKey>,
    sent: u32,
    read: u32,
    /// What the client calls the channel that it opened last.
    pub(crate) channel: u8,
}

impl Wire {
    fn new(stream: &TcpStream) -> Result<Self> {
        let (reader, writer) = (BufReader::new(stream.try_clone()?), stream.try_clone()?);
        let (sealing, opening) = (None, None);
        Ok(Self {
            reader,
            writer,
            batch: Vec::new(),
            sealing,
            opening,
            sent: 0,
            read: 0,
            channel: 0,
        })
    }

    /// Agrees on keys.
    fn agree(&mut self, between: impl FnOnce(&mut Self) -> Result<()>) -> Result<()> {
        self.writer.write_all(&[OUR_NAME, b"\r\n"].concat())?;
        let mut their_name = Vec::new();
        self.reader.read_until(b'\n', &mut their_name)?;
        let ours = proposal();
        self.put(&ours)?;
        self.flush()?;
        let theirs = self.read()?;
        let asked = self.read()?;
        between(self)?;
        let random = SystemRandom::new();
        let secret = EphemeralPrivateKey::generate(&X25519, &random).unwrap();
        let ours_public = secret.compute_public_key().unwrap();
        let theirs_public = &asked[5..37];
        let shared = UnparsedPublicKey::new(&X25519, theirs_public);
        let shared = agree_ephemeral(secret, &shared, integer).unwrap();
        let key = Ed25519KeyPair::from_seed_unchecked(&[9; 32]).unwrap();
        let host_key = [text(b"ssh-ed25519"), text(key.public_key().as_ref())].concat();
        let hashed = [
            text(their_name.trim_ascii_end()),
            text(OUR_NAME),
            text(&theirs),
            text(&ours),
            text(&host_key),
            text(theirs_public),
            text(ours_public.as_ref()),
            shared.clone(),
        ];
        let hash = digest(&SHA256, &hashed.concat());
        let signed = [text(b"ssh-ed25519"), text(key.sign(hash.as_ref()).as_ref())].concat();
        let answer = [vec![31], text(&host_key), text(ours_public.as_ref()), text(&signed)];
        self.put(&answer.concat())?;
        self.put(&[21])?;
        self.flush()?;
        while self.read()?[0] != 21 {}
        let derive = |letter: u8| {
            let start = [shared.as_slice(), hash.as_ref()].concat();
            let first = digest(&SHA256, &[&start, &[letter][..], hash.as_ref()].concat());
            let second = digest(&SHA256, &[&start, first.as_ref()].concat());
            let derived: [u8; KEY_LEN] =
                [first.as_ref(), second.as_ref()].concat().try_into().unwrap();
            derived
        };
        self.opening = Some(OpeningKey::new(&derive(b'C')));
        self.sealing = Some(SealingKey::new(&derive(b'D')));
        Ok(())
    }

    /// Sends a packet with the next ones.
    pub(crate) fn put(&mut self, payload: &[u8]) -> Result<()> {
        self.put_padded(payload, 0)
    }

    /// The same, with so much more padding than is needed, which is a multiple of eight.
    pub(crate) fn put_padded(&mut self, payload: &[u8], more: usize) -> Result<()> {
        let apart = if self.sealing.is_some() { 0 } else { 4 };
        let padding = 4 + 7 - (apart + 1 + payload.len() + 4 + 7) % 8 + more;
        let length = u32::try_from(1 + payload.len() + padding).unwrap();
        let begin = self.batch.len();
        self.batch.extend(length.to_be_bytes());
        self.batch.push(u8::try_from(padding).unwrap());
        self.batch.extend_from_slice(payload);
        self.batch.resize(self.batch.len() + padding, 0);
        if let Some(key) = &self.sealing {
            let mut tag = [0; TAG_LEN];
            key.seal_in_place(self.sent, &mut self.batch[begin..], &mut tag);
            self.batch.extend(tag);
        }
        self.sent = self.sent.wrapping_add(1);
        if self.batch.len() > BATCH_BYTES { self.flush() } else { Ok(()) }
    }

    /// Sends bytes as they are, which a host can do as long as nothing is encrypted.
    pub(crate) fn put_plain(&mut self, bytes: &[u8]) -> Result<()> {
        self.writer.write_all(bytes)
    }

    pub(crate) fn flush(&mut self) -> Result<()> {
        self.writer.write_all(&self.batch)?;
        self.batch.clear();
        Ok(())
    }

    /// The next packet, without its padding.
    pub(crate) fn read(&mut self) -> Result<Vec<u8>> {
        let mut head = [0; 4];
        self.reader.read_exact(&mut head)?;
        let sequence = self.read;
        self.read = self.read.wrapping_add(1);
        let Some(key) = &self.opening else {
            let mut packet = vec![0; number(&head)];
            self.reader.read_exact(&mut packet)?;
            return Ok(packet[1..packet.len() - usize::from(packet[0])].to_vec());
        };
        let length = number(&key.decrypt_packet_length(sequence, head));
        let mut packet = vec![0; length];
        self.reader.read_exact(&mut packet)?;
        let mut packet = [&head[..], &packet].concat();
        let mut tag = [0; TAG_LEN];
        self.reader.read_exact(&mut tag)?;
        let plain = key.open_in_place(sequence, &mut packet, &tag).unwrap();
        Ok(plain[1..plain.len() - usize::from(plain[0])].to_vec())
    }
}

/// How keys may be agreed on.
pub(crate) fn proposal() -> Vec<u8> {
    let mut proposal = vec![20];
    proposal.extend([7; 16]);
    for names in ["curve25519-sha256", "ssh-ed25519"] {
        proposal.extend(text(names.as_bytes()));
    }
    for names in ["chacha20-poly1305@openssh.com", "hmac-sha2-256", "none", ""] {
        proposal.extend([text(names.as_bytes()), text(names.as_bytes())].concat());
    }
    proposal.extend([0; 5]);
    proposal
}

/// Bytes with their length before them.
pub(crate) fn text(bytes: &[u8]) -> Vec<u8> {
    [&u32::try_from(bytes.len()).unwrap().to_be_bytes()[..], bytes].concat()
}

/// A number without a sign, as long as it needs to be.
fn integer(bytes: &[u8]) -> Vec<u8> {
    let begin = bytes.iter().position(|byte| *byte != 0).unwrap_or(bytes.len());
    let bytes = &bytes[begin..];
    let sign: &[u8] = if bytes.first().is_some_and(|byte| byte & 0x80 != 0) { &[0] } else { &[] };
    text(&[sign, bytes].concat())
}

fn number(bytes: &[u8]) -> usize {
    u32::from_be_bytes(bytes[..4].try_into().unwrap()) as usize
}
