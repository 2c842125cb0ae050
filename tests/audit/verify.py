#!/usr/bin/env python3
"""Verifies a record of Keyward's, and opens it with an auditor's key. Written from the README alone.

usage: verify.py AUDIT_FOLDER [--head FILE] [--identity FILE]

FILE holds heads, one a line. Prints one JSON object: {"rows":..,"segments":..,"damage":null or {"row":..},
"anchored":..,"anchored_to":null or a row,"pruned_heads":..,"before":[{"anchored_to":..,"unchecked_heads":..}]};
with --identity the events follow, one a line. Status 0 whatever it finds, 2 where a package is missing.
"""
import base64
import hashlib
import hmac
import json
import os
import re
import struct
import sys

try:
    from cryptography.exceptions import InvalidSignature, InvalidTag
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
    from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
except ImportError:
    sys.exit(2)

ROW = re.compile(
    rb'\{"seq":(0|[1-9][0-9]*),"prev":"([0-9a-f]{64})","sealed":"([A-Za-z0-9+/]*={0,2})",'
    rb'"hash":"([0-9a-f]{64})","sig":"([A-Za-z0-9+/]{86}==)"\}\n'
)
HEAD = re.compile(
    r'\{"chain":"([0-9a-f]{64})","seq":([1-9][0-9]{0,19}),"hash":"([0-9a-f]{64})",'
    r'"key":"([0-9a-f]{64})","sig":"([A-Za-z0-9+/]{86}==)"\}'
)
LOCAL = re.compile(
    rb'\{"chain":"([0-9a-f]{64})","segment":(0|[1-9][0-9]*),"bytes":(0|[1-9][0-9]*),"seq":(0|[1-9][0-9]*),'
    rb'"hash":"([0-9a-f]{64})"\} *\n'
)
NUMBER = r"([0-9]{6}|[1-9][0-9]{6,})"
ROW_BYTES = 1024 * 1024


class Damage(Exception):
    row = None


class Row:
    def __init__(self, line):
        found = ROW.fullmatch(line)
        if not found or len(line) - 1 > ROW_BYTES:
            raise Damage("spelling")
        seq, prev, sealed, digest, sig = found.groups()
        if len(sealed) % 4 or len(seq) > 20:
            raise Damage("spelling")
        self.seq, self.prev, self.hash = int(seq), bytes.fromhex(prev.decode()), bytes.fromhex(digest.decode())
        self.sealed, self.sig = base64.b64decode(sealed), base64.b64decode(sig)
        if base64.b64encode(self.sealed) != sealed or base64.b64encode(self.sig) != sig or self.seq >= 2**64:
            raise Damage("spelling")

    def check(self, chain, key):
        text = b"keyward record row v1\0" + chain + struct.pack(">Q", self.seq) + self.prev + self.sealed
        if hashlib.sha256(text).digest() != self.hash:
            raise Damage("hash")
        verify(key, self.sig, self.hash)


def verify(key, signature, text):
    try:
        Ed25519PublicKey.from_public_bytes(key).verify(signature, text)
    except InvalidSignature:
        raise Damage("signature") from None


def parse_start(sealed):
    """The beginning of a segment, or None."""
    if sealed[:1] != b"\x02":
        return None
    at = 1

    def take(count):
        nonlocal at
        if at + count > len(sealed):
            raise Damage("contents")
        at += count
        return sealed[at - count:at]

    start = {"segment": struct.unpack(">Q", take(8))[0]}
    take(8 + 4)
    start["key"] = take(32)
    start["recipients"] = [take(32) for _ in range(take(1)[0])]
    start["torn"] = [(*struct.unpack(">QQ", take(16)), take(32)) for _ in range(struct.unpack(">H", take(2))[0])]
    start["origin"] = take(1)[0]
    if start["origin"] > 2:
        raise Damage("contents")
    take({0: 0, 1: 32, 2: 32}[start["origin"]])
    start["after"] = (take(32), struct.unpack(">Q", take(8))[0], take(32)) if start["origin"] == 2 else None
    if at != len(sealed):
        raise Damage("contents")
    return start


def segments(folder):
    found = filter(None, (re.fullmatch(NUMBER + r"\.jsonl", name) for name in os.listdir(folder)))
    return sorted(number for number in (int(it[1]) for it in found) if number < 2**64)


