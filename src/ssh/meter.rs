//! How much of what a host sends is of use.
//!
//! The library keeps whatever comes, and nobody learns from it how much that is. But what it was given is known, and
//! what it gave back: the difference is at least what it can hold that nobody asked for.
//!
//! What came in one piece is taken for one packet, as SSH would send it. Where it was several, too little is
//! believed to be of use. So the pieces grow smaller as the allowance is used up, down to one that no two packets
//! of use fit into: from there on the count is exact, and whoever sends nothing else is not ended, however small his
//! packets are.
//!
//! Invariant: nothing is given beyond the allowance; and of what is of no use, nothing is forgiven but a small part of
//! what was.

use ssh2::{MethodType, Session};

/// The largest piece.
pub(super) const PIECE_BYTES: usize = 64 * 1024;
/// The smallest one: a byte of output takes at least 36, under every cipher that is spoken.
const SMALLEST_BYTES: usize = 32;
/// What output in small packets does not use up: it is for the packet on its way, and for what SSH itself needs while
/// the call lasts.
const RESERVE_BYTES: usize = 192 * 1024;
/// With less than this no further call begins.
const WORN_BYTES: usize = 128 * 1024;
/// No packet is longer. Source: libssh2_priv.h, `LIBSSH2_PACKET_MAXPAYLOAD`.
const PACKET_BYTES: usize = 40_000;
/// A piece is at most so small a part of what is left.
const PART: usize = 8;
/// So small a part of what was of use is forgiven of what was not.
const FORGIVEN: usize = 256;
/// What an answer to something small may take, and the part of what was sent that one to something large may.
const ANSWER_BYTES: usize = 256;
const ANSWERED: usize = 512;

/// What stands before what is read out of a packet. Source: RFC 4254, section 5.2.
pub(super) const DATA: usize = 1 + 4 + 4;
/// The same for what is not stdout.
pub(super) const EXTENDED: usize = DATA + 4;
/// The same for a part of a file. Source: draft-ietf-secsh-filexfer-02, sections 3 and 7.
pub(super) const FILE: usize = DATA + 4 + 1 + 4 + 4;

/// What the library was given, beside what was of use.
#[derive(Clone, Copy, Debug)]
pub(super) struct Meter {
    allowance: usize,
    useless: usize,
    /// What was given since anything was of use.
    since: usize,
}

impl Meter {
    pub(super) fn new(allowance: usize) -> Self {
        Self { allowance, useless: 0, since: 0 }
    }

    /// Allows more from now on.
    pub(super) fn allow(&mut self, allowance: usize) {
        self.allowance = allowance;
    }

    /// How much may be given next; nothing once the allowance is used up.
    pub(super) fn piece(&self) -> usize {
        let left = self.left();
        // What is no packet of use by now becomes none, and needs no counting. But there may be some behind it.
        let spare =
            if self.since > PACKET_BYTES { left } else { left.saturating_sub(RESERVE_BYTES) };
        (spare / PART).clamp(SMALLEST_BYTES, PIECE_BYTES).min(left)
    }

    /// Whether another call might be ended for what came before it.
    pub(super) fn is_worn(&self) -> bool {
        self.left() < WORN_BYTES
    }

    fn left(&self) -> usize {
        self.allowance.saturating_sub(self.useless)
    }

    /// The library was given so much.
    pub(super) fn given(&mut self, bytes: usize) {
        self.useless = self.useless.saturating_add(bytes);
        self.since = self.since.saturating_add(bytes);
    }

    /// So much of it was of use, and came in packets that add so much to it.
    pub(super) fn used(&mut self, bytes: usize, added: usize) {
        self.since = 0;
        self.take(bytes.saturating_add(added).saturating_add(bytes / FORGIVEN));
    }

    /// So much was sent to the host, which answers it.
    pub(super) fn sent(&mut self, bytes: usize) {
        self.take(bytes.min(ANSWER_BYTES + bytes / ANSWERED));
    }

    fn take(&mut self, bytes: usize) {
        self.useless = self.useless.saturating_sub(bytes);
    }
}

/// How packets of a host are built.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Framing {
    /// What is padded is a multiple of this.
    block: usize,
    /// The packet's length stands before that, and is no part of it.
    is_length_apart: bool,
    /// What stands at the end.
    tag: usize,
}

impl Framing {
    /// As it is now: a host can agree on other ciphers later.
    pub(super) fn of(session: &Session) -> Self {
        let method = |kind| session.methods(kind).unwrap_or_default();
        Self::named(method(MethodType::CryptSc), method(MethodType::MacSc))
    }

    fn named(cipher: &str, checksum: &str) -> Self {
        if cipher.starts_with("chacha20") {
            return Self { block: 8, is_length_apart: true, tag: 16 };
        }
        if cipher.contains("gcm") {
            return Self { block: 16, is_length_apart: true, tag: 16 };
        }
        let tag = if checksum.contains("512") { 64 } else { 32 };
        Self { block: 16, is_length_apart: checksum.contains("etm"), tag }
    }

