//! Names and addresses, in a network of its own: a name server of ours, and listeners on public,
//! private and link-local addresses that exist on its loopback interface only.
//!
//! Nothing here leaves the machine: the network has no other interface.

use std::collections::HashMap;
use std::io::Write as _;
use std::net::{IpAddr, TcpListener, UdpSocket};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::harness::{Folder, Gateway, Home, Launch, http_request};
use super::own_root;

const PORT: u16 = 8080;
const PUBLIC: &str = "93.184.216.34";
const ADDRESSES: &[&str] =
    &[PUBLIC, "10.0.0.1", "169.254.169.254", "100.64.0.1", "fe80::1", "2606:2800:220:1::1"];

#[test]
fn in_a_network_of_its_own() {
    let folder = Folder::new("net");
    let resolver =
        folder.write("resolv.conf", b"nameserver 127.0.0.1\noptions timeout:1 attempts:1\n");
    let switch = folder.write("nsswitch.conf", b"hosts: files dns\n");
    let add: String = ADDRESSES
        .iter()
        .map(|address| {
            let (bits, flags) = if address.contains(':') { (128, "nodad") } else { (32, "") };
            format!("ip addr add {address}/{bits} dev lo {flags}; ")
        })
        .collect();
    let script = format!(
        "set -e; ip link set lo up; {add} mount --bind {} /etc/resolv.conf; \
         if test -e /etc/nsswitch.conf; then mount --bind {} /etc/nsswitch.conf; fi; \
         exec \"$0\" \"$@\"",
        resolver.display(),
        switch.display()
    );
    own_root::run_test("net::inside", &["--net"], &[folder.path()], &["sh", "-c", &script]);
}

/// What the name server answers: the lists of a name in turn, the last one for ever.
type Zone = HashMap<&'static str, Vec<Vec<IpAddr>>>;

struct Names {
    asked: Arc<Mutex<Vec<String>>>,
}

impl Names {
    fn start(zone: Zone) -> Self {
        let socket = UdpSocket::bind("127.0.0.1:53").unwrap();
        let asked: Arc<Mutex<Vec<String>>> = Arc::default();
        let log = Arc::clone(&asked);
        std::thread::spawn(move || {
            let mut rounds: HashMap<(String, u16), usize> = HashMap::new();
            let mut packet = [0; 512];
            while let Ok((count, from)) = socket.recv_from(&mut packet) {
                let (name, kind, end) = question(&packet[..count]);
                log.lock().unwrap().push(name.clone());
                if name.starts_with("silent") {
                    continue;
                }
                let round = rounds.entry((name.clone(), kind)).or_insert(0);
                let lists = zone.get(name.as_str()).cloned().unwrap_or_default();
                let list = lists.get(*round).or(lists.last()).cloned().unwrap_or_default();
                *round += 1;
                socket.send_to(&reply(&packet[..end], kind, &list), from).unwrap();
            }
        });
        Self { asked }
    }

    fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }
}

/// The name, the record type and the end of the one question of a packet.
fn question(packet: &[u8]) -> (String, u16, usize) {
    let (mut at, mut labels) = (12, Vec::new());
    while packet[at] != 0 {
        let length = usize::from(packet[at]);
        labels.push(String::from_utf8_lossy(&packet[at + 1..=at + length]).to_ascii_lowercase());
        at += length + 1;
    }
    (labels.join("."), u16::from_be_bytes([packet[at + 1], packet[at + 2]]), at + 5)
}

fn reply(question: &[u8], kind: u16, list: &[IpAddr]) -> Vec<u8> {
    let mut records = Vec::new();
    let mut count = 0u16;
    for address in list {
        let bytes = match (address, kind) {
            (IpAddr::V4(address), 1) => address.octets().to_vec(),
            (IpAddr::V6(address), 28) => address.octets().to_vec(),
            _ => continue,
        };
        count += 1;
        records.extend([0xc0, 12]);
        records.extend(kind.to_be_bytes());
        records.extend([0, 1, 0, 0, 0, 0]);
        records.extend(u16::try_from(bytes.len()).unwrap().to_be_bytes());
        records.extend(bytes);
    }
    let mut packet = question[..2].to_vec();
    packet.extend([0x81, 0x80, 0, 1]);
    packet.extend(count.to_be_bytes());
    packet.extend([0, 0, 0, 0]);
    packet.extend(&question[12..]);
    packet.extend(records);
    packet
}

