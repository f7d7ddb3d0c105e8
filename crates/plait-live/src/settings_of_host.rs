//! Finds settings of this host that keep packets from a device of plait, and their remedies.

use std::fs;
use std::io;
use std::net::IpAddr;

/// Settings of this host that prevent or hinder transfers.
#[derive(Debug)]
pub struct HostState {
    problems: Vec<String>,
    /// The setting by which this host drops packets of other hosts.
    closed: Option<&'static str>,
}

impl HostState {
    /// Checks the settings that `device` needs for these own addresses. `short_queue` is the error of
    /// [`Device::short_queue`](crate::Device::short_queue).
    #[must_use]
    pub fn look(
        device: &str,
        short_queue: Option<&io::Error>,
        own: impl Iterator<Item = IpAddr> + Clone,
    ) -> HostState {
        let (mut problems, mut closed) = (Vec::new(), None);
        let mut drops = |key| {
            problems.push(unforwarded(key));
            closed = Some(key);
        };
        if own.clone().any(|address| address.is_ipv4()) && !forwards_v4(device, sysctl, &devices())
        {
            drops("net.ipv4.ip_forward");
        }
        let mut of_v6 = own.filter(IpAddr::is_ipv6);
        if of_v6.next().is_some() && sysctl("net/ipv6/conf/all/forwarding").as_deref() == Some("0")
        {
            drops("net.ipv6.conf.all.forwarding");
        }
        if let Some(error) = short_queue {
            problems.push(format!(
                "event=short-queue device={device} problem=\"bursts may be lost: the queue of the device \
                 cannot be made longer: {error}\" remedy=\"ip link set {device} txqueuelen 8192\""
            ));
        }
        HostState { problems, closed }
    }

    /// Explains why no packet passes between the device and other hosts, with the remedy. Returns `None` if this host
    /// forwards them.
    #[must_use]
    pub fn obstacle(&self) -> Option<String> {
        let drops = |key| {
            format!("{key} is 0, so this host drops packets of other hosts\n  sysctl -w {key}=1")
        };
        self.closed.map(drops)
    }

    /// Returns a line for each problem.
    #[must_use]
    pub fn problems(&self) -> &[String] {
        &self.problems
    }
}

fn unforwarded(key: &str) -> String {
    format!(
        "event=not-forwarding setting={key}=0 problem=\"this host drops packets of other hosts\" \
         remedy=\"sysctl -w {key}=1\""
    )
}

/// Returns whether packets between `device` and other hosts are forwarded in both directions. For this,
/// `device` and another device must forward. Unknown settings count as forwarding.
fn forwards_v4(device: &str, value: impl Fn(&str) -> Option<String>, devices: &[String]) -> bool {
    let forwards = |name: &str| {
        let value = value(&format!("net/ipv4/conf/{name}/forwarding"));
        value.is_none_or(|value| value != "0")
    };
    let others =
        devices.iter().filter(|name| !["all", "default", "lo", device].contains(&name.as_str()));
    let mut others = others.peekable();
    // Without another device, no packets of other hosts arrive.
    forwards(device) && (others.peek().is_none() || others.any(|name| forwards(name)))
}

fn devices() -> Vec<String> {
    let entries = fs::read_dir("/proc/sys/net/ipv4/conf").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().into_string().ok()).collect()
}

fn sysctl(file: &str) -> Option<String> {
    let text = fs::read_to_string(format!("/proc/sys/{file}")).ok()?;
    Some(text.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ways_are_forwarded_or_it_is_told() {
        let devices = ["all", "default", "lo", "plait0", "eth0", "eth1"].map(str::to_owned);
        let forwards = |on: &'static [&str]| {
            let value = move |file: &str| {
                let name = file.split('/').nth(3)?;
                Some(u8::from(on.contains(&name)).to_string())
            };
            forwards_v4("plait0", value, &devices)
        };
        assert!(forwards(&["plait0", "eth0", "eth1"]));
        assert!(forwards(&["plait0", "eth1"]));
        // No packet arrives, or no reply leaves.
        assert!(!forwards(&["plait0", "lo", "all"]));
        assert!(!forwards(&["eth0", "eth1"]));
        assert!(!forwards(&[]));
        // No other device, and no such files.
        assert!(forwards_v4("plait0", |_| Some("1".to_owned()), &devices[..4]));
        assert!(forwards_v4("plait0", |_| None, &devices));
    }
}