    /// What a packet adds to what is read out of it, behind a head of a certain length.
    pub(super) fn added(self, bytes: usize, head: usize) -> usize {
        let length = if self.is_length_apart { 0 } else { 4 };
        let apart = 4 - length;
        let padded = length + 1 + head + bytes;
        // Source: RFC 4253, section 6: at least four bytes of padding.
        let whole = (padded + 4).next_multiple_of(self.block);
        apart + whole + self.tag - bytes
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use super::*;

    const ALLOWANCE: usize = crate::limits::SSH_USELESS_BYTES;
    const CHACHA: Framing = Framing { block: 8, is_length_apart: true, tag: 16 };

    /// What comes of use out of each packet of a host, and how long the packet is.
    struct Packet {
        bytes: usize,
        wire: usize,
    }

    fn of_use(framing: Framing, bytes: usize) -> Packet {
        Packet { bytes, wire: bytes + framing.added(bytes, DATA) }
    }

    /// A host that has sent all this, before any of it was read. How much was given of it, and of no use.
    fn give(
        meter: &mut Meter,
        framing: Framing,
        packets: impl IntoIterator<Item = Packet>,
    ) -> (bool, usize) {
        let mut waiting = VecDeque::new();
        let (mut packets, mut there, mut held) = (packets.into_iter(), 0, 0);
        loop {
            let piece = meter.piece();
            while there < piece {
                let Some(packet) = packets.next() else { break };
                there += packet.wire;
                waiting.push_back(packet);
            }
            if piece == 0 {
                return (false, held);
            }
            if there == 0 {
                return (true, held);
            }
            let given = piece.min(there);
            meter.given(given);
            there -= given;
            let (mut left, mut read) = (given, 0);
            while let Some(first) = waiting.front_mut() {
                let taken = left.min(first.wire);
                first.wire -= taken;
                left -= taken;
                if first.wire > 0 {
                    break;
                }
                read += first.bytes;
                if first.bytes == 0 {
                    held += 1;
                }
                waiting.pop_front();
            }
            if read > 0 {
                meter.used(read, framing.added(read, DATA));
            }
        }
    }

    /// Framings of real packets with one byte of output, as OpenSSH sends them.
    #[test]
    fn framings() {
        for (cipher, checksum, stdout, stderr) in [
            ("aes128-gcm@openssh.com", "", 36, 52),
            ("chacha20-poly1305@openssh.com", "", 36, 44),
            ("aes128-ctr", "hmac-sha2-256-etm@openssh.com", 52, 68),
            ("aes256-ctr", "hmac-sha2-512-etm@openssh.com", 84, 100),
            ("aes128-ctr", "hmac-sha2-256", 64, 64),
        ] {
            let framing = Framing::named(cipher, checksum);
            let wire = [DATA, EXTENDED].map(|head| 1 + framing.added(1, head));
            assert_eq!(wire, [stdout, stderr], "{cipher} {checksum}");
            assert!(SMALLEST_BYTES < stdout);
        }
    }

    #[test]
    fn whoever_sends_only_what_is_of_use_is_never_ended() {
        let mixed = |number: usize| match number % 7 {
            0..3 => 1,
            3 | 4 => 120,
            5 => 1 + number % 4000,
            _ => 32 * 1024,
        };
        let in_turn =
            |number: usize| if (number / 20_000).is_multiple_of(2) { 32 * 1024 } else { 1 };
        for (count, bytes) in [
            (2_000_000, Box::new(|_| 1_usize) as Box<dyn Fn(usize) -> usize>),
            (300_000, Box::new(|_| 100)),
            (40_000, Box::new(|_| 32 * 1024)),
            (300_000, Box::new(mixed)),
            (200_000, Box::new(in_turn)),
        ] {
            let mut meter = Meter::new(ALLOWANCE);
            let packets = (0..count).map(|number| of_use(CHACHA, bytes(number)));
            assert!(give(&mut meter, CHACHA, packets).0);
        }
    }

    /// Output in small packets, a long silence in which only SSH speaks, and output again.
    #[test]
    fn small_output_leaves_something_for_what_ssh_itself_needs() {
        let small = || (0..100_000).map(|_| of_use(CHACHA, 1));
        let large = || (0..100).map(|_| of_use(CHACHA, 32 * 1024));
        let mut meter = Meter::new(ALLOWANCE);
        assert!(give(&mut meter, CHACHA, small()).0);
        for _ in 0..600 {
            meter.given(112);
            meter.sent(80);
        }
        assert!(give(&mut meter, CHACHA, small().chain(large()).chain(small())).0);
        assert!(!meter.is_worn());
    }

    #[test]
    fn of_what_is_of_no_use_little_is_taken() {
        let useless = || Packet { bytes: 0, wire: 36 };
        let most = ALLOWANCE / 36 + 1;
        for useful_bytes in [0, 1, 100, 32 * 1024] {
            for every in [2, 3, 100] {
                let mut meter = Meter::new(ALLOWANCE);
                let packets = (0..1_000_000).map(|number| {
                    if useful_bytes > 0 && number % every == 0 {
                        of_use(CHACHA, useful_bytes)
                    } else {
                        useless()
                    }
                });
                let (is_open, held) = give(&mut meter, CHACHA, packets);
                // What was forgiven, beside the allowance.
                let forgiven = if useful_bytes > 1000 { 1_000_000 } else { 0 };
                assert!(held <= most + forgiven, "{useful_bytes} {every}: {held}");
                assert!(!is_open || useful_bytes > 1000, "{useful_bytes} {every}");
            }
        }
    }

    #[test]
    fn what_was_sent_is_answered() {
        let mut meter = Meter::new(ALLOWANCE);
        for _ in 0..1_000_000 {
            meter.given(36);
            meter.sent(52);
        }
        assert_eq!(meter.useless, 0);
    }
}
