//! `plait measure serve`: the far side of measurements.

use super::failure;
use crate::console::Console;
use crate::failure::Failure;
use crate::flags::whole;
use crate::progress;
use plait_measure::live::{DEFAULT_PORT, Limits, serve};
use std::net::SocketAddr;
use std::time::Duration;

/// Reads the address to listen on.
fn listened(text: &str) -> Result<SocketAddr, String> {
    let allowed = "ADDR:PORT, such as 192.0.2.1:7788 or [2001:db8::1]:7788";
    text.parse().map_err(|_| format!("it is not an address with a port\n  allowed: {allowed}"))
}

const EXAMPLES: &str = "Examples:
  plait measure serve --listen 192.0.2.1:7788 --dry-run
  plait measure serve --listen 192.0.2.1:7788 --quota 100MB --dry-run";

/// Let other hosts measure their paths to this host
///
/// Answers `plait measure HOST` over TCP and UDP until Ctrl-C. A client must connect over TCP first, and gets a token for
/// its datagrams. The server sends only to addresses that sent this token, and only within the limits. Needs no
/// privilege.
///
/// Exit codes: 130 after Ctrl-C, 2 for an address that cannot be used.
#[derive(clap::Args, Debug)]
#[command(before_help = EXAMPLES)]
pub(crate) struct Args {
    /// Address and port to listen on, UDP and TCP
    ///
    /// Give the address that clients use. With 0.0.0.0, answers may leave from another address of this host, and
    /// a NAT in front of the client drops them.
    #[arg(long, value_name = "ADDR:PORT", default_value_t = SocketAddr::from(([0, 0, 0, 0], DEFAULT_PORT)), value_parser = listened)]
    listen: SocketAddr,
    /// Maximum number of measurements at a time
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = whole(1, 64))]
    clients: u64,
    /// Maximum number of bytes of a measurement in each direction
    #[arg(long, value_name = "SIZE", default_value = "1GB", value_parser = super::quota)]
    quota: u64,
    /// Maximum duration of a measurement
    #[arg(long, value_name = "TIME", default_value = "2min", value_parser = super::time)]
    time: Duration,
    /// Print what would be allowed, and serve nobody
    #[arg(long)]
    dry_run: bool,
}

pub(super) fn run(args: &Args, console: Console) -> Result<(), Failure> {
    let clients = usize::try_from(args.clients).unwrap_or(usize::MAX);
    let limits = Limits { clients, bytes: args.quota, time: args.time };
    if args.dry_run {
        let (at, seconds, megabytes) = (args.listen, args.time.as_secs(), args.quota / 1_000_000);
        let text = format!(
            "listen on {at} (TCP and UDP)\nallow {clients} measurements at a time, each of at most {seconds} s and \
             {megabytes} MB in each direction\n"
        );
        return crate::console::deliver(&text, None);
    }
    let stop = progress::on_interrupt()?;
    let say = |text: &str| console.remark(1, &format!("plait: {text}"));
    serve(args.listen, limits, stop, &say).map_err(failure)?;
    Err(Failure::Interrupted)
}
