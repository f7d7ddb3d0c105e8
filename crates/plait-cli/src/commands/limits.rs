//! `--max-connections`, `--memory` and `--connect-timeout`: what bounds the connections of `serve`, `get`
//! and `proxy`.

use crate::failure::Failure;
use crate::flags::whole;
use plait_base::Span;
use plait_live::{Client, Limits};

/// Flags of `serve` and `proxy`, which have any number of connections.
#[derive(clap::Args, Debug)]
pub(crate) struct LimitFlags {
    /// Connections at a time; further ones are refused [default: a socket each, as many as this process
    /// may have files open, less 320, and one for each 256 KiB of --memory]
    #[arg(long, value_name = "N", value_parser = whole(1, 10_000_000))]
    max_connections: Option<u64>,
    /// Memory for the data of all connections together; what is left of it they share, and where
    /// nothing is, further ones are refused [default: a quarter of what this host, or the control group
    /// of this process, has]
    #[arg(long, value_name = "SIZE", value_parser = memory)]
    memory: Option<u64>,
}

const LEAST_MEMORY: u64 = 1 << 20;

fn memory(text: &str) -> Result<u64, String> {
    match plait_app::quantity::bytes(text) {
        Ok(bytes) if bytes < LEAST_MEMORY => {
            Err("that is for four connections\n  allowed: 1MiB and more, as 512MB".into())
        }
        Ok(bytes) => Ok(bytes),
        Err(error) => Err(error.to_string()),
    }
}

impl LimitFlags {
    /// What connections may take together.
    pub(crate) fn limits(&self) -> Result<Limits, Failure> {
        let memory = self.memory.unwrap_or_else(|| Limits::memory_of_host().max(LEAST_MEMORY));
        let (by_files, by_memory) = (Limits::connections_of_host(), Limits::fit(memory));
        let Some(wanted) = self.max_connections else {
            return Ok(Limits { connections: by_files.min(by_memory), memory });
        };
        let wanted = usize::try_from(wanted).unwrap_or(usize::MAX);
        let refuse = |problem: String| {
            Err(Failure::Usage(format!("--max-connections: `{wanted}`: {problem}")))
        };
        if wanted > by_files {
            return refuse(format!(
                "this process may have files open for {by_files}\n  allow it more: ulimit -n, or \
                 LimitNOFILE= of its unit"
            ));
        }
        if wanted > by_memory {
            return refuse(format!(
                "--memory suffices for {by_memory}, 256 KiB each\n  give more of it, or fewer connections"
            ));
        }
        Ok(Limits { connections: wanted, memory })
    }
}

/// Flags of `get` and `proxy`, which dial.
#[derive(clap::Args, Debug)]
pub(crate) struct DialFlags {
    /// Give up where nobody has answered after so many seconds [default: as TCP does, about two
    /// minutes]
    #[arg(long, value_name = "SECONDS", value_parser = whole(1, 86_400))]
    connect_timeout: Option<u64>,
}

impl DialFlags {
    /// Has a client go by them.
    pub(crate) fn apply(&self, client: &mut Client) {
        if let Some(seconds) = self.connect_timeout {
            client.give_up_after(Span::from_secs(seconds));
        }
    }
}