class Walk:
    def __init__(self, folder, heads, beside=None):
        self.folder, self.heads, self.beside = folder, heads, beside or folder
        self.chain = self.key = self.after = self.anchored_to = None
        self.elsewhere, self.before, self.pruned_heads = [], [], 0
        self.segment, self.end, self.seq, self.hash = 0, 0, 0, bytes(32)
        self.rows = self.segments = 0
        self.opened, self.noted, self.held = [], [], False
        self.pruned = False
        try:
            with open(os.path.join(folder, "head"), "rb") as file:
                text = file.read(321)
            found = len(text) == 320 and LOCAL.fullmatch(text) or None
            if found and max(int(found[number]) for number in (2, 3, 4)) >= 2**64:
                found = None
            self.local = found and {"chain": found[1].decode(), "hash": found[5].decode(), "seq": int(found[4]),
                                    "at": (int(found[2]), int(found[3]))}
            self.unreadable = found is None
        except FileNotFoundError:
            self.local, self.unreadable = None, False

    def go(self):
        numbers = segments(self.folder)
        pruned = os.path.join(self.folder, "pruned.jsonl")
        if os.path.exists(pruned):
            with open(pruned, "rb") as file:
                for line in file:
                    if numbers and self.segment + 1 >= numbers[0]:
                        break
                    self.segment += 1
                    row = Row(line)
                    start = parse_start(row.sealed)
                    if start is None or row.seq <= self.seq:
                        raise Damage("pruned")
                    self.seq = row.seq - 1
                    self.begin(row, start)
            self.pruned = self.segment > 0
        for number in numbers:
            self.segment += 1
            if number != self.segment:
                raise Damage("missing segment")
            with open(os.path.join(self.folder, f"{number:06}.jsonl"), "rb") as file:
                lines = file.readlines()
            for at, line in enumerate(lines or [b""]):
                try:
                    self.take(at, line)
                except Damage:
                    last = number == numbers[-1] and at + 1 >= len(lines) and len(line) <= ROW_BYTES + 1
                    uncovered = self.local["seq"] <= self.seq if self.local else not line.endswith(b"\n")
                    if last and uncovered and not self.parsed:
                        return self.finish(numbers)
                    raise
        self.finish(numbers)

    def take(self, at, line):
        self.parsed = False
        row = Row(line)
        self.end = len(line) if at == 0 else self.end + len(line)
        start = parse_start(row.sealed)
        if at == 0:
            if start is None:
                raise Damage("no beginning")
            if self.pruned and self.segments == 0:
                if row.seq <= self.seq:
                    self.parsed = True
                    raise Damage("pruned")
                self.seq, self.hash = row.seq - 1, row.prev
            self.place(row)
            self.begin(row, start)
            self.noted += start["torn"]
            self.segments += 1
        else:
            row.check(self.chain, self.key)
            if start is not None or row.sealed[:1] != b"\x01" or len(row.sealed) <= 5 + 88:
                raise Damage("contents")
            self.place(row)
            self.passed(row)
            self.opened.append(row)
        self.rows += 1

    def place(self, row):
        if (row.seq, row.prev) != (self.seq + 1, self.hash):
            self.parsed = True
            raise Damage("order")

    def begin(self, row, start):
        if start is None or start["segment"] != self.segment:
            raise Damage("segment")
        if (start["origin"] == 0) != (self.chain is not None):
            raise Damage("origin")
        if self.chain is None:
            self.chain = hashlib.sha256(b"keyward record chain v1\0" + row.sealed).digest()
            self.after = start["after"]
            row.check(self.chain, start["key"])
            self.elsewhere = [head for head in self.heads if head["chain"] != self.chain]
            self.heads = [head for head in self.heads if head["chain"] == self.chain]
            if self.elsewhere and not self.after:
                raise Damage("another chain")
        else:
            row.check(self.chain, self.key)
        for head in [head for head in self.heads if head["seq"] < row.seq]:
            if head["key"] != self.key:
                raise Damage("head")
            self.pruned_heads += 1
            self.heads.remove(head)
        self.key = start["key"]
        self.passed(row)

    def passed(self, row):
        self.seq, self.hash = row.seq, row.hash
        self.parsed = True
        here = {"chain": self.chain.hex(), "hash": row.hash.hex(), "seq": row.seq, "at": (self.segment, self.end)}
        if self.local and self.local["seq"] == row.seq and self.local != here:
            self.seq -= 1
            raise Damage("head")
        self.held |= bool(self.local and self.local["seq"] == row.seq)
        for head in [head for head in self.heads if head["seq"] == row.seq]:
            if head["hash"] != row.hash or head["key"] != self.key:
                self.seq -= 1
                raise Damage("head")
            self.anchored_to = row.seq
            self.heads.remove(head)

    def finish(self, numbers):
        if self.chain is None:
            raise Damage("no chain")
        kept = set()
        for name in os.listdir(self.folder):
            found = re.fullmatch(NUMBER + r"(\.[1-9][0-9]*)?\.torn", name)
            if found:
                with open(os.path.join(self.folder, name), "rb") as file:
                    text = file.read()
                kept.add((int(found.group(1)), len(text), hashlib.sha256(text).digest()))
        for segment, *_ in kept - set(self.noted):
            if segment < numbers[-1] and segment + 1 >= numbers[0]:
                raise Damage("torn")
        if self.unreadable:
            raise Damage("head")
        if self.heads or self.local and self.local["seq"] > self.seq:
            raise Damage("cut")
        if self.local and not self.held:
            raise Damage("head")
        if self.elsewhere:
            try:
                self.look_before()
            except Damage as fault:
                fault.row = 1
                raise

    def look_before(self):
        """Heads of the chain before: against its rows, or against the link alone."""
        chain, seq, digest = self.after
        folder = os.path.join(self.beside, f"chain-{chain.hex()[:16]}")
        if os.path.isdir(folder):
            walk = Walk(folder, self.elsewhere, self.beside)
            walk.go()
            if (walk.chain, walk.seq, walk.hash) != self.after:
                raise Damage("another end")
            self.before = [{"anchored_to": walk.anchored_to, "unchecked_heads": walk.pruned_heads}] + walk.before
            return
        held = None
        for head in self.elsewhere:
            if head["chain"] != chain or head["seq"] > seq or head["seq"] == seq and head["hash"] != digest:
                raise Damage("another end")
            held = seq if head["seq"] == seq else held
        unchecked = sum(head["seq"] < seq for head in self.elsewhere)
        self.before = [{"anchored_to": held, "unchecked_heads": unchecked}]


