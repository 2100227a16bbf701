//! The classes, against a table of prefixes that is written down apart from the code and read by longest prefix.

use super::*;
use AddressClass::*;

/// Of the registries and of the clouds' documents. The longest prefix that an address is in says what it is.
const TABLE_V4: &[(&str, AddressClass)] = &[
    ("0.0.0.0/0", Public),
    ("0.0.0.0/8", Reserved),
    ("0.0.0.0/32", Unspecified),
    ("10.0.0.0/8", Private),
    ("100.64.0.0/10", Shared),
    ("100.100.100.200/32", Metadata),
    ("127.0.0.0/8", Loopback),
    ("168.63.129.16/32", Metadata),
    ("169.254.0.0/16", LinkLocal),
    ("169.254.0.23/32", Metadata),
    ("169.254.42.42/32", Metadata),
    ("169.254.169.252/32", Metadata),
    ("169.254.169.254/32", Metadata),
    ("169.254.170.2/32", Metadata),
    ("169.254.170.23/32", Metadata),
    ("172.16.0.0/12", Private),
    ("192.0.0.0/24", Reserved),
    ("192.0.0.192/32", Metadata),
    ("192.0.2.0/24", Reserved),
    ("192.88.99.0/24", Reserved),
    ("192.168.0.0/16", Private),
    ("198.18.0.0/15", Reserved),
    ("198.51.100.0/24", Reserved),
    ("203.0.113.0/24", Reserved),
    ("224.0.0.0/4", Multicast),
    ("240.0.0.0/4", Reserved),
    ("255.255.255.255/32", Broadcast),
];

const TABLE_V6: &[(&str, AddressClass)] = &[
    ("::/0", Reserved),
    ("::/128", Unspecified),
    ("::1/128", Loopback),
    ("64:ff9b:1::/48", Reserved),
    ("100::/64", Reserved),
    ("2000::/3", Public),
    ("2001::/23", Reserved),
    ("2001:db8::/32", Reserved),
    ("3fff::/20", Reserved),
    ("5f00::/16", Reserved),
    ("fc00::/7", Private),
    ("fd00:42::42/128", Metadata),
    ("fd00:c1::a9fe:a9fe/128", Metadata),
    ("fd00:ec2::23/128", Metadata),
    ("fd00:ec2::254/128", Metadata),
    ("fd20:ce::254/128", Metadata),
    ("fe80::/10", LinkLocal),
    ("fe80::a9fe:a9fe/128", Metadata),
    ("fec0::/10", Private),
    ("ff00::/8", Multicast),
];

/// A table of (first bit pattern, length, class) over 128 bits, IPv4 in the low 32 with its length made longer by 96.
struct Table(Vec<(u128, u32, AddressClass)>);

impl Table {
    fn read(rows: &[(&str, AddressClass)]) -> Self {
        let row = |(prefix, class): &(&str, AddressClass)| {
            let (address, length) = prefix.split_once('/').expect("a prefix");
            let length: u32 = length.parse().expect("a length");
            match address.parse().expect("an address") {
                IpAddr::V4(address) => (u128::from(address.to_bits()), length + 96, *class),
                IpAddr::V6(address) => (address.to_bits(), length, *class),
            }
        };
        Self(rows.iter().map(row).collect())
    }

    fn class(&self, bits: u128) -> AddressClass {
        let within = |row: &&(u128, u32, AddressClass)| {
            let beyond = 128 - row.1;
            beyond == 128 || bits >> beyond == row.0 >> beyond
        };
        let longest = self.0.iter().filter(within).max_by_key(|row| row.1);
        longest.expect("the whole is in the table").2
    }

    fn has_border_within(&self, first: u32) -> bool {
        let within = |row: &(u128, u32, AddressClass)| {
            row.1 > 96 + 16 && row.0 >> 16 == u128::from(first >> 16)
        };
        self.0.iter().any(within)
    }
}

