//! Segments in scripts. Sequence numbers count from 0 at the SYN, and data sequence numbers from 0
//! at the first byte of data.

use plait_wire::{Flags, Mptcp};

pub(crate) const SYN: Flags = Flags::SYN;
pub(crate) const FIN: Flags = Flags(0x11);
pub(crate) const RST: Flags = Flags(0x14);
pub(crate) const ACK: Flags = Flags::ACK;
pub(crate) const PSH: Flags = Flags(0x18);

/// A segment in relative numbers. Scripts take a template of the peer's state and override some
/// fields.
#[derive(Clone, Debug, Default)]
pub(crate) struct Seg {
    pub(crate) path: u32,
    pub(crate) flags: Flags,
    pub(crate) seq: u32,
    pub(crate) ack: u32,
    /// The window field, unscaled.
    pub(crate) win: u16,
    pub(crate) len: u32,
    /// Real bytes instead of the pattern.
    pub(crate) bytes: Option<Vec<u8>>,
    pub(crate) stamps: Option<(u32, u32)>,
    pub(crate) mss: Option<u16>,
    pub(crate) scale: Option<u8>,
    pub(crate) sack_permitted: bool,
    pub(crate) early_joins: bool,
    pub(crate) sack: Vec<(u32, u32)>,
    pub(crate) dack: Option<u64>,
    /// DSN, subflow sequence number, length.
    pub(crate) map: Option<(u64, u32, u16)>,
    pub(crate) data_fin: bool,
    /// Send all 64 bits of DSN and DATA_ACK.
    pub(crate) long: bool,
    pub(crate) mptcp: Option<Mptcp>,
    /// The payload is changed after its checksum was computed.
    pub(crate) edited: bool,
}

impl Seg {
    pub(crate) fn flags(mut self, flags: Flags) -> Seg {
        self.flags = flags;
        self
    }

    pub(crate) fn seq(mut self, seq: u32) -> Seg {
        self.seq = seq;
        self
    }

    pub(crate) fn ack(mut self, ack: u32) -> Seg {
        self.ack = ack;
        self
    }

    pub(crate) fn win(mut self, win: u16) -> Seg {
        self.win = win;
        self
    }

    pub(crate) fn dack(mut self, dack: u64) -> Seg {
        self.dack = Some(dack);
        self
    }

    pub(crate) fn sack(mut self, blocks: &[(u32, u32)]) -> Seg {
        self.sack = blocks.to_vec();
        self
    }

    /// Sets `len` bytes of data at `dsn`, with their mapping.
    pub(crate) fn data(mut self, dsn: u64, len: u32) -> Seg {
        self.flags = PSH;
        self.len = len;
        self.map = Some((dsn, self.seq, len as u16));
        self
    }

    /// Sets a mapping that differs from the payload.
    pub(crate) fn map(mut self, dsn: u64, ssn: u32, len: u16) -> Seg {
        self.map = Some((dsn, ssn, len));
        self
    }

    /// Sets a DATA_FIN without data at `dsn` (RFC 8684 section 3.3.3: SSN 0, length 1).
    pub(crate) fn data_fin(mut self, dsn: u64) -> Seg {
        self.map = Some((dsn, 0, 1));
        self.data_fin = true;
        self
    }

    /// Ends the mapping with the DATA_FIN, which its length includes.
    pub(crate) fn fin_with_it(mut self) -> Seg {
        self.data_fin = true;
        self
    }

    pub(crate) fn mptcp(mut self, option: Mptcp) -> Seg {
        self.mptcp = Some(option);
        self
    }

    pub(crate) fn edited(mut self) -> Seg {
        self.edited = true;
        self
    }

    pub(crate) fn stamp(mut self, value: u32) -> Seg {
        self.stamps = Some((value, self.stamps.map_or(0, |stamps| stamps.1)));
        self
    }

    pub(crate) fn long(mut self) -> Seg {
        self.long = true;
        self
    }

    /// Removes the DSS and all other MPTCP options.
    pub(crate) fn stripped(mut self) -> Seg {
        (self.dack, self.map, self.mptcp, self.data_fin) = (None, None, None, false);
        self
    }

