//! What travels arrives, and what is odd starts nothing.

use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use rustix::pipe::pipe;

use super::*;
use crate::secret::Secret;

fn sockets() -> (OwnedFd, OwnedFd) {
    socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None).unwrap()
}

#[test]
fn reports_travel_and_anything_else_is_none() {
    for report in [
        Report::Started,
        Report::Fault(Step::Guard, 1),
        Report::Fault(Step::Folder, 2),
        Report::Fault(Step::Confine, 3),
        Report::Fault(Step::Spawn, i32::MAX),
        Report::Exited(255),
        Report::Signalled(9),
        Report::Ended { proven: true },
        Report::Ended { proven: false },
    ] {
        assert_eq!(Report::decode(report.encode()), Some(report));
    }
    for odd in
        [[0; 8], [1, 1, 0, 0, 0, 0, 0, 0], [2, 4, 0, 0, 0, 0, 0, 0], [6, 0, 0, 0, 0, 0, 0, 0]]
    {
        assert_eq!(Report::decode(odd), None, "{odd:?}");
    }
    assert_eq!(Report::decode([3, 0, 1, 0, 0, 0, 0, 0]), None);
}

#[test]
fn whatever_is_no_order_is_the_order_to_end() {
    let (gateway, guard) = sockets();
    assert_eq!(Order::receive(guard.as_fd()), None);
    for (bytes, expected) in [(b"t", Order::Term), (b"e", Order::End), (b"x", Order::End)] {
        send(&gateway, bytes, SendFlags::empty()).unwrap();
        assert_eq!(Order::receive(guard.as_fd()), Some(expected));
    }
    drop(gateway);
    assert_eq!(Order::receive(guard.as_fd()), Some(Order::End));
}

#[test]
fn an_order_to_start_arrives_word_for_word() {
    let program = Program {
        path: "/bin/p".into(),
        arguments: vec![String::new(), "a b".into()],
        environment: vec![("N".into(), Secret::new(b"v=w".to_vec()))],
        folder: "/f".into(),
        stdin: Vec::new(),
        confinement: Confinement::Outside("/h".into()),
    };
    let (gateway, guard) = sockets();
    let (stdin, stdout) = pipe().unwrap();
    let order = write(&program).unwrap();
    assert_eq!(order.len(), order.capacity(), "it has not grown");
    let descriptors = [stdin.as_fd(), stdout.as_fd(), stdout.as_fd()];
    send_start(gateway.as_fd(), &order, descriptors, Deadline::after(limits::ORDER_FOR)).unwrap();
    let start = Start::receive(guard.as_fd()).unwrap();
    let words = start.words().unwrap();
    assert_eq!((words.path, words.folder, words.is_confined), (c"/bin/p", c"/f", true));
    assert_eq!(words.arguments, [c"/bin/p", c"", c"a b"]);
    assert_eq!(words.environment, [c"N=v=w"]);
}

#[test]
fn an_order_that_is_cut_or_odd_starts_nothing() {
    let (stdin, stdout) = pipe().unwrap();
    let words = b"/p\0/f\0";
    let order = |magic: u32, length: usize, counts: [u32; 3]| {
        let numbers = [magic, u32::try_from(length).unwrap(), counts[0], counts[1], counts[2]];
        [&numbers.map(u32::to_ne_bytes).concat(), &words[..]].concat()
    };
    for (order, is_one) in [
        (order(MAGIC, 6, [0, 0, 0]), true),
        (order(MAGIC + 1, 6, [0, 0, 0]), false),
        (order(MAGIC, 7, [0, 0, 0]), false),
        (order(MAGIC, limits::PROGRAM_BYTES + 1, [0, 0, 0]), false),
        (order(MAGIC, 6, [0, 0, 2]), false),
        (order(MAGIC, 6, [1, 0, 0]), false),
        (order(MAGIC, 6, [0, u32::MAX, 0]), false),
        (order(MAGIC, 3, [0, 0, 0]), false),
    ] {
        let (gateway, guard) = sockets();
        let descriptors = [stdin.as_fd(), stdout.as_fd(), stdout.as_fd()];
        let deadline = Deadline::after(limits::ORDER_FOR);
        send_start(gateway.as_fd(), &order, descriptors, deadline).unwrap();
        drop(gateway);
        let start = Start::receive(guard.as_fd());
        assert_eq!(start.is_some_and(|start| start.words().is_some()), is_one, "{order:?}");
    }
    let (gateway, guard) = sockets();
    send(&gateway, &order(MAGIC, 6, [0, 0, 0]), SendFlags::empty()).unwrap();
    assert!(Start::receive(guard.as_fd()).is_none(), "no descriptors");
}