/// Counts connections to each address, and answers each with its own address.
struct Listeners {
    seen: Arc<Mutex<Vec<IpAddr>>>,
}

impl Listeners {
    fn start() -> Self {
        let seen: Arc<Mutex<Vec<IpAddr>>> = Arc::default();
        for address in ADDRESSES.iter().copied().chain(["127.0.0.1", "::1"]) {
            let address: IpAddr = address.parse().unwrap();
            let bound = match address {
                IpAddr::V6(v6) if v6.segments()[0] == 0xfe80 => {
                    TcpListener::bind(std::net::SocketAddrV6::new(v6, PORT, 0, 1))
                }
                address => TcpListener::bind((address, PORT)),
            };
            let listener = bound.unwrap();
            let seen = Arc::clone(&seen);
            std::thread::spawn(move || {
                for stream in listener.incoming() {
                    let mut stream = stream.unwrap();
                    seen.lock().unwrap().push(address);
                    let body = address.to_string();
                    let head = format!(
                        "HTTP/1.1 200 OK\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
                        body.len()
                    );
                    stream.write_all(&[head.as_bytes(), body.as_bytes()].concat()).ok();
                    stream.shutdown(std::net::Shutdown::Write).ok();
                    std::io::copy(&mut stream, &mut std::io::sink()).ok();
                }
            });
        }
        Self { seen }
    }

    fn seen(&self) -> Vec<IpAddr> {
        std::mem::take(&mut self.seen.lock().unwrap())
    }
}

fn target(host: &str, private: bool) -> Value {
    json!({
        "base_url": format!("http://{host}:{PORT}/"),
        "private": private,
        "rules": [{ "decision": "allow", "methods": ["GET"], "path": "/ok/**" }],
    })
}

fn get(gateway: &mut Gateway, host: &str, path: &str) -> Value {
    let arguments = json!({ "method": "GET", "url": format!("http://{host}:{PORT}{path}"), "timeout_seconds": 3 });
    gateway.request(7, arguments)["structuredContent"].take()
}

const HIDDEN: &[(&str, &str, bool)] = &[
    ("loopback", "127.0.0.1", true),
    ("ten", "10.0.0.1", true),
    ("shared", "100.64.0.1", true),
    ("mapped", "::ffff:127.0.0.1", true),
    ("loopback6", "::1", true),
    ("metadata", "169.254.169.254", false),
    ("link", "fe80::1", false),
];

