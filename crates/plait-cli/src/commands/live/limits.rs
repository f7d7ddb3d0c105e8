//! Limits on the connections of `serve`, `get` and `proxy`: `--max-connections`, `--memory`, `--user-timeout`,
//! `--keep-alive`, `--drain` and `--connect-timeout`.

use crate::failure::Failure;
use crate::flags::whole;
use plait_base::Span;
use plait_core::ConnectionSpec;
use plait_live::{Client, Limits};

/// Flags of `serve` and `proxy`, which have any number of connections.
#[derive(clap::Args, Debug)]
pub(crate) struct LimitFlags {
    /// Maximum number of connections
    ///
    /// Further connections are refused. The default is the limit of this process for open files minus 320, and
    /// at most one connection for each 256 KiB of --memory.
    #[arg(long, value_name = "N", value_parser = whole(1, 10_000_000))]
    max_connections: Option<u64>,
    /// Memory for the data of all connections
    ///
    /// Connections share the remaining memory. When none is left, new connections are refused. The
    /// default is a quarter of the memory of this host, or of the control group of this process.
    #[arg(long, value_name = "SIZE", value_parser = memory)]
    memory: Option<u64>,
    /// End a connection whose peer accepts no data for this time
    ///
    /// The time runs while data waits to be sent and the peer neither acknowledges data nor opens its window.
    /// With `off` such a connection stays open as long as the peer answers.
    #[arg(long, hide_short_help = true, value_name = "TIME|off", default_value = "15min", value_parser = patience)]
    user_timeout: Patience,
    /// Probe a peer that has sent nothing for this time (TCP keep-alive)
    ///
    /// After nine unanswered probes the connection ends. Probes are 75s apart, or this time if it is less.
    /// With `off` there are no probes.
    #[arg(long, hide_short_help = true, value_name = "TIME|off", default_value = "off", value_parser = patience)]
    keep_alive: Patience,
    /// Time for connections to end after TERM or Ctrl-C; a second signal ends them at once
    #[arg(long, hide_short_help = true, value_name = "TIME", default_value = "5s", value_parser = drain)]
    pub(crate) drain: Span,
}

const LEAST_MEMORY: u64 = 1 << 20;
const ENOUGH: &str = "1MiB or more, such as 512MB";

const SECOND: Span = Span::from_secs(1);
const DAY: Span = Span::from_secs(86_400);

/// A timeout, or none.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Patience(Option<Span>);

fn patience(text: &str) -> Result<Patience, String> {
    let refuse = |problem: String| Err(format!("{problem}\n  allowed: off, or from 1s to 1440min"));
    match plait_app::quantity::time(text) {
        _ if text == "off" => Ok(Patience(None)),
        Ok(time) if (SECOND..=DAY).contains(&time) => Ok(Patience(Some(time))),
        Ok(time) if time < SECOND => refuse("a round trip may take longer".to_owned()),
        Ok(_) => refuse("that is more than a day".to_owned()),
        Err(error) => refuse(error.to_string()),
    }
}

fn drain(text: &str) -> Result<Span, String> {
    let allowed = "allowed: from 0s to 1440min";
    match plait_app::quantity::time(text) {
        Ok(time) if time <= DAY => Ok(time),
        Ok(_) => Err(format!("that is more than a day\n  {allowed}")),
        Err(error) => Err(format!("{error}\n  {allowed}")),
    }
}

fn memory(text: &str) -> Result<u64, String> {
    match plait_app::quantity::bytes(text) {
        Ok(bytes) if bytes < LEAST_MEMORY => {
            Err(format!("that is less than the memory of four connections\n  allowed: {ENOUGH}"))
        }
        Ok(bytes) => Ok(bytes),
        Err(error) => Err(format!("{error}\n  allowed: {ENOUGH}")),
    }
}

impl LimitFlags {
    /// Returns the limits of all connections together.
    pub(crate) fn limits(&self) -> Result<Limits, Failure> {
        let memory = self.memory.unwrap_or_else(|| plait_live::memory_of_host().max(LEAST_MEMORY));
        let (by_files, by_memory) = (plait_live::connections_of_host(), Limits::fit(memory));
        let Some(wanted) = self.max_connections else {
            return Ok(Limits { connections: by_files.min(by_memory), memory });
        };
        let wanted = usize::try_from(wanted).unwrap_or(usize::MAX);
        let refuse = |problem: String| {
            Err(Failure::Usage(format!("--max-connections: `{wanted}`: {problem}")))
        };
        if wanted > by_files {
            return refuse(format!(
                "the open files of this process suffice for {by_files}\n  raise their limit: ulimit \
                 -n, or LimitNOFILE= of its unit"
            ));
        }
        if wanted > by_memory {
            return refuse(format!(
                "--memory suffices for {by_memory}, 256 KiB each\n  give more memory, or fewer connections"
            ));
        }
        Ok(Limits { connections: wanted, memory })
    }
}

impl LimitFlags {
    /// Sets the timeouts in `spec`, the settings of connections.
    pub(crate) fn apply(&self, spec: &mut ConnectionSpec) {
        spec.config.timeouts.user = self.user_timeout.0;
        spec.config.timeouts.keep_alive = self.keep_alive.0;
    }
}

/// Flags of `get` and `proxy`, which dial.
#[derive(clap::Args, Debug)]
pub(crate) struct DialFlags {
    /// Give up if the server has not answered after this many seconds [default: about two minutes]
    #[arg(long, value_name = "SECONDS", value_parser = whole(1, 86_400), hide_short_help = true)]
    connect_timeout: Option<u64>,
}

impl DialFlags {
    /// Sets the timeout of a client.
    pub(crate) fn apply(&self, client: &mut Client) {
        if let Some(seconds) = self.connect_timeout {
            client.give_up_after(Span::from_secs(seconds));
        }
    }
}
