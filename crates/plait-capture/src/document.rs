//! The document of `plait explain CAPTURE`.

use crate::cause::Cause;
use schemars::JsonSchema;
use serde::Serialize;

/// Identifier of the document's form.
pub const SCHEMA: &str = "plait.explain-capture/1";

/// Captures, explained.
#[derive(Serialize, JsonSchema, Clone, Debug)]
pub struct CaptureExplanation {
    /// Form of this document: `plait.explain-capture/1`.
    pub schema: &'static str,
    /// The main cause of the connection with the most data.
    pub sentence: String,
    /// The files, in the order of the arguments.
    pub files: Vec<FileReport>,
    /// Number of connections in all files.
    pub connections_found: usize,
    /// The connections with the most data, the largest first.
    pub connections: Vec<ConnectionReport>,
    /// The largest transfer replayed with other schedulers; none if that was not asked for.
    pub what_if: Option<PredictionReport>,
    /// The command that repeats this.
    pub command: String,
}

/// A fitted transfer in the simulator.
#[derive(Serialize, JsonSchema, Clone, Debug)]
pub struct PredictionReport {
    /// The measure: `completion_ms`, or `message_delay_ms` of a stream.
    pub measure: String,
    /// Runs of each row.
    pub runs: u32,
    /// The measure of the capture; none if the capture does not show it.
    pub captured: Option<f64>,
    /// The first row by the capture, less one, in percent: the error of the fit.
    pub error_percent: Option<f64>,
    /// The rows. The first one is the scheduler that stands for that of the capture.
    pub rows: Vec<PredictedRow>,
    /// The comparison that gives the rows.
    pub command: String,
}

/// A prediction.
#[derive(Serialize, JsonSchema, Clone, Debug)]
pub struct PredictedRow {
    /// The scheduler, or `tcp:PATH`.
    pub scheduler: String,
    /// Median of the measure; none if no run finished.
    pub median: Option<f64>,
    /// The median against that of the first row, in percent; below zero is faster.
    pub change_percent: Option<f64>,
}

/// The kind of a file.
#[derive(Serialize, JsonSchema, Clone, Copy, PartialEq, Eq, Default, Debug)]
#[serde(rename_all = "kebab-case")]
pub enum FileKind {
    /// A capture: pcap or pcapng.
    #[default]
    Capture,
    /// A qlog of plait.
    Qlog,
    /// A file of `plait run --events`.
    Events,
    /// A run without a file. Its packets have the numbers of `plait run --pcap`.
    Run,
}

impl FileKind {
    /// Returns true if packets are identified by the lines of the file.
    #[must_use]
    pub const fn has_lines(self) -> bool {
        matches!(self, FileKind::Qlog | FileKind::Events)
    }
}

/// A file: its packets, and the limits of its explanation.
#[derive(Serialize, JsonSchema, Clone, Debug)]
pub struct FileReport {
    /// Its name.
    pub file: String,
    /// Its kind.
    pub kind: FileKind,
    /// Packets; of a capture, as tshark counts them.
    pub packets: u64,
    /// TCP segments.
    pub segments: u64,
    /// Limits of the explanation, one sentence each.
    pub notes: Vec<String>,
    /// The packet that cannot be read; the file was read until there.
    pub broken: Option<BrokenAt>,
}

/// A damaged packet.
#[derive(Serialize, JsonSchema, Clone, Debug)]
pub struct BrokenAt {
    /// Its number, from 1; in a qlog, its line.
    pub packet: u64,
    /// The problem.
    pub problem: String,
}

/// The protocol of a connection.
#[derive(Serialize, JsonSchema, Clone, Copy, PartialEq, Eq, Debug)]
#[serde(rename_all = "kebab-case")]
pub enum Protocol {
    /// Multipath TCP.
    Mptcp,
    /// Plain TCP.
    Tcp,
    /// MPTCP was asked for, and plain TCP is used.
    Fallback,
    /// Either: the capture cut the options that show it.
    Unknown,
}

