//! Messages of a race over real links: one JSON document in a line, over TCP.

use super::rounds::settings;
use plait_lab::race::{Entrant, Stack};
use plait_live::transfer::{Sender, Token};
use plait_report::names::spec_problem;
use serde::{Deserialize, Serialize};

/// Port of `plait race serve`. The runs use the next one.
pub(super) const DEFAULT_PORT: u16 = 7789;
/// Version of the protocol.
pub(super) const VERSION: u32 = 1;
/// Longest line in bytes.
pub(super) const MAX_LINE_BYTES: usize = 1 << 16;
/// Most senders of a race.
pub(super) const MAX_SENDERS: usize = 128;

/// A message of the near side.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(super) enum Request {
    /// The first line.
    Hello {
        version: u32,
        workload: String,
        senders: Vec<Contender>,
        /// Value of SO_RCVBUF at the end that receives the data.
        rcvbuf_bytes: Option<u64>,
        /// Longest time of a run.
        time_us: u64,
        paths: u8,
    },
    /// Asks for the time.
    Clock,
    /// Opens a run of the sender with this number. The answer is [`Reply::Ready`], and [`Reply::Ended`] or
    /// [`Reply::Failed`] after it; or [`Reply::Failed`] alone.
    Open { sender: usize },
    /// Ends the run. It has no answer of its own.
    Cancel,
}

/// A sender of the data.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(super) enum Contender {
    Plait { scheduler: String, cc: String },
    Kernel { cc: String },
    Tcp { cc: String },
}

/// A message of the far side.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Reply {
    /// The far side can make the runs.
    Welcome,
    /// It does not agree.
    Refused { problem: String },
    /// It lacks a privilege or a feature of the kernel.
    Unable { problem: String },
    /// Its time.
    Clock { now_ns: u64 },
    /// A run may begin at this port, with these first bytes.
    Ready { port: u16, secret: Token },
    /// The run is done.
    Ended {
        due_bytes: u64,
        first_due_ns: Option<u64>,
        read_bytes: u64,
        last_read_ns: Option<u64>,
        joins: u64,
    },
    /// The run has failed, or was cancelled.
    Failed { problem: String },
}

impl Contender {
    /// Returns the sender of a row.
    pub(super) fn of(entrant: &Entrant) -> Contender {
        match &entrant.stack {
            Stack::Plait(scheduler, cc) => {
                Contender::Plait { scheduler: scheduler.to_string(), cc: cc.to_string() }
            }
            Stack::Kernel(cc) => Contender::Kernel { cc: cc.clone() },
            Stack::Tcp(_, cc) => Contender::Tcp { cc: cc.clone() },
        }
    }

    /// Returns the sender, for the end that waits.
    pub(super) fn sender(&self) -> Result<Sender, String> {
        match self {
            Contender::Plait { scheduler, cc } => {
                let scheduler = plait_sched::Spec::parse(scheduler);
                let cc = plait_cc::Spec::parse(cc).map_err(|error| spec_problem(&error))?;
                let scheduler = scheduler.map_err(|error| spec_problem(&error))?;
                Ok(Sender::Plait(Box::new(settings(&scheduler, &cc))))
            }
            Contender::Kernel { cc } => Ok(Sender::Kernel(cc.clone())),
            Contender::Tcp { cc } => Ok(Sender::Tcp(0, cc.clone())),
        }
    }

