//! The address: said once, or lent by a DHCP server; and who can be reached from it.

use core::net::Ipv4Addr;

use ipc::proto::net::{Configured, NetError};
use smoltcp::socket::dhcpv4;
use smoltcp::wire::{IpCidr, Ipv4Cidr};

use super::Stack;
use super::frame::DHCP_CLIENT;
use crate::device::Nic;
use crate::settings::{Settings, is_host, is_neighbour};

/// How long nobody is asked after a lease that no host can have, in nanoseconds (RFC 2131, 3.1.5, of one that is declined).
const DECLINED: u64 = 10_000_000_000;

impl<D: Nic> Stack<D> {
    /// Takes the address of the settings, or begins to ask for one.
    pub(super) fn configure(&mut self, settings: Settings) {
        match settings {
            Settings::Dhcp => {
                self.dhcp = Some(self.sockets.add(dhcpv4::Socket::new()));
                self.gate.addresses.ports.push(DHCP_CLIENT);
                self.configured = Configured::Asking;
            }
            Settings::Static { address, gateway } => {
                self.configured = Configured::CommandLine;
                self.set_address(Some(address), gateway);
            }
            Settings::None => self.configured = Configured::Wrong,
        }
    }

    fn set_address(&mut self, address: Option<Ipv4Cidr>, gateway: Option<Ipv4Addr>) {
        self.interface.update_ip_addrs(|addresses| {
            addresses.clear();
            // There is room for one.
            let _ = address.map(|address| addresses.push(IpCidr::Ipv4(address)));
        });
        let routes = self.interface.routes_mut();
        routes.remove_default_ipv4_route();
        // There is room for one, and it replaces itself.
        let _ = gateway.map(|gateway| routes.add_default_ipv4_route(gateway));
        self.gate.addresses.own = address;
        self.gateway = gateway;
    }

    /// Takes what a DHCP server has lent meanwhile, or took back.
    pub(super) fn renew_lease(&mut self, now: u64) {
        let Some(handle) = self.dhcp else { return };
        let socket = self.sockets.get_mut::<dhcpv4::Socket>(handle);
        if self.ask_again.is_some_and(|at| at <= now) {
            self.ask_again = None;
            socket.reset();
        }
        match socket.poll() {
            None => {}
            Some(dhcpv4::Event::Configured(config)) => {
                // A server can send anything. What no host can have is as good as no answer, and is not kept for as long as it was lent.
                let address = Some(config.address).filter(|own| is_host(own.address(), *own));
                let router = config.router;
                let gateway = address.and_then(|own| router.filter(|at| is_neighbour(*at, own)));
                (self.configured, self.ask_again) = match address {
                    Some(_) => (Configured::Dhcp, None),
                    None => (Configured::Asking, Some(now.saturating_add(DECLINED))),
                };
                self.set_address(address, gateway);
            }
            Some(dhcpv4::Event::Deconfigured) => {
                (self.configured, self.ask_again) = (Configured::Asking, None);
                self.set_address(None, None);
            }
        }
    }

    /// Who on the link is to get what is for a host.
    ///
    /// # Errors
    /// `BadArgument` for what is not the address of one host, `Unreachable` if there is no way to it.
    pub(super) fn next_hop(&self, host: Ipv4Addr) -> Result<Ipv4Addr, NetError> {
        let first = host.octets()[0];
        if !(1..224).contains(&first) || host.is_loopback() {
            return Err(NetError::BadArgument);
        }
        let own = self.address().ok_or(NetError::Unreachable)?;
        if is_neighbour(host, own) {
            return Ok(host);
        }
        // The host itself and the network's own addresses are no neighbours, and no gateway knows them.
        let outside = !own.contains_addr(&host);
        let gateway = self.gateway.filter(|_| outside);
        gateway.ok_or(NetError::Unreachable)
    }
}
