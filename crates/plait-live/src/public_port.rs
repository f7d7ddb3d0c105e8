//! A port of this host's own address that leads to a server behind a TUN device, by rules of nftables.

use std::io::{self, Write};
use std::net::SocketAddr;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

/// How often the rules are looked for, and after which time again.
const LOOKS: u32 = 100;
const PAUSE: Duration = Duration::from_millis(20);

/// Rules that send what comes for a public port to a server. They belong to a program `nft` that waits
/// for more to do: it ends with this process, however that ends, and the kernel takes the rules away.
#[derive(Debug)]
pub struct PublicPort {
    nft: Child,
}

impl PublicPort {
    /// The rules, as `nft` reads them.
    #[must_use]
    pub fn rules(public: SocketAddr, listen: SocketAddr) -> String {
        let (table, ip) = (table(), if public.is_ipv4() { "ip" } else { "ip6" });
        let (address, port) = (public.ip(), public.port());
        format!(
            "add table inet {table} {{ flags owner; }}\n\
             add chain inet {table} in {{ type nat hook prerouting priority dstnat; }}\n\
             add rule inet {table} in {ip} daddr {address} tcp dport {port} dnat {ip} to {listen}\n"
        )
    }

    /// Sets the rules. Both addresses are of one family.
    ///
    /// # Errors
    /// Where there is no program `nft`, or it refuses the rules; the text is what it says.
    pub fn open(public: SocketAddr, listen: SocketAddr) -> io::Result<PublicPort> {
        let rules = PublicPort::rules(public, listen);
        check(&rules)?;
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
        let opened = PublicPort { nft };
        for _ in 0..LOOKS {
            let listed = Command::new("nft").args(["list", "table", "inet", &table()]).output()?;
            if String::from_utf8_lossy(&listed.stdout).contains("dnat") {
                return Ok(opened);
            }
            #[expect(clippy::disallowed_methods, reason = "another program needs its time")]
            thread::sleep(PAUSE);
        }
        Err(io::Error::other("nft does not set the rules"))
    }
}

impl Drop for PublicPort {
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