# HPKE, RFC 9180, base mode, single-shot: by hand, so that no library is shared with what is checked.

def extract(salt, key):
    return hmac.digest(salt or bytes(32), key, "sha256")


def expand(key, info, length):
    text, block = b"", b""
    for number in range(1, length // 32 + 2):
        block = hmac.digest(key, block + info + bytes([number]), "sha256")
        text += block
    return text[:length]


def labeled(suite, kind, label, *rest):
    if kind == "extract":
        salt, key = rest
        return extract(salt, b"HPKE-v1" + suite + label + key)
    key, info, length = rest
    return expand(key, struct.pack(">H", length) + b"HPKE-v1" + suite + label + info, length)


def public_bytes(private):
    # In the words of every version of the package: `public_bytes_raw` came late.
    return private.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)


def hpke_open(private, enc, info, aad, sealed):
    kem, suite = b"KEM\x00\x20", b"HPKE\x00\x20\x00\x01\x00\x03"
    shared = private.exchange(X25519PublicKey.from_public_bytes(enc))
    public = public_bytes(private)
    prk = labeled(kem, "extract", b"eae_prk", b"", shared)
    secret = labeled(kem, "expand", b"shared_secret", prk, enc + public, 32)
    context = (
        b"\0" + labeled(suite, "extract", b"psk_id_hash", b"", b"") + labeled(suite, "extract", b"info_hash", b"", info)
    )
    secret = labeled(suite, "extract", b"secret", secret, b"")
    key = labeled(suite, "expand", b"key", secret, context, 32)
    nonce = labeled(suite, "expand", b"base_nonce", secret, context, 12)
    return ChaCha20Poly1305(key).decrypt(nonce, sealed, aad)


def open_row(private, chain, row):
    label = b"keyward record seal v1\0"
    bound = label + chain + struct.pack(">Q", row.seq) + row.prev
    tag = hashlib.sha256(public_bytes(private)).digest()[:8]
    count = row.sealed[5]
    body_at = 6 + count * 88
    for number in range(count):
        stanza = row.sealed[6 + number * 88:6 + (number + 1) * 88]
        if stanza[:8] == tag:
            key = hpke_open(private, stanza[8:40], label, bound, stanza[40:])
            text = ChaCha20Poly1305(key).decrypt(bytes(12), row.sealed[body_at:], bound + row.sealed[:body_at])
            length = struct.unpack(">I", text[:4])[0]
            assert len(text) % 512 == 0 and not any(text[4 + length:])
            return text[4:4 + length].decode()
    return None


def read_identity(path):
    with open(path) as file:
        text = file.read().strip().removeprefix("kwidentity1")
    key, check = bytes.fromhex(text[:64]), bytes.fromhex(text[64:])
    assert hashlib.sha256(key).digest()[:4] == check
    return X25519PrivateKey.from_private_bytes(key)


def read_heads(path):
    """The heads of a file, each signed by the key that it names."""
    heads = []
    with open(path) as file:
        for chain, seq, digest, key, sig in (found.groups() for found in map(HEAD.fullmatch, map(str.strip, file)) if found):
            head = {"chain": bytes.fromhex(chain), "seq": int(seq), "hash": bytes.fromhex(digest), "key": bytes.fromhex(key)}
            signed = b"keyward record head v1\0" + head["chain"] + struct.pack(">Q", head["seq"]) + head["hash"]
            verify(head["key"], base64.b64decode(sig), signed)
            heads.append(head)
    return heads


def main():
    folder, rest = sys.argv[1], sys.argv[2:]
    options = dict(zip(rest[::2], rest[1::2]))
    walk = Walk(folder, read_heads(options["--head"]) if "--head" in options else [])
    damage = None
    try:
        walk.go()
    except Damage as fault:
        damage = {"row": fault.row or walk.seq + 1, "what": str(fault)}
    anchored = walk.anchored_to is not None and damage is None
    said = {"rows": walk.rows, "segments": walk.segments, "damage": damage, "anchored": anchored}
    said |= {"anchored_to": walk.anchored_to, "pruned_heads": walk.pruned_heads, "before": walk.before}
    print(json.dumps(said))
    if "--identity" in options:
        private = read_identity(options["--identity"])
        for row in walk.opened:
            try:
                text = open_row(private, walk.chain, row)
            except InvalidTag:
                text = None
            if text is not None:
                sys.stdout.write(text if text.endswith("\n") else text + "\n")


main()
