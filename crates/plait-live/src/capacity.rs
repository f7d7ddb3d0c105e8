//! Resource limits of this process: memory and open files.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::fs;
use std::path::Path;

/// Most open files besides the sockets of connections.
const OTHER_FILES: usize = 320;

/// Returns a quarter of the memory of the host or of the control group, whichever is less, in bytes.
/// Returns 256 MiB if neither is known.
#[must_use]
pub fn memory_of_host() -> u64 {
    let host = fs::read_to_string("/proc/meminfo").ok().and_then(|text| host_memory(&text));
    let group = fs::read_to_string("/proc/self/cgroup").ok().and_then(|text| {
        let own = text.lines().find_map(|line| line.strip_prefix("0::/"))?;
        let mut dirs = Path::new("/sys/fs/cgroup").join(own);
        let mut least = None::<u64>;
        // The limits of the parent groups apply too.
        while dirs.starts_with("/sys/fs/cgroup") {
            let file = fs::read_to_string(dirs.join("memory.max"));
            let most = file.ok().and_then(|text| text.trim().parse().ok());
            least = least.into_iter().chain(most).min();
            if !dirs.pop() {
                break;
            }
        }
        least
    });
    host.into_iter().chain(group).min().map_or(256 << 20, |bytes| bytes / 4)
}

/// Raises the limit of open files to its maximum, and returns how many connections it allows. Each
/// connection needs one socket.
#[must_use]
pub fn connections_of_host() -> usize {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    // If the kernel refuses, the old limit still applies.
    let raised = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum });
    let files = if raised.is_ok() { maximum } else { current };
    let files = files.and_then(|files| usize::try_from(files).ok());
    files.map_or(usize::MAX, |files| files.saturating_sub(OTHER_FILES).max(1))
}

/// Returns the total memory of the host in bytes.
fn host_memory(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    line.trim().strip_suffix(" kB")?.parse::<u64>().ok()?.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_memory_of_a_host_is_read() {
        let text = "MemFree:  1 kB\nMemTotal:       24627284 kB\nMemAvailable: 3 kB\n";
        assert_eq!(host_memory(text), Some(24_627_284 * 1024));
        assert_eq!(host_memory("MemTotal: many kB\n"), None);
        assert!(memory_of_host() >= 1 << 20);
        assert!(connections_of_host() >= 1);
    }
}
