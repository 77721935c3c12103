//! What the boot command line says of the network: `ip=10.0.2.15/24 gw=10.0.2.2`.
//!
//! Nothing said is DHCP. What is said and wrong is no address at all, and a line that says what is allowed: an address that nobody
//! meant would be worse than none.

use core::fmt;
use core::net::Ipv4Addr;

use smoltcp::wire::Ipv4Cidr;

const IP: &str = "ip=";
const GATEWAY: &str = "gw=";

/// Prefixes that leave room for a host, a gateway, and the network's two own addresses.
const PREFIX_MAX: u8 = 30;

/// Where the address is to come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Settings {
    /// From a DHCP server.
    Dhcp,
    /// From the command line.
    Static {
        /// The address and its network.
        address: Ipv4Cidr,
        /// The gateway; `None`: hosts of the network alone are reached.
        gateway: Option<Ipv4Addr>,
    },
    /// Nowhere: the command line is wrong.
    None,
}

/// What is wrong with the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mistake<'a> {
    /// Not an address with a prefix, or one that no host can have.
    Address(&'a str),
    /// Not an address, or not another host of the network.
    Gateway(&'a str),
    /// A gateway without an address.
    GatewayAlone,
    /// A setting that is there twice.
    Twice(&'static str),
}

impl fmt::Display for Mistake<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Address(word) => write!(
                f,
                "{IP}{word}: must be a host's address and a prefix of 1 to {PREFIX_MAX}, such as {IP}10.0.2.15/24"
            ),
            Self::Gateway(word) => write!(
                f,
                "{GATEWAY}{word}: must be the address of another host in the network of {IP}, such as {GATEWAY}10.0.2.2"
            ),
            Self::GatewayAlone => write!(f, "{GATEWAY} needs {IP}, such as {IP}10.0.2.15/24"),
            Self::Twice(setting) => write!(f, "{setting} is there twice: once is allowed"),
        }
    }
}

/// Reads the words of a command line; those that are not for the network are somebody else's.
///
/// # Errors
/// The first mistake.
pub fn read(line: &str) -> Result<Settings, Mistake<'_>> {
    let ip = value(line, IP)?;
    let gateway = value(line, GATEWAY)?;
    let Some(ip) = ip else {
        return match gateway {
            Some(_) => Err(Mistake::GatewayAlone),
            None => Ok(Settings::Dhcp),
        };
    };
    let address = host(ip).ok_or(Mistake::Address(ip))?;
    let gateway = gateway.map(|word| neighbour(word, address).ok_or(Mistake::Gateway(word)));
    Ok(Settings::Static {
        address,
        gateway: gateway.transpose()?,
    })
}

/// What follows a setting's name, if it is there.
fn value<'a>(line: &'a str, name: &'static str) -> Result<Option<&'a str>, Mistake<'a>> {
    let mut values = line.split(' ').filter_map(|word| word.strip_prefix(name));
    match (values.next(), values.next()) {
        (_, Some(_)) => Err(Mistake::Twice(name)),
        (value, None) => Ok(value),
    }
}

/// An address with a prefix that a host can have.
fn host(word: &str) -> Option<Ipv4Cidr> {
    let (address, prefix) = word.split_once('/')?;
    let digits = prefix.bytes().all(|byte| byte.is_ascii_digit());
    let prefix: u8 = prefix.parse().ok().filter(|_| digits)?;
    if prefix > PREFIX_MAX {
        return None;
    }
    let cidr = Ipv4Cidr::new(address.parse().ok()?, prefix);
    is_host(cidr.address(), cidr).then_some(cidr)
}

/// The address of another host of the network.
fn neighbour(word: &str, network: Ipv4Cidr) -> Option<Ipv4Addr> {
    word.parse().ok().filter(|&at| is_neighbour(at, network))
}

/// Whether another host of `own`'s network can have the address.
pub fn is_neighbour(address: Ipv4Addr, own: Ipv4Cidr) -> bool {
    address != own.address() && own.contains_addr(&address) && is_host(address, own)
}

/// Whether a host of the network can have the address.
pub fn is_host(address: Ipv4Addr, network: Ipv4Cidr) -> bool {
    let first = address.octets()[0];
    // 0 is this network, 127 the host itself, 224 groups, 240 reserved.
    let ordinary = (1..224).contains(&first) && !address.is_loopback();
    let numbered = (1..=PREFIX_MAX).contains(&network.prefix_len());
    let own = [Some(network.network().address()), network.broadcast()];
    ordinary && numbered && !own.contains(&Some(address))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mistake(line: &str) -> String {
        read(line).unwrap_err().to_string()
    }

    #[test]
    fn nothing_said_is_dhcp() {
        for line in ["", "verbose trace", "xip=1.2.3.4/8 udpshell=5555"] {
            assert_eq!(read(line), Ok(Settings::Dhcp));
        }
    }

    #[test]
    fn an_address_may_have_a_gateway() {
        let address = Ipv4Cidr::new([10, 0, 2, 15].into(), 24);
        let gateway = None;
        assert_eq!(
            read("verbose ip=10.0.2.15/24"),
            Ok(Settings::Static { address, gateway })
        );
        let gateway = Some([10, 0, 2, 2].into());
        assert_eq!(
            read("gw=10.0.2.2  ip=10.0.2.15/24"),
            Ok(Settings::Static { address, gateway })
        );
    }

    #[test]
    fn what_no_host_can_have_is_a_mistake_that_says_what_is_allowed() {
        let addresses = "10.0.2.15 10.0.2.15/ 10.0.2.15/0 10.0.2.15/31 10.0.2.15/+8 10.0.2.15/257 10.0.2/24 10.0.2.256/24 \
                         010.0.2.15/24 10.0.2.0/24 10.0.2.255/24 127.0.0.1/8 0.0.0.5/8 224.0.0.1/24 255.255.255.255/8 x/24 \
                         10.0.2.15/24/1 ::1/64";
        for word in addresses.split(' ').chain([""]) {
            assert_eq!(
                mistake(&format!("ip={word}")),
                format!(
                    "ip={word}: must be a host's address and a prefix of 1 to 30, such as ip=10.0.2.15/24"
                )
            );
        }
        let gateways = "10.0.3.2 10.0.2.15 10.0.2.0 10.0.2.255 10.0.2.2/24 host";
        for word in gateways.split(' ').chain([""]) {
            assert_eq!(
                mistake(&format!("ip=10.0.2.15/24 gw={word}")),
                format!(
                    "gw={word}: must be the address of another host in the network of ip=, such as gw=10.0.2.2"
                )
            );
        }
        assert_eq!(
            mistake("gw=10.0.2.2"),
            "gw= needs ip=, such as ip=10.0.2.15/24"
        );
        let twice = "ip=10.0.2.15/24 ip=10.0.2.15/24";
        assert_eq!(mistake(twice), "ip= is there twice: once is allowed");
    }
}
