//! Counters of devices.

use std::fs;
use std::io;

/// Bytes of the frames that a device has counted, with those of other programs.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct DeviceBytes {
    /// Received frames.
    pub received: u64,
    /// Sent frames.
    pub sent: u64,
}

/// Reads the counters of these devices in the namespace of the calling thread. A device that is not there has `None`.
///
/// # Errors
/// If `/proc` is not mounted.
pub fn device_bytes(devices: &[String]) -> io::Result<Vec<Option<DeviceBytes>>> {
    let text = fs::read_to_string("/proc/thread-self/net/dev")?;
    Ok(devices.iter().map(|device| counted(&text, device)).collect())
}

/// Reads a line of `/proc/net/dev`: the name, eight counters of received frames, and eight of sent ones.
fn counted(text: &str, device: &str) -> Option<DeviceBytes> {
    let of = |line: &str| {
        let (name, counters) = line.rsplit_once(':')?;
        let mut counters = counters.split_whitespace();
        let received = counters.next()?.parse().ok()?;
        let sent = counters.nth(7)?.parse().ok()?;
        (name.trim() == device).then_some(DeviceBytes { received, sent })
    };
    text.lines().find_map(of)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_counters_of_a_device_are_its_own() {
        let text = "Inter-|   Receive  |  Transmit\n face |bytes packets|bytes\n    lo: 1 2 3 4 5 6 7 8 9 10\n\
                    wlan0:111 2 3 4 5 6 7 8 999 10 11 12 13 14 15 16\n";
        let bytes = |received, sent| Some(DeviceBytes { received, sent });
        assert_eq!(counted(text, "wlan0"), bytes(111, 999));
        assert_eq!(counted(text, "lo"), bytes(1, 9));
        assert_eq!(counted(text, "wlan"), None);
        assert_eq!(counted(text, " face |bytes packets|bytes"), None);
        assert!(device_bytes(&["lo".to_owned(), "none0".to_owned()]).unwrap()[0].is_some());
    }
}