/// A packet of a file.
#[derive(Serialize, JsonSchema, Clone, Copy, PartialEq, Eq, Debug)]
pub struct PacketId {
    /// Index of the file in `files`.
    pub file: usize,
    /// Its number in the file, from 1, as tshark counts; in a qlog or a file of events, its line.
    pub packet: u64,
}

/// A connection.
#[derive(Serialize, JsonSchema, Clone, Debug)]
pub struct ConnectionReport {
    /// Its protocol.
    pub protocol: Protocol,
    /// Token of the server (RFC 8684 section 3.2), in hexadecimal.
    pub token: Option<String>,
    /// Address and port of the client, on the first path.
    pub client: String,
    /// Address and port of the server, on the first path.
    pub server: String,
    /// The host that sent more data: `client` or `server`. All numbers are about this data.
    pub sender: &'static str,
    /// From the first data to the acknowledgement of the last, in milliseconds.
    pub duration_ms: f64,
    /// The data.
    pub data: DataReport,
    /// Its paths, in the order of their first packets.
    pub paths: Vec<PathReport>,
    /// The time that the transfer took beyond the rates of its paths, by cause, the largest first.
    pub lost_time: Vec<CauseReport>,
    /// Number of all incidents.
    pub incidents_found: usize,
    /// The most expensive incidents.
    pub incidents: Vec<IncidentReport>,
    /// Links and a workload that replay it in the simulator; none if no path has a rate and an RTT.
    pub fit: Option<FitReport>,
    /// True if a log has the state of the sender. Then `send-buffer`, `application-idle` and `path-unused` follow from
    /// it, and are no guesses.
    pub sender_known: bool,
    /// The decisions of the kernel's scheduler; none without a trace of them.
    pub kernel: Option<KernelReport>,
    /// Gaps of the capture, one sentence each.
    pub notes: Vec<String>,
}

/// The decisions of the kernel's scheduler, from its tracepoint `mptcp_subflow_get_send`.
#[derive(Serialize, JsonSchema, Clone, Debug)]
pub struct KernelReport {
    /// The file with the text of the trace.
    pub file: String,
    /// Its lines of the tracepoint: one for each path in each decision.
    pub lines: usize,
    /// Decisions.
    pub decisions: usize,
    /// Lines that cannot be given to a path, because their number does not fit the paths of that time.
    pub left_out_lines: usize,
    /// Decisions after which no path got data.
    pub nothing_sent: usize,
    /// Clock of the capture minus clock of the trace at its begin, in seconds.
    pub offset_s: f64,
    /// Drift between both clocks in parts per million.
    pub drift_ppm: f64,
    /// Share of the decisions within 60 us of a packet, in percent.
    pub matched_percent: f64,
    /// The paths, in the order of `paths` of the connection.
    pub paths: Vec<KernelPath>,
    /// Gaps of the trace, one sentence each.
    pub notes: Vec<String>,
}

/// The kernel's view of a path in its decisions.
#[derive(Serialize, JsonSchema, Clone, Debug)]
pub struct KernelPath {
    /// The path.
    pub path: String,
    /// Decisions in which the kernel considered it.
    pub asked: usize,
    /// Of these, decisions in which it was usable: established, and without too many timeouts (`active`).
    pub active: usize,
    /// Decisions in which its send buffer had room (`free`).
    pub free: usize,
    /// Decisions in which it was a backup.
    pub backup: usize,
    /// Decisions in which the kernel could take it: usable, with room, and no backup beside a usable regular path.
    pub could_take: usize,
    /// Decisions in which it had the least ratio of the usable paths, and room: the kernel takes it.
    pub taken: usize,
    /// Median of its send window in bytes (`snd_wnd`), while it was usable; none if it never was.
    pub send_window_bytes: Option<f64>,
    /// The same of its pacing rate in Mbit/s (`pace`).
    pub pace_mbps: Option<f64>,
    /// The same of the time in which its queued data leaves at the pacing rate, in milliseconds (`ratio`).
    pub queued_ms: Option<f64>,
}

