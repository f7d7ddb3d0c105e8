//! The list of workloads.

/// One workload of the list.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Entry {
    /// Name of the workload.
    pub name: &'static str,
    /// Grammar of its text.
    pub grammar: &'static str,
    /// Description in one line.
    pub summary: &'static str,
    /// Full description.
    pub page: &'static str,
    /// Valid texts.
    pub examples: &'static [&'static str],
}

/// Every workload. Help, documentation and tests read this list.
pub const WORKLOADS: &[Entry] = &[
    Entry {
        name: "download",
        grammar: "download:SIZE",
        summary: "the client sends a request, the server sends SIZE",
        page: "The client connects and sends a request of 200 bytes. When the server has read the \
               request, it answers with SIZE bytes. The completion time runs from the client's first \
               SYN to the last byte readable, in order, at the client. `15seg` is 15 full segments \
               of the connection, so every row sends 15 segments.",
        examples: &["download:512kB", "download:64KiB", "download:15seg"],
    },
    Entry {
        name: "upload",
        grammar: "upload:SIZE",
        summary: "the client sends SIZE",
        page: "The client connects and sends a request of 200 bytes in a segment of its own, and then \
               SIZE bytes. The completion time runs from the client's first SYN to the last byte \
               readable, in order, at the server. No other measure includes the request.",
        examples: &["upload:512kB", "upload:4MB"],
    },
    Entry {
        name: "bulk",
        grammar: "bulk:DURATION",
        summary: "the server sends as fast as it can for DURATION",
        page: "The client connects and sends a request of 200 bytes. The server writes whenever its \
               send buffer has room, until DURATION after the client's first SYN. The goodput counts \
               the bytes that the client reads in order within DURATION.",
        examples: &["bulk:60s", "bulk:10s"],
    },
    Entry {
        name: "burst",
        grammar: "burst:SIZE",
        summary: "the server sends SIZE at once on warm, idle subflows at their initial window",
        page: "The client connects and sends a request. When every subflow is established, the server \
               sends 200 full segments on each, in strict turns, and waits until all data is \
               DATA_ACKed. It then stays idle until every cwnd is back at its initial window. (With \
               `--idle-restart off` the windows are set to it; ssthresh is kept.) Then it writes \
               SIZE. The delay runs from the first byte written to the last byte readable, in order, \
               at the client. All measures are of the burst, without the warm-up.",
        examples: &["burst:15seg", "burst:64KiB"],
    },
    Entry {
        name: "stream",
        grammar: "stream:SIZE@INTERVAL,for=DURATION",
        summary: "the server sends a message of SIZE every INTERVAL",
        page: "The client connects and sends a request of 200 bytes. When the server has read it, a \
               message of SIZE bytes is due every INTERVAL, the first at once and the last before \
               DURATION is over. The delay of a message runs from its due time to its last byte \
               readable, in order, at the client. While the send buffer is full, messages queue in \
               the server's application, and that time counts.",
        examples: &["stream:8KiB@35ms,for=10s", "stream:15seg@100ms,for=5s"],
    },
    Entry {
        name: "blocks",
        grammar: "blocks:SIZE@RATE|inf,for=DURATION",
        summary: "the server sends blocks of SIZE at a constant rate",
        page: "As `stream`, with a rate in place of the interval: blocks of SIZE bytes are due at RATE. \
               With `inf` a block is due as soon as the send buffer has taken the one before, until \
               DURATION after the client's first SYN. Its delay is then the time in the send buffer and \
               on the way.",
        examples: &["blocks:8KiB@500kbit,for=10s", "blocks:8KiB@inf,for=10s"],
    },
    Entry {
        name: "video",
        grammar: "video:NAME_OR_FILE[,abr=bba|throughput|bola|mpc][,buffer=TIME][,start=TIME][,for=TIME][,chunk=TIME][,spread=SEED]",
        summary: "a player requests the chunks of a clip, at a bit rate that it adapts",
        page: "One persistent connection: the client requests one chunk after the other, with 200 bytes \
               each, and pauses while `buffer` (60s) or more is buffered. The picture starts when \
               `start` (10s) is buffered. If the buffer runs empty, it starts again with the next chunk. \
               `paper` is the clip of the ECF paper: 1332 s in chunks of 5 s at 0.26, 0.64, 1.00, 1.60, \
               4.14 and 8.47 Mbit/s (`chunk` sets another length). A file is a DASH manifest (XML) or a \
               size list (JSON: segment_duration_ms, bitrates_kbps, segment_sizes_bits). `abr` adapts by \
               the buffer (`bba`, `bola`), by throughput, or by both (`mpc`). `for` ends the session. \
               `netflix-android`, `netflix-ipad`, `youtube-64k` and `youtube-512k` are models of the \
               traffic of players (IMC 2013, Table 7): a prefetch, then one block per period for `for` \
               (20min). The periods are exact, or spread as measured with `spread=SEED`. The delay of a \
               message runs from its request to its last byte.",
        examples: &["video:paper,for=2min", "video:paper,abr=mpc", "video:netflix-ipad,spread=1"],
    },
    Entry {
        name: "maps",
        grammar: "maps:DURATION[,median=SIZE][,seed=N]",
        summary: "a person moves a map: bursts of small objects over one connection",
        page: "Within DURATION there is an action every 4 s on average (Poisson). Each action requests 3 \
               to 15 objects, 5 to 30 ms apart. Their sizes are log-normal around `median` (9kB, sigma \
               0.9, at most 80/9 of it). Requests have 200 bytes; answers have the order of the requests. \
               The delay of an object runs from its request to its last byte readable. The same `seed` \
               (1) gives the same session.",
        examples: &["maps:90s", "maps:90s,median=20kB,seed=2"],
    },
    Entry {
        name: "web",
        grammar: "web:NAME_OR_FILE[,http=1|2][,connections=6]",
        summary: "the client loads a page: objects that wait for each other",
        page: "The client loads a page: a graph of objects to fetch and computations that take time. Each \
               of them waits for others. NAME is one of google wikipedia instagram amazon guardian \
               huffpost, or cnn. The graphs are plait's own, with the measured objects, bytes and \
               computing time of these pages; for cnn, only the objects are known. FILE is a HAR 1.2 \
               file as browsers export it, or an Epload (WProf) graph in JSON. The objects of a graph \
               get log-normal sizes with the measured total of the page, or with bytes=SIZE. \
               http=2 (the default) is one connection; answers take turns in frames of 16 KiB within \
               the client's windows (window=32MiB, of each stream and of the connection). http=1 is up \
               to connections=6 persistent connections with one request at a time. Each opens when an \
               object waits for it. A request has 400 bytes over HTTP/1.1 and 100 over HTTP/2, the head \
               of an answer 300 and 100. With think=off, computing takes no time. The page load time \
               runs from the first SYN to the end of the page's last activity. Measures are of all \
               connections together.",
        examples: &["web:amazon", "web:google,http=1,connections=2", "web:wikipedia,window=64KiB"],
    },
];