    /// Returns the congestion controller that the kernel needs.
    pub(super) fn of_kernel(&self) -> Option<&str> {
        match self {
            Contender::Plait { .. } => None,
            Contender::Kernel { cc } | Contender::Tcp { cc } => Some(cc),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plait_measure::live::Channel;
    use proptest::prelude::*;
    use std::io::Write;
    use std::net::{Shutdown, TcpListener, TcpStream};
    use std::time::Duration;

    fn requests() -> Vec<Request> {
        let cc = || "cubic".to_owned();
        let senders = vec![
            Contender::Plait { scheduler: "ecf:beta=0.5".to_owned(), cc: cc() },
            Contender::Kernel { cc: cc() },
            Contender::Tcp { cc: cc() },
        ];
        let (workload, rcvbuf_bytes) = ("download:2MB".to_owned(), Some(9));
        let hello = Request::Hello {
            version: VERSION,
            workload,
            senders,
            rcvbuf_bytes,
            time_us: 300_000,
            paths: 2,
        };
        vec![hello, Request::Clock, Request::Open { sender: 2 }, Request::Cancel]
    }

    fn replies() -> Vec<Reply> {
        let problem = || "é\n".to_owned();
        vec![
            Reply::Welcome,
            Reply::Refused { problem: problem() },
            Reply::Unable { problem: problem() },
            Reply::Clock { now_ns: u64::MAX },
            Reply::Ready { port: 7_790, secret: [255; 16] },
            Reply::Ended {
                due_bytes: 1,
                first_due_ns: None,
                read_bytes: 2,
                last_read_ns: Some(3),
                joins: 4,
            },
            Reply::Failed { problem: problem() },
        ]
    }

    /// Sends bytes over a connection, and returns the other end of it as a channel.
    fn received(bytes: &[u8]) -> Channel {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut sender = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (stream, _) = listener.accept().unwrap();
        let bytes = bytes.to_vec();
        std::thread::spawn(move || {
            // The channel may close first.
            let _ = sender.write_all(&bytes);
            let _ = sender.shutdown(Shutdown::Write);
        });
        Channel::new(stream, Duration::from_secs(5), MAX_LINE_BYTES).unwrap()
    }

    #[test]
    fn messages_are_read_as_they_were_written() {
        let line = |text: String| text.into_bytes().into_iter().chain([b'\n']);
        let bytes: Vec<u8> =
            requests().iter().flat_map(|it| line(serde_json::to_string(it).unwrap())).collect();
        let mut channel = received(&bytes);
        for request in requests() {
            assert_eq!(channel.receive().unwrap(), Some(request));
        }
        assert_eq!(channel.receive::<Request>().unwrap(), None);
        let bytes: Vec<u8> =
            replies().iter().flat_map(|it| line(serde_json::to_string(it).unwrap())).collect();
        let mut channel = received(&bytes);
        for reply in replies() {
            assert_eq!(channel.receive().unwrap(), Some(reply));
        }
    }

    /// The far side holds no more of a line than this, although the line goes on.
    #[test]
    fn a_line_that_is_too_long_is_refused() {
        let mut channel = received(&vec![b' '; 3 * MAX_LINE_BYTES]);
        let problem = channel.receive::<Request>().unwrap_err().to_string();
        assert!(problem.contains("cut or too long"), "{problem}");
    }

    #[test]
    fn a_sender_keeps_its_parameters_and_names_the_nearest_one() {
        let plait = |scheduler: &str| Contender::Plait {
            scheduler: scheduler.to_owned(),
            cc: "cubic".to_owned(),
        };
        assert!(matches!(plait("ecf:beta=0.5").sender(), Ok(Sender::Plait(_))));
        let problem = plait("ecff").sender().unwrap_err();
        assert!(problem.contains("did you mean `ecf`?"), "{problem}");
    }

    proptest! {
        /// Messages with changed bytes, and bytes of any kind, are read or refused.
        #[test]
        fn no_bytes_make_a_reader_panic(
            at in 0_usize..11,
            changes in prop::collection::vec((0_usize..400, any::<u8>()), 0..8),
            tail in prop::collection::vec(any::<u8>(), 0..40),
        ) {
            let (requests, replies) = (requests(), replies());
            let mut bytes = match at.checked_sub(requests.len()) {
                None => serde_json::to_vec(&requests[at]).unwrap(),
                Some(at) => serde_json::to_vec(&replies[at]).unwrap(),
            };
            for (at, byte) in changes {
                let length = bytes.len();
                bytes[at % length] = byte;
            }
            bytes.extend(tail);
            if let Ok(Request::Hello { senders, .. }) = serde_json::from_slice::<Request>(&bytes) {
                for sender in senders {
                    let _ = sender.sender();
                }
            }
            let _ = serde_json::from_slice::<Reply>(&bytes);
        }
    }
}
