//! Adds routes over netlink. The kernel removes the routes of a device together with the device.

use crate::Device;
use crate::netlink::{self, attribute};
use std::io;
use std::net::IpAddr;

/// RT_TABLE_MAIN, RTPROT_STATIC, RT_SCOPE_UNIVERSE and RTN_UNICAST.
const MAIN: u8 = 254;
const STATIC: u8 = 4;
const UNIVERSE: u8 = 0;
const UNICAST: u8 = 1;

/// RTA_DST and RTA_OIF.
const DESTINATION: u16 = 1;
const OUT_INTERFACE: u16 = 4;

/// Adds a host route for `address` to `device`, in the namespace of the calling thread.
///
/// # Errors
/// If the process may not add routes, or if the address already has a route.
pub fn add_route(device: &Device, address: IpAddr) -> io::Result<()> {
    let octets = match address {
        IpAddr::V4(address) => address.octets().to_vec(),
        IpAddr::V6(address) => address.octets().to_vec(),
    };
    let prefix_bits = 8 * octets.len() as u8;
    let family = netlink::family(address.is_ipv4());
    // `struct rtmsg`: no source prefix, no type of service, and no flags.
    let body = [
        &[family, prefix_bits, 0, 0, MAIN, STATIC, UNIVERSE, UNICAST][..],
        &[0; 4],
        &attribute(DESTINATION, &octets),
        &attribute(OUT_INTERFACE, &device.index().to_ne_bytes()),
    ];
    netlink::change(netlink::NEW_ROUTE, netlink::CREATE | netlink::EXCLUSIVE, &body.concat())
}
