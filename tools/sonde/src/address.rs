//! Where a machine is: `HOST[:PORT]`, as it is typed.

use std::net::{IpAddr, SocketAddr, ToSocketAddrs as _};

use anyhow::{Context as _, Result, bail};

/// Looks up `HOST[:PORT]`. A system may know several addresses of a host; the first one is taken that is IPv4, which is all that a machine
/// speaks, or else the first.
///
/// # Errors
/// If a port is no port, no port is said and there is no default, or nobody knows the host.
pub fn resolve(text: &str, default_port: Option<u16>) -> Result<SocketAddr> {
    let (host, port) = split(text)?;
    let Some(port) = port.or(default_port) else {
        bail!("`{text}`: no port; say HOST:PORT");
    };
    let found = (host, port).to_socket_addrs();
    let found = found.with_context(|| format!("no host `{host}`"))?;
    let found: Vec<_> = found.collect();
    let first = found.iter().find(|address| address.is_ipv4());
    let first = first.or(found.first());
    first.copied().with_context(|| format!("no host `{host}`"))
}

/// The host without its port, and the port. An address in IPv6 may stand in brackets, and must if a port follows.
fn split(text: &str) -> Result<(&str, Option<u16>)> {
    let bare = text
        .strip_prefix('[')
        .and_then(|text| text.strip_suffix(']'));
    let bare = bare.unwrap_or(text);
    if bare.parse::<IpAddr>().is_ok() {
        return Ok((bare, None));
    }
    let (host, port) = match text.rsplit_once(':') {
        None => (text, None),
        Some((host, port)) => {
            let number = port.parse().ok().filter(|&port: &u16| port > 0);
            let number = number
                .with_context(|| format!("`{text}`: the port is a number from 1 to 65535"))?;
            (host, Some(number))
        }
    };
    let host = host
        .strip_prefix('[')
        .and_then(|host| host.strip_suffix(']'))
        .unwrap_or(host);
    if host.is_empty() {
        bail!("`{text}`: no host; say HOST[:PORT]");
    }
    Ok((host, port))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(text: &str) -> String {
        format!("{:#}", resolve(text, None).unwrap_err())
    }

    #[test]
    fn hosts_and_ports_are_told_apart() {
        let resolved = |text, port| resolve(text, port).unwrap().to_string();
        assert_eq!(resolved("127.0.0.1:7", None), "127.0.0.1:7");
        assert_eq!(resolved("127.0.0.1", Some(5555)), "127.0.0.1:5555");
        assert_eq!(resolved("127.0.0.1:9", Some(5555)), "127.0.0.1:9");
        assert_eq!(resolved("::1", Some(7)), "[::1]:7");
        assert_eq!(resolved("[::1]", Some(7)), "[::1]:7");
        assert_eq!(resolved("[::1]:9", Some(7)), "[::1]:9");
    }

    #[test]
    fn what_is_wrong_is_named() {
        assert_eq!(error("127.0.0.1"), "`127.0.0.1`: no port; say HOST:PORT");
        for text in ["a:0", "a:65536", "a:b", "a:", "[::1]:x"] {
            let says = format!("`{text}`: the port is a number from 1 to 65535");
            assert_eq!(error(text), says);
        }
        assert_eq!(error(":7"), "`:7`: no host; say HOST[:PORT]");
        let unknown = error("no-such-host.invalid:7");
        assert!(
            unknown.starts_with("no host `no-such-host.invalid`: "),
            "{unknown}"
        );
    }
}
