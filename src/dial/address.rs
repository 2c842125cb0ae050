//! Which addresses may be dialled at all, and which only where the operator says so.
//!
//! Source: design section 4; IANA special-purpose address registries; RFC 4291, 6052, 3056, 4380.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// How far an address reaches. The order is that of strictness.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Reach {
    /// Anybody's, over the internet.
    Public,
    /// This machine's or this site's: only where the operator says so.
    Inside,
    /// Metadata services, links, multicast, nothing at all: never.
    Never,
}

/// What a target may reach.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Access {
    /// Public addresses.
    Public,
    /// Also inside ones: the target is marked private, or its `base_url` names the address itself.
    Inside,
}

impl Access {
    /// Whether an address may be dialled.
    pub(super) fn admits(self, address: IpAddr) -> bool {
        match (reach(address), self) {
            (Reach::Public, _) | (Reach::Inside, Self::Inside) => true,
            (Reach::Inside, Self::Public) | (Reach::Never, _) => false,
        }
    }
}

/// How far an address reaches. One that carries an IPv4 address reaches as far as that.
pub(super) fn reach(address: IpAddr) -> Reach {
    match address {
        IpAddr::V4(address) => reach_v4(address),
        IpAddr::V6(address) => reach_v6(address),
    }
}

fn reach_v4(address: Ipv4Addr) -> Reach {
    match address.octets() {
        [0, ..] | [169, 254, ..] | [224..=255, ..] => Reach::Never,
        // Metadata services of Alibaba, Azure and Oracle.
        [100, 100, 100, 200] | [168, 63, 129, 16] | [192, 0, 0, 192] => Reach::Never,
        [127, ..] | [10, ..] | [172, 16..=31, ..] | [192, 168, ..] => Reach::Inside,
        // Carrier-grade NAT, protocol assignments, benchmarking.
        [100, 64..=127, ..] | [192, 0, 0, _] | [198, 18..=19, ..] => Reach::Inside,
        _ => Reach::Public,
    }
}

fn reach_v6(address: Ipv6Addr) -> Reach {
    match address.segments() {
        [0, 0, 0, 0, 0, 0, 0, 0] => Reach::Never,
        [0, 0, 0, 0, 0, 0, 0, 1] => Reach::Inside,
        // IPv4-compatible and IPv4-mapped.
        [0, 0, 0, 0, 0, 0 | 0xffff, high, low] => reach_v4(embedded(high, low)),
        // NAT64's well-known prefix; behind its local one nobody knows where the IPv4 address stands.
        [0x64, 0xff9b, 0, 0, 0, 0, high, low] => reach_v4(embedded(high, low)),
        [0x64, 0xff9b, 1, ..] => Reach::Never,
        // 6to4.
        [0x2002, high, low, ..] => reach_v4(embedded(high, low)),
        // Teredo: its server, and its client with every bit turned over.
        [0x2001, 0, server_high, server_low, _, _, high, low] => {
            let server = reach_v4(embedded(server_high, server_low));
            server.max(reach_v4(embedded(!high, !low)))
        }
        // Metadata services of Amazon and Google.
        [0xfd00, 0xec2, ..] | [0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254] => Reach::Never,
        // Link-local, multicast.
        [0xfe80..=0xfebf, ..] | [0xff00..=0xffff, ..] => Reach::Never,
        // Unique local, and the site-local that came before.
        [0xfc00..=0xfdff, ..] | [0xfec0..=0xfeff, ..] => Reach::Inside,
        _ => Reach::Public,
    }
}

fn embedded(high: u16, low: u16) -> Ipv4Addr {
    Ipv4Addr::from(u32::from(high) << 16 | u32::from(low))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reaches() {
        for (reached, addresses) in [
            (
                Reach::Public,
                "1.1.1.1 8.8.8.8 9.255.255.255 11.0.0.0 100.63.255.255 100.128.0.0 126.255.255.255 128.0.0.0 \
                 168.63.129.17 169.253.255.255 169.255.0.0 172.15.255.255 172.32.0.0 192.167.255.255 192.169.0.0 \
                 192.0.1.0 223.255.255.255 2606:4700::1111 2001:4860:4860::8888 ::ffff:8.8.8.8 ::8.8.8.8 \
                 64:ff9b::808:808 2002:808:808::1 2001:0:808:808::f7f7:f7f7 fbff:: 2001:1::1",
            ),
            (
                Reach::Inside,
                "127.0.0.1 127.255.255.255 10.0.0.0 10.255.255.255 172.16.0.0 172.31.255.255 192.168.0.0 \
                 192.168.255.255 100.64.0.0 100.64.0.1 100.127.255.255 192.0.0.1 198.18.0.1 ::1 fc00:: fd12::1 \
                 fdff:ffff:: fec0::1 ::ffff:127.0.0.1 ::ffff:10.0.0.1 ::127.0.0.1 64:ff9b::7f00:1 2002:7f00:1:: \
                 2002:a00:1::1 2001:0:808:808::80ff:fffe",
            ),
            (
                Reach::Never,
                "0.0.0.0 0.1.2.3 169.254.0.0 169.254.169.254 169.254.255.255 100.100.100.200 168.63.129.16 \
                 192.0.0.192 224.0.0.1 239.255.255.255 240.0.0.1 255.255.255.255 :: fe80::1 febf::1 ff02::1 \
                 fd00:ec2::254 fd00:ec2::23 fd20:ce::254 ::ffff:169.254.169.254 ::169.254.169.254 ::ffff:0.0.0.0 \
                 64:ff9b::a9fe:a9fe 64:ff9b:1::1 2002:a9fe:a9fe::1 2001:0:808:808::5601:5601 \
                 2001:0:a9fe:a9fe::f7f7:f7f7 ::ffff:100.100.100.200 ::2",
            ),
        ] {
            for address in addresses.split_whitespace() {
                assert_eq!(reach(address.parse().unwrap()), reached, "{address}");
            }
        }
    }

    #[test]
    fn access() {
        let admits = |access: Access| {
            ["8.8.8.8", "127.0.0.1", "169.254.169.254"]
                .map(|address| access.admits(address.parse().unwrap()))
        };
        assert_eq!(admits(Access::Public), [true, false, false]);
        assert_eq!(admits(Access::Inside), [true, true, false]);
    }
}
