//! What kind of address one is, and which kinds a request may reach.
//!
//! The ranges are those of IANA's registries of special-purpose addresses
//! (<https://www.iana.org/assignments/iana-ipv4-special-registry>, <https://www.iana.org/assignments/iana-ipv6-special-registry>)
//! and the services that clouds put within reach of a machine. An IPv4 address inside an IPv6 one is looked at as the
//! IPv4 address that it is. Whoever connects asks [`admit`] for the very address that it connects to.

use std::{
    fmt,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
};

/// What kind of address one is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AddressClass {
    /// Reached over the internet.
    Public,
    /// The machine itself: 127.0.0.0/8, ::1.
    Loopback,
    /// Of a network of one's own: 10.0.0.0/8, 172.16.0.0/12, 192.168.0.0/16, fc00::/7, and the former fec0::/10.
    Private,
    /// Between a provider and its customers, and of pods in some clouds: 100.64.0.0/10.
    Shared,
    /// Of the same wire: 169.254.0.0/16, fe80::/10.
    LinkLocal,
    /// A group of machines: 224.0.0.0/4, ff00::/8.
    Multicast,
    /// All machines: 255.255.255.255.
    Broadcast,
    /// None, which systems take for the machine itself: 0.0.0.0, ::.
    Unspecified,
    /// A cloud's own service for a machine, which gives away the machine's identity or its credentials.
    Metadata,
    /// For documentation, for tests, for protocols, or for nothing yet.
    Reserved,
}

/// Where clouds have such services. Most of the addresses are link-local or private, and stay refused where those are
/// named.
const METADATA_V4: [Ipv4Addr; 9] = [
    // AWS, Google Cloud, Azure, DigitalOcean, Hetzner, Oracle, OpenStack and others
    // <https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/instancedata-data-retrieval.html>
    Ipv4Addr::new(169, 254, 169, 254),
    // Google Kubernetes Engine's own, on each node
    // <https://cloud.google.com/kubernetes-engine/docs/how-to/network-policy>
    Ipv4Addr::new(169, 254, 169, 252),
    // AWS's containers <https://docs.aws.amazon.com/AmazonECS/latest/developerguide/task-iam-roles.html>
    Ipv4Addr::new(169, 254, 170, 2),
    // AWS's pods <https://docs.aws.amazon.com/eks/latest/userguide/pod-id-agent-setup.html>
    Ipv4Addr::new(169, 254, 170, 23),
    // Tencent Cloud <https://www.tencentcloud.com/document/product/213/4934>
    Ipv4Addr::new(169, 254, 0, 23),
    // Scaleway <https://docs.cloud-init.io/en/latest/reference/datasources/scaleway.html>
    Ipv4Addr::new(169, 254, 42, 42),
    // Alibaba Cloud <https://www.alibabacloud.com/help/en/ecs/user-guide/view-instance-metadata>
    Ipv4Addr::new(100, 100, 100, 200),
    // Azure <https://learn.microsoft.com/azure/virtual-network/what-is-ip-address-168-63-129-16>
    Ipv4Addr::new(168, 63, 129, 16),
    // Oracle Cloud's older one <https://docs.oracle.com/en-us/iaas/compute-iaas-cs/>
    Ipv4Addr::new(192, 0, 0, 192),
];

const METADATA_V6: [Ipv6Addr; 6] = [
    // AWS <https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/instancedata-data-retrieval.html>
    Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254),
    // AWS's pods <https://docs.aws.amazon.com/eks/latest/userguide/pod-id-agent-setup.html>
    Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x23),
    // Google Cloud <https://cloud.google.com/compute/docs/metadata/querying-metadata>
    Ipv6Addr::new(0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254),
    // Oracle Cloud <https://docs.cloud-init.io/en/latest/reference/datasources/oracle.html>
    Ipv6Addr::new(0xfd00, 0xc1, 0, 0, 0, 0, 0xa9fe, 0xa9fe),
    // Scaleway <https://docs.cloud-init.io/en/latest/reference/datasources/scaleway.html>
    Ipv6Addr::new(0xfd00, 0x42, 0, 0, 0, 0, 0, 0x42),
    // OpenStack <https://docs.openstack.org/nova/latest/user/metadata.html>
    Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0xa9fe, 0xa9fe),
];

/// An address that a request may not reach.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AddressRefused {
    /// The address.
    pub address: IpAddr,
    /// What kind it is of.
    pub class: AddressClass,
}

/// Whether a request may reach an address. `is_private_named` says that the rule that allows the request is of an
/// operator's and has `"private": true`.
///
/// # Errors
/// It may not.
pub fn admit(address: IpAddr, is_private_named: bool) -> Result<(), AddressRefused> {
    match classify(address) {
        AddressClass::Public => Ok(()),
        class if class.may_be_named() && is_private_named => Ok(()),
        class => Err(AddressRefused { address, class }),
    }
}

