//! The list of workloads.

/// One workload of the list.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Entry {
    /// Its name.
    pub name: &'static str,
    /// The form of its text.
    pub grammar: &'static str,
    /// What it does, in one line.
    pub summary: &'static str,
    /// What it does, in full.
    pub page: &'static str,
    /// Texts that work.
    pub examples: &'static [&'static str],
}

/// Every workload. Help, documentation and tests read this list.
pub const WORKLOADS: &[Entry] = &[
    Entry {
        name: "download",
        grammar: "download:SIZE",
        summary: "the client asks, the server sends SIZE",
        page: "The client connects and sends a request of 200 bytes; the server answers with SIZE \
               bytes once it has read the request. The completion time runs from the client's first \
               SYN to the last byte readable, in order, at the client. `15seg` is 15 full segments \
               of the connection at hand, so 15 segments leave in every row.",
        examples: &["download:512kB", "download:64KiB", "download:15seg"],
    },
    Entry {
        name: "upload",
        grammar: "upload:SIZE",
        summary: "the client sends SIZE",
        page: "The client connects, sends a request of 200 bytes in a segment of its own and then \
               SIZE bytes. The completion time runs from the client's first SYN to the last byte \
               readable, in order, at the server. The request is in no other measure.",
        examples: &["upload:512kB", "upload:4MB"],
    },
    Entry {
        name: "bulk",
        grammar: "bulk:DURATION",
        summary: "the server sends all the time for DURATION",
        page: "The client connects and asks with 200 bytes; the server writes whenever its send \
               buffer has room, until DURATION after the client's first SYN. The goodput counts what \
               the client read in order within DURATION.",
        examples: &["bulk:60s", "bulk:10s"],
    },
    Entry {
        name: "burst",
        grammar: "burst:SIZE",
        summary: "the server sends SIZE at once on warm, idle subflows at their initial window",
        page: "The client connects and asks; when every subflow is established the server sends 200 \
               full segments on each, in strict turn, waits until all is DATA_ACKed and then until \
               idling has brought every cwnd back to its initial window (under `--idle-restart off` \
               the windows are set to it; ssthresh is kept). Then it writes SIZE. The delay runs \
               from the first byte written to the last byte readable, in order, at the client. \
               Every measure concerns the burst alone, not the warm-up.",
        examples: &["burst:15seg", "burst:64KiB"],
    },
    Entry {
        name: "stream",
        grammar: "stream:SIZE@INTERVAL,for=DURATION",
        summary: "the server sends a message of SIZE every INTERVAL",
        page: "The client connects and asks with 200 bytes. From the moment the server has read the \
               request a message of SIZE bytes is due every INTERVAL, the first at once and the last \
               before DURATION is over. The delay of a message runs from when it was due to its last \
               byte readable, in order, at the client; while the send buffer is full messages queue \
               in the server's application, and that time counts.",
        examples: &["stream:8KiB@35ms,for=10s", "stream:15seg@100ms,for=5s"],
    },
];
