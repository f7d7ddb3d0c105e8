//! Rules of nftables that go with this process: a port of this host's own address that leads to a server
//! behind a TUN device, and own addresses that servers see as those of a device.

use crate::Origin;
use std::fmt::Write as _;
use std::io::{self, Write};
use std::net::SocketAddr;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

/// How often the rules are looked for, and after which time again.
const LOOKS: u32 = 100;
const PAUSE: Duration = Duration::from_millis(20);

/// Rules that are set. They belong to a program `nft` that waits for more to do: it ends with this
/// process, however that ends, and the kernel takes the rules away.
#[derive(Debug)]
pub struct Rules {
    nft: Child,
}

impl Rules {
    /// What sends packets for a public port to a server, as `nft` reads it. Both addresses are of one
    /// family.
    #[must_use]
    pub fn public_port(public: SocketAddr, listen: SocketAddr) -> String {
        let (table, ip) = (table(), if public.is_ipv4() { "ip" } else { "ip6" });
        let (address, port) = (public.ip(), public.port());
        format!(
            "add table inet {table} {{ flags owner; }}\n\
             add chain inet {table} in {{ type nat hook prerouting priority dstnat; }}\n\
             add rule inet {table} in {ip} daddr {address} tcp dport {port} dnat {ip} to {listen}\n"
        )
    }

    /// What lets packets of these origins leave under the address of the device by which they leave.
    #[must_use]
    pub fn masquerade<'a>(origins: impl Iterator<Item = &'a Origin>) -> String {
        let table = table();
        let mut text = format!(
            "add table inet {table} {{ flags owner; }}\n\
             add chain inet {table} out {{ type nat hook postrouting priority srcnat; }}\n"
        );
        for Origin { address, device } in origins {
            let ip = if address.is_ipv4() { "ip" } else { "ip6" };
            let by = device.as_deref().map_or(String::new(), |name| format!(" oifname \"{name}\""));
            let _ = writeln!(text, "add rule inet {table} out {ip} saddr {address}{by} masquerade");
        }
        text
    }

    /// Sets rules.
    ///
    /// # Errors
    /// Where there is no program `nft`, or it refuses the rules; the text is what it says.
    pub fn set(rules: &str) -> io::Result<Rules> {
        check(rules)?;
        let mut nft = Command::new("nft")
            .arg("-i")
            // Ctrl-C is for us: the rules stay until the last connection has ended.
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        if let Some(stdin) = &mut nft.stdin {
            stdin.write_all(rules.as_bytes())?;
        }
        let opened = Rules { nft };
        for _ in 0..LOOKS {
            let listed = Command::new("nft").args(["list", "table", "inet", &table()]).output()?;
            let listed = String::from_utf8_lossy(&listed.stdout).into_owned();
            let is_rule = |line: &&str| line.contains(" dnat ") || line.contains(" masquerade");
            if listed.lines().filter(is_rule).count() >= rules.matches("add rule ").count() {
                return Ok(opened);
            }
            #[expect(clippy::disallowed_methods, reason = "another program needs its time")]
            thread::sleep(PAUSE);
        }
        Err(io::Error::other("nft does not set the rules"))
    }
}

impl Drop for Rules {
    fn drop(&mut self) {
        drop(self.nft.stdin.take());
        // It has ended, or was ended by somebody else.
        let _ = self.nft.wait();
    }
}

/// A table of this process alone.
fn table() -> String {
    format!("plait_{}", std::process::id())
}

/// Has the rules looked at, for a reason where they are refused.
fn check(rules: &str) -> io::Result<()> {
    let mut command = Command::new("nft");
    command.args(["-c", "-f", "-"]).stdin(Stdio::piped()).stdout(Stdio::null());
    let mut nft = command.stderr(Stdio::piped()).spawn()?;
    if let Some(mut stdin) = nft.stdin.take() {
        stdin.write_all(rules.as_bytes())?;
    }
    let output = nft.wait_with_output()?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(io::Error::other(said.lines().next().unwrap_or("refused").to_owned()))
}
