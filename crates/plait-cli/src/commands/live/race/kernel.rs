//! Features of this host's kernel that a race needs.

use crate::failure::Failure;
use plait_lab::race::{Entrant, Stack};
use plait_live::transfer::allows_controller;
use std::fs;

/// Congestion controllers of the kernel that a new connection may take.
const CONTROLLERS: &str = "/proc/sys/net/ipv4/tcp_available_congestion_control";
/// Those that need no capability.
const ALLOWED: &str = "/proc/sys/net/ipv4/tcp_allowed_congestion_control";

/// Fails if this process cannot have the congestion controller of a sender.
pub(super) fn check_controllers(entrants: &[Entrant]) -> Result<(), Failure> {
    for entrant in entrants {
        if let Stack::Kernel(cc) | Stack::Tcp(_, cc) = &entrant.stack {
            missing_controller(cc).map_or(Ok(()), |problem| {
                let name = &entrant.name;
                Err(Failure::Privilege(format!("--schedulers: `{name}`: {problem}")))
            })?;
        }
    }
    Ok(())
}

/// Explains why this process cannot have a congestion controller of the kernel; `None` if it can.
pub(super) fn missing_controller(cc: &str) -> Option<String> {
    let available = fs::read_to_string(CONTROLLERS).unwrap_or_default();
    let shown = cc.escape_debug();
    if !available.split_whitespace().any(|known| known == cc) {
        return Some(format!(
            "the kernel has no congestion controller `{shown}`\n  it has {}; load it: modprobe tcp_{shown}",
            available.trim()
        ));
    }
    (!allows_controller(cc)).then(|| {
        let allowed = fs::read_to_string(ALLOWED).unwrap_or_default();
        format!(
            "the congestion controller `{shown}` needs CAP_NET_ADMIN\n  or allow it: \
             sysctl -w net.ipv4.tcp_allowed_congestion_control=\"{} {shown}\"",
            allowed.trim()
        )
    })
}