/// What kind an address is of.
#[must_use]
pub fn classify(address: IpAddr) -> AddressClass {
    match address {
        IpAddr::V4(address) => classify_v4(address),
        IpAddr::V6(address) => classify_v6(address),
    }
}

fn classify_v4(address: Ipv4Addr) -> AddressClass {
    if METADATA_V4.contains(&address) {
        return AddressClass::Metadata;
    }
    match address.octets() {
        [0, 0, 0, 0] => AddressClass::Unspecified,
        // "This network", RFC 791.
        [0, ..] => AddressClass::Reserved,
        [10, ..] | [172, 16..=31, ..] | [192, 168, ..] => AddressClass::Private,
        [100, 64..=127, ..] => AddressClass::Shared,
        [127, ..] => AddressClass::Loopback,
        [169, 254, ..] => AddressClass::LinkLocal,
        // Assignments of protocols; for documentation; the former relays of 6to4.
        [192, 0, 0 | 2, _] | [192, 88, 99, _] => AddressClass::Reserved,
        // For tests of speed; for documentation.
        [198, 18..=19, ..] | [198, 51, 100, _] | [203, 0, 113, _] => AddressClass::Reserved,
        [224..=239, ..] => AddressClass::Multicast,
        [255, 255, 255, 255] => AddressClass::Broadcast,
        [240..=255, ..] => AddressClass::Reserved,
        _ => AddressClass::Public,
    }
}

fn classify_v6(address: Ipv6Addr) -> AddressClass {
    if METADATA_V6.contains(&address) {
        return AddressClass::Metadata;
    }
    match address.segments() {
        [0, 0, 0, 0, 0, 0, 0, 0] => AddressClass::Unspecified,
        [0, 0, 0, 0, 0, 0, 0, 1] => AddressClass::Loopback,
        // Mapped, RFC 4291: the system connects to the IPv4 address.
        [0, 0, 0, 0, 0, 0xffff, high, low] => classify_v4(inner(high, low)),
        // NAT64, RFC 6052: in a network without IPv4, names of the public internet come as these.
        [0x64, 0xff9b, 0, 0, 0, 0, high, low] => classify_v4(inner(high, low)),
        // Compatible (RFC 4291) and 6to4 (RFC 3056), both given up: nothing public is there.
        [0, 0, 0, 0, 0, 0, high, low] | [0x2002, high, low, ..] => {
            match classify_v4(inner(high, low)) {
                AddressClass::Public => AddressClass::Reserved,
                class => class,
            }
        }
        [0xfc00..=0xfdff, ..] => AddressClass::Private,
        [0xfe80..=0xfebf, ..] => AddressClass::LinkLocal,
        // The sites' own before fc00::/7 was, RFC 3879.
        [0xfec0..=0xfeff, ..] => AddressClass::Private,
        [0xff00..=0xffff, ..] => AddressClass::Multicast,
        // Assignments of protocols, Teredo and ORCHID among them; for documentation.
        [0x2001, 0..=0x1ff, ..] | [0x2001, 0xdb8, ..] | [0x3fff, 0..=0xfff, ..] => {
            AddressClass::Reserved
        }
        // All that was given out to the public. A network's own NAT64 (64:ff9b:1::/48, RFC 8215) is outside: where the
        // IPv4 address is within one is known to that network only.
        [0x2000..=0x3fff, ..] => AddressClass::Public,
        _ => AddressClass::Reserved,
    }
}

fn inner(high: u16, low: u16) -> Ipv4Addr {
    Ipv4Addr::from_bits(u32::from(high) << 16 | u32::from(low))
}

impl AddressClass {
    /// Whether a rule of an operator's can reach such addresses, with `"private": true`. The rest of what is not public
    /// is refused whatever is said.
    #[must_use]
    pub fn may_be_named(self) -> bool {
        match self {
            Self::Loopback | Self::Private | Self::Shared | Self::LinkLocal => true,
            Self::Public
            | Self::Multicast
            | Self::Broadcast
            | Self::Unspecified
            | Self::Metadata
            | Self::Reserved => false,
        }
    }
}

impl fmt::Display for AddressClass {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Public => "public",
            Self::Loopback => "loopback",
            Self::Private => "private",
            Self::Shared => "shared",
            Self::LinkLocal => "link-local",
            Self::Multicast => "multicast",
            Self::Broadcast => "broadcast",
            Self::Unspecified => "unspecified",
            Self::Metadata => "metadata",
            Self::Reserved => "reserved",
        })
    }
}

impl fmt::Display for AddressRefused {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { address, class } = self;
        write!(formatter, "the address {address} is {class}: ")?;
        formatter.write_str(match class.may_be_named() {
            true => "only a rule that names its host, with \"private\": true, reaches it",
            false => "no rule reaches such an address",
        })
    }
}

impl std::error::Error for AddressRefused {}

#[cfg(test)]
mod tests;