    /// Returns every field with its name, as text.
    pub(crate) fn fields(&self) -> Vec<(&'static str, String)> {
        vec![
            ("path", self.path.to_string()),
            ("flags", format!("{:?}", self.flags)),
            ("seq", self.seq.to_string()),
            ("ack", self.ack.to_string()),
            ("win", self.win.to_string()),
            ("len", self.len.to_string()),
            ("echo", text(self.stamps.map(|stamps| stamps.1))),
            ("mss", text(self.mss)),
            ("scale", text(self.scale)),
            ("sack", blocks(&self.sack)),
            ("dack", text(self.dack)),
            ("map", mapping(self.map, self.data_fin)),
            ("mptcp", option(self.mptcp.as_ref())),
        ]
    }
}

fn text<T: ToString>(value: Option<T>) -> String {
    value.map_or_else(|| "-".into(), |value| value.to_string())
}

fn blocks(sack: &[(u32, u32)]) -> String {
    let blocks: Vec<String> = sack.iter().map(|(l, r)| format!("{l}..{r}")).collect();
    format!("[{}]", blocks.join(" "))
}

fn mapping(map: Option<(u64, u32, u16)>, fin: bool) -> String {
    let Some((dsn, ssn, len)) = map else { return "-".into() };
    format!("{dsn}+{len}@{ssn}{}", if fin { " fin" } else { "" })
}

fn option(option: Option<&Mptcp>) -> String {
    match option {
        None => "-".into(),
        Some(Mptcp::Capable(it)) => {
            let keys =
                usize::from(it.sender_key.is_some()) + usize::from(it.receiver_key.is_some());
            let len = it.data_len.map_or(String::new(), |len| format!(" {len}"));
            let sums = if it.checksum_required { " sums" } else { "" };
            format!("capable{keys}{len}{sums}")
        }
        Some(Mptcp::JoinSyn(it)) => format!("join{}", if it.backup { " backup" } else { "" }),
        Some(Mptcp::JoinSynAck(_)) => "join answer".into(),
        Some(Mptcp::JoinAck(_)) => "join proof".into(),
        Some(other) => format!("{other:?}"),
    }
}

/// Expected fields of a segment, and its time.
#[derive(Clone, Debug, Default)]
pub(crate) struct Want(pub(crate) Vec<(&'static str, String)>);

/// Expects a segment on `path` with `flags`.
pub(crate) fn want(path: u32, flags: Flags) -> Want {
    Want::default().set("path", path).set("flags", format!("{flags:?}"))
}

impl Want {
    /// Expects a value of a field, with the name and the text of [`Seg::fields`].
    pub(crate) fn set(mut self, field: &'static str, value: impl ToString) -> Want {
        self.0.push((field, value.to_string()));
        self
    }

    /// Expects a time in ms.
    pub(crate) fn at(self, millis: f64) -> Want {
        self.set("time", millis)
    }

    pub(crate) fn seq(self, seq: u32) -> Want {
        self.set("seq", seq)
    }

    pub(crate) fn ack(self, ack: u32) -> Want {
        self.set("ack", ack)
    }

    pub(crate) fn win(self, win: u16) -> Want {
        self.set("win", win)
    }

    pub(crate) fn len(self, len: u32) -> Want {
        self.set("len", len)
    }

    pub(crate) fn echo(self, stamp: u32) -> Want {
        self.set("echo", stamp)
    }

    pub(crate) fn scale(self, scale: Option<u8>) -> Want {
        self.set("scale", text(scale))
    }

    pub(crate) fn sack(self, sack: &[(u32, u32)]) -> Want {
        self.set("sack", blocks(sack))
    }

    pub(crate) fn dack(self, dack: u64) -> Want {
        self.set("dack", dack)
    }

    pub(crate) fn dack_none(self) -> Want {
        self.set("dack", "-")
    }

    pub(crate) fn map(self, dsn: u64, ssn: u32, len: u16) -> Want {
        self.set("map", mapping(Some((dsn, ssn, len)), false))
    }

    pub(crate) fn no_map(self) -> Want {
        self.set("map", "-")
    }

    pub(crate) fn data_fin(self, dsn: u64) -> Want {
        self.set("map", mapping(Some((dsn, 0, 1)), true))
    }

    /// Expects an MPTCP option as [`Seg::fields`] writes it (`capable`, `join` and so on); `-` for
    /// none.
    pub(crate) fn mptcp(self, words: &str) -> Want {
        self.set("mptcp", words)
    }

    /// Expects neither a DSS nor another MPTCP option.
    pub(crate) fn plain(self) -> Want {
        self.set("mptcp", "-").set("dack", "-").set("map", "-")
    }
}