/// One IPv4 address in every spelling, against what the table says of it.
fn check(table: &Table, bits: u32) {
    let expected = table.class(bits.into());
    let address = Ipv4Addr::from_bits(bits);
    assert_eq!(classify(address.into()), expected, "{address}");

    let (bits, v6) = (u128::from(bits), |bits| {
        IpAddr::from(Ipv6Addr::from_bits(bits))
    });
    let mapped = v6(0xffff << 32 | bits);
    assert_eq!(classify(mapped), expected, "{mapped}");
    let nat64 = v6(0x64_ff9b << 96 | bits);
    assert_eq!(classify(nat64), expected, "{nat64}");

    let never_public = if expected == Public {
        Reserved
    } else {
        expected
    };
    for rest in [0, 1, u128::MAX >> 48] {
        let six_to_four = v6(0x2002 << 112 | bits << 80 | rest);
        assert_eq!(classify(six_to_four), never_public, "{six_to_four}");
    }
    let compatible = v6(bits);
    let expected = match bits {
        // ::1 is not 0.0.0.1.
        1 => Loopback,
        _ => never_public,
    };
    assert_eq!(classify(compatible), expected, "{compatible}");
    for elsewhere in [0x64_ff9b_0001 << 80 | bits, 0xffff_0000 << 32 | bits] {
        assert_eq!(classify(v6(elsewhere)), Reserved, "{}", v6(elsewhere));
    }
}

/// Every /16 of IPv4, and every address of those that the registry splits, in every spelling.
#[test]
fn every_ipv4_address_is_of_one_class_in_every_spelling() {
    let table = Table::read(TABLE_V4);
    let mut split = 0;
    for high in 0..=u32::from(u16::MAX) {
        let first = high << 16;
        if table.has_border_within(first) {
            split += 1;
            (first..=first | 0xffff).for_each(|bits| check(&table, bits));
        } else {
            for low in [0, 1, 0x7fff, 0x8000, 0xfffe, 0xffff] {
                check(&table, first | low);
            }
        }
    }
    // 0.0, 100.100, 168.63, 169.254, 192.0, 192.88, 198.51, 203.0, 255.255.
    assert_eq!(split, 9);
}

/// The same for IPv6: the borders of every range, and every /16.
#[test]
fn every_ipv6_range_is_of_one_class() {
    let table = Table::read(TABLE_V6);
    let is_embedded = |bits: u128| {
        bits >> 32 == 0
            || bits >> 32 == 0xffff
            || bits >> 32 == 0x64_ff9b << 64
            || bits >> 112 == 0x2002
    };
    let check = |bits: u128| {
        let address = Ipv6Addr::from_bits(bits);
        if !is_embedded(bits) || bits < 2 {
            assert_eq!(classify(address.into()), table.class(bits), "{address}");
        }
    };
    for (first, length, _) in &table.0 {
        let last = first | u128::MAX.checked_shr(*length).unwrap_or(0);
        for bits in [*first, last, first.wrapping_sub(1), last.wrapping_add(1)] {
            check(bits);
        }
    }
    for high in 0..=u128::from(u16::MAX) {
        for low in [0, 1, u128::MAX >> 17, u128::MAX >> 16] {
            check(high << 112 | low);
        }
    }
}

/// Metadata, multicast, reserved and unspecified addresses stay refused whatever is said.
#[test]
fn naming_reaches_private_addresses_and_no_others() {
    let admitted = |text: &str, named| admit(text.parse().expect("an address"), named).is_ok();
    for text in [
        "1.1.1.1",
        "2606:4700::1",
        "64:ff9b::101:101",
        "::ffff:1.1.1.1",
    ] {
        assert!(admitted(text, false) && admitted(text, true), "{text}");
    }
    for text in [
        "127.0.0.1",
        "10.1.2.3",
        "100.64.0.1",
        "169.254.1.1",
        "::1",
        "fd12::1",
        "fe80::1",
    ] {
        assert!(!admitted(text, false) && admitted(text, true), "{text}");
    }
    for text in [
        "169.254.169.254",
        "::ffff:a9fe:a9fe",
        "fd00:ec2::254",
        "0.0.0.0",
        "::",
        "224.0.0.1",
        "ff02::1",
        "255.255.255.255",
        "240.0.0.1",
        "192.0.2.1",
        "2001:db8::1",
        "64:ff9b:1::a00:1",
    ] {
        assert!(!admitted(text, false) && !admitted(text, true), "{text}");
    }
}

#[test]
fn the_refusal_says_what_would_help() {
    let refused =
        |text: &str| admit(text.parse().expect("an address"), false).map_err(|e| e.to_string());
    assert_eq!(
        refused("10.0.0.1"),
        Err("the address 10.0.0.1 is private: only a rule that names its host, with \"private\": true, reaches it".into())
    );
    assert_eq!(
        refused("169.254.169.254"),
        Err("the address 169.254.169.254 is metadata: no rule reaches such an address".into())
    );
}