/// Links, workload and settings that replay a transfer.
#[derive(Serialize, JsonSchema, Clone, Debug)]
pub struct FitReport {
    /// The paths, those with data.
    pub paths: Vec<FittedPath>,
    /// The value of `--workload`.
    pub workload: String,
    /// Further flags, without dashes, and their values.
    pub settings: Vec<(String, String)>,
    /// Captured time from the first SYN to the last byte, in milliseconds; none if the workload does not have it.
    pub completion_ms: Option<f64>,
    /// Properties of the transfer that the workload leaves out.
    pub note: Option<String>,
    /// The command that replays it.
    pub command: String,
}

/// A fitted link.
#[derive(Serialize, JsonSchema, Clone, Debug)]
pub struct FittedPath {
    /// Name of the path.
    pub name: String,
    /// The value of `--path`.
    pub argument: String,
    /// Rate of IP bytes in Mbit/s.
    pub rate_mbps: f64,
    /// Propagation RTT in milliseconds.
    pub rtt_ms: f64,
    /// Size of the queue in bytes; none if it is the default of 100 ms.
    pub queue_bytes: Option<u64>,
    /// True if the queue overflowed. Otherwise it may be larger.
    pub queue_overflowed: bool,
    /// Loss rate without that of the queue, in percent.
    pub loss_percent: f64,
    /// Begin and end of each outage, in milliseconds from the first SYN.
    pub outages_ms: Vec<(f64, f64)>,
}

/// The data of a connection, by data sequence numbers.
#[derive(Serialize, JsonSchema, Clone, Debug)]
pub struct DataReport {
    /// Bytes of data, each counted once.
    pub bytes: u64,
    /// Bytes that the receiver acknowledged with DATA_ACK (of plain TCP, with ACK).
    pub acked_bytes: u64,
    /// Bytes by duration, in Mbit/s.
    pub goodput_mbps: f64,
    /// Bytes that were sent on a path after another path, for the first time on that path.
    pub reinjected_bytes: u64,
    /// The same with retransmissions of such bytes, which tshark marks as reinjections too.
    pub on_several_paths_bytes: u64,
    /// Segments with such bytes.
    pub reinjected_segments: u64,
    /// Bytes that the capture has beyond a gap of the data.
    pub out_of_order_bytes: u64,
    /// Time from data beyond a gap to the data in the gap, in milliseconds: median.
    pub gap_median_ms: Option<f64>,
    /// The same, 95th percentile.
    pub gap_p95_ms: Option<f64>,
    /// Largest receive window in bytes; none if the capture does not show its scale.
    pub window_max_bytes: Option<u64>,
    /// Acknowledgements that leave room for less than a segment.
    pub windows_full: u64,
}

/// The place of the capture.
#[derive(Serialize, JsonSchema, Clone, Copy, PartialEq, Eq, Debug)]
#[serde(rename_all = "kebab-case")]
pub enum Place {
    /// At the sender of the data.
    Sender,
    /// At the receiver of the data.
    Receiver,
    /// Between both.
    Between,
    /// Unknown, because the capture does not have the handshake.
    Unknown,
}

/// Round-trip times of a path, in milliseconds.
#[derive(Serialize, JsonSchema, Clone, Debug)]
pub struct RttReport {
    /// Smallest sample.
    pub min_ms: f64,
    /// Median.
    pub median_ms: f64,
    /// 95th percentile.
    pub p95_ms: f64,
    /// Number of samples.
    pub samples: u64,
    /// The method: `data-ack` (from data to its ACK), `timestamps` (from a clock value to its echo), or `handshake`.
    pub method: &'static str,
}