#[test]
#[ignore = "runs inside the network that in_a_network_of_its_own makes"]
fn inside() {
    let ip = |text: &str| text.parse::<IpAddr>().unwrap();
    let mut zone: Zone = HashMap::from([
        ("public.test", vec![vec![ip(PUBLIC)]]),
        ("public6.test", vec![vec![ip("2606:2800:220:1::1")]]),
        ("mixed.test", vec![vec![ip("10.0.0.1"), ip(PUBLIC)]]),
        ("rebind.test", vec![vec![ip(PUBLIC)], vec![ip("127.0.0.1")]]),
    ]);
    let mut http = json!({
        "public": target("public.test", false),
        "public6": target("public6.test", false),
        "mixed": target("mixed.test", false),
        "rebind": target("rebind.test", false),
        "nowhere": target("nowhere.test", false),
        "literal": target("127.0.0.1", false),
    });
    for name in ["silent1", "silent2", "silent3", "silent4", "silent5", "silent6"] {
        http[name] = target(&format!("{name}.test"), false);
    }
    for (name, address, _) in HIDDEN {
        for private in [false, true] {
            let label = if private { format!("{name}-private") } else { (*name).to_owned() };
            let host: &'static str = Box::leak(format!("{label}.test").into_boxed_str());
            zone.insert(host, vec![vec![ip(address)]]);
            http[&label] = target(host, private);
        }
    }
    let names = Names::start(zone);
    let listeners = Listeners::start();
    let home = Home::with_config(&json!({ "version": 1, "http": http }));
    let mut gateway = Launch::mcp(home.path()).start();
    gateway.handshake();

    // What is refused is neither looked up nor connected to.
    for (host, path) in [
        ("public.test", "/denied"),
        ("other.test", "/ok/a"),
        ("2130706433", "/ok/a"),
        ("0x7f.1", "/ok/a"),
        ("0177.0.0.1", "/ok/a"),
        ("[::ffff:7f00:1]", "/ok/a"),
        ("localhost.", "/ok/a"),
        ("public.test.", "/ok/a"),
    ] {
        assert_eq!(get(&mut gateway, host, path)["state"], "denied", "{host}{path}");
    }
    assert_eq!((names.asked(), listeners.seen()), (vec![], vec![]));

    for (host, address) in [
        ("public.test", PUBLIC),
        ("public6.test", "2606:2800:220:1::1"),
        ("mixed.test", PUBLIC),
        ("127.0.0.1", "127.0.0.1"),
    ] {
        assert_eq!(get(&mut gateway, host, "/ok/a")["body"], address, "{host}");
        assert_eq!(listeners.seen(), [ip(address)], "{host}");
    }
    for (name, address, opens) in HIDDEN {
        let refused = get(&mut gateway, &format!("{name}.test"), "/ok/a");
        assert_eq!(refused["state"], "failed_before_dispatch", "{name}: {refused}");
        assert_eq!(refused["reason"], "network");
        assert!(listeners.seen().is_empty(), "{name}");
        let private = get(&mut gateway, &format!("{name}-private.test"), "/ok/a");
        if *opens {
            let served = if *address == "::ffff:127.0.0.1" { "127.0.0.1" } else { address };
            assert_eq!(private["body"], served, "{name}: {private}");
            assert_eq!(listeners.seen(), [ip(served)]);
        } else {
            assert_eq!(private["reason"], "network", "{name}: {private}");
            assert!(listeners.seen().is_empty(), "{name}");
        }
    }
    assert_eq!(get(&mut gateway, "nowhere.test", "/ok/a")["reason"], "network");

    // The checked address is the dialled one, however often the name changes.
    assert_eq!(get(&mut gateway, "rebind.test", "/ok/a")["body"], PUBLIC);
    assert_eq!(get(&mut gateway, "rebind.test", "/ok/a")["reason"], "network");
    assert_eq!(listeners.seen(), [ip(PUBLIC)]);

    silence(&mut gateway);
    gateway.end();
}

/// Lookups that never return hold up their own calls only.
fn silence(gateway: &mut Gateway) {
    let started = Instant::now();
    for (id, name) in
        ["silent1", "silent2", "silent3", "silent4", "silent5", "silent6"].iter().enumerate()
    {
        let url = format!("http://{name}.test:{PORT}/ok/a");
        let arguments = json!({ "method": "GET", "url": url, "timeout_seconds": 1 });
        gateway.say(&http_request(id as u64 + 100, arguments));
    }
    assert_eq!(get(gateway, "127.0.0.1", "/ok/a")["body"], "127.0.0.1");
    assert!(started.elapsed() < Duration::from_millis(900), "{:?}", started.elapsed());
    for id in 100..106u64 {
        let answer = gateway.answer_to(id);
        assert_eq!(
            answer["result"]["structuredContent"]["state"], "failed_before_dispatch",
            "{answer}"
        );
    }
    assert!(started.elapsed() < Duration::from_millis(1500), "{:?}", started.elapsed());
}