/// A reset.
#[derive(Serialize, JsonSchema, Clone, Debug)]
pub struct ResetReport {
    /// The host that sent it: `client` or `server`.
    pub by: &'static str,
    /// Time from the first data of the connection, in milliseconds; zero before it.
    pub at_ms: f64,
    /// Its packet.
    pub packet: PacketId,
    /// The reason of its MP_TCPRST in words (RFC 8684 section 3.6).
    pub reason: Option<&'static str>,
    /// True if it has an MP_FASTCLOSE, which ends the connection.
    pub of_connection: bool,
    /// True if the sender had ended its data and all of it was acknowledged. Then the reset cost nothing.
    pub after_completion: bool,
}

/// A path: a subflow.
#[derive(Serialize, JsonSchema, Clone, Debug)]
pub struct PathReport {
    /// Name of the interface, if each path has its own; otherwise p1, p2, ...
    pub name: String,
    /// Address and port of the client.
    pub client: String,
    /// Address and port of the server.
    pub server: String,
    /// Where it was captured.
    pub place: Place,
    /// From the first data of the connection to the end of this handshake, in milliseconds.
    pub joined_ms: Option<f64>,
    /// True if it is a backup path.
    pub backup: bool,
    /// True if its handshake agreed on MPTCP.
    pub multipath: bool,
    /// Its first RST, or the MP_FASTCLOSE of the connection.
    pub reset: Option<ResetReport>,
    /// SYNs, if nothing answered them; otherwise zero.
    pub unanswered_syns: u32,
    /// The traffic of the data's direction.
    pub traffic: TrafficReport,
    /// Rate while the link was busy, in Mbit/s of payload.
    pub link_mbps: Option<f64>,
    /// True if packets waited for each other, so that this is the rate of the link. Otherwise the link has at least
    /// this rate.
    pub link_is_known: bool,
    /// Round-trip times.
    pub rtt: Option<RttReport>,
}

/// Counts of a path, in the direction of the data.
#[derive(Serialize, JsonSchema, Clone, Debug)]
pub struct TrafficReport {
    /// Segments with payload.
    pub segments: u64,
    /// Payload bytes, with retransmissions.
    pub bytes: u64,
    /// Bytes by the time from the first packet to the last, in Mbit/s.
    pub mean_mbps: f64,
    /// Segments with bytes that the subflow had sent before.
    pub retransmitted_segments: u64,
    /// Such bytes.
    pub retransmitted_bytes: u64,
    /// Segments that arrived late in a gap: their first copies were lost before the capture.
    pub lost_before_segments: u64,
    /// Segments that arrived early in a gap: the network changed their order.
    pub reordered_segments: u64,
    /// Acknowledgements that report a second copy (D-SACK).
    pub duplicate_reports: u64,
    /// Bytes sent on this path after another path.
    pub reinjected_bytes: u64,
    /// Share of the segments that were lost, in percent.
    pub loss_percent: f64,
}

/// The cost of a cause.
#[derive(Serialize, JsonSchema, Clone, Debug)]
pub struct CauseReport {
    /// The cause.
    pub cause: Cause,
    /// The path with the cause; none if it is the whole connection.
    pub path: Option<String>,
    /// Lost time in milliseconds; none if it cannot be known.
    pub cost_ms: Option<f64>,
    /// Number of incidents.
    pub incidents: usize,
}

/// A stall.
#[derive(Serialize, JsonSchema, Clone, Debug)]
pub struct IncidentReport {
    /// The cause.
    pub cause: Cause,
    /// The path with the cause; none if it is the whole connection.
    pub path: Option<String>,
    /// Begin, in milliseconds from the first data.
    pub from_ms: f64,
    /// End.
    pub to_ms: f64,
    /// Lost time in milliseconds; none if it cannot be known.
    pub cost_ms: Option<f64>,
    /// The packet at its begin.
    pub first: PacketId,
    /// The packet at its end.
    pub last: PacketId,
    /// The kernel's decisions in this time, by path; none without a trace of them.
    pub kernel: Option<Vec<KernelPath>>,
}
