//! Prints the MPTCP options of each TCP segment in a capture (pcap or pcapng).
use pcap_file::pcap::PcapReader;
use pcap_file::pcapng::{Block, PcapNgReader};
use pcap_file::{DataLink, PcapError};
use plait_wire::codec::{Problem, Verify, parse};
use std::error::Error;
use std::io::Cursor;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::{env, fs};

/// A packet of the file, from its link-layer header on.
type Frame = (DataLink, Vec<u8>);

fn frames(file: &[u8]) -> Result<Vec<Frame>, PcapError> {
    let mut frames = Vec::new();
    if let Ok(mut capture) = PcapReader::new(Cursor::new(file)) {
        let link = capture.header().datalink;
        while let Some(packet) = capture.next_packet() {
            frames.push((link, packet?.data.into_owned()));
        }
        return Ok(frames);
    }
    let (mut capture, mut links) = (PcapNgReader::new(Cursor::new(file))?, Vec::new());
    while let Some(block) = capture.next_block() {
        match block? {
            // Each section numbers its interfaces from zero.
            Block::SectionHeader(_) => links.clear(),
            Block::InterfaceDescription(it) => links.push(it.linktype),
            Block::EnhancedPacket(it) => {
                let link = links.get(it.interface_id as usize).copied().unwrap_or(DataLink::NULL);
                frames.push((link, it.data.into_owned()));
            }
            _ => {}
        }
    }
    Ok(frames)
}

/// Returns the length of the link-layer header in bytes, if the type of the link is supported.
fn header_len(link: DataLink) -> Option<usize> {
    match link {
        DataLink::RAW | DataLink::IPV4 | DataLink::IPV6 => Some(0),
        DataLink::ETHERNET => Some(14),
        DataLink::LINUX_SLL => Some(16),
        DataLink::LINUX_SLL2 => Some(20),
        _ => None,
    }
}

fn main() -> ExitCode {
    let Some(file) = env::args_os().nth(1).map(PathBuf::from) else {
        eprintln!("pcap-options: no file\n  usage: pcap-options FILE");
        return ExitCode::from(2);
    };
    match print(&file) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("pcap-options: `{}`: {error}\n  give a pcap or pcapng file", file.display());
            ExitCode::from(2)
        }
    }
}

fn print(file: &Path) -> Result<(), Box<dyn Error>> {
    for (number, (link, frame)) in (1..).zip(frames(&fs::read(file)?)?) {
        let Some(packet) = header_len(link).and_then(|len| frame.get(len..)) else { continue };
        // A host that leaves checksums to its device captures packets without valid ones.
        let (ip, segment) = match parse(packet, Verify::Trusted) {
            Ok(parsed) => parsed,
            Err(error) if matches!(error.problem, Problem::Protocol(_) | Problem::Version(_)) => {
                continue;
            }
            Err(error) => {
                println!("{number}: {error}");
                continue;
            }
        };
        let dss = segment.options.dss.iter().map(|dss| format!("{dss:?}"));
        let others = segment.options.mptcp.iter().flat_map(|it| it.all());
        for option in dss.chain(others.map(|option| format!("{option:?}"))) {
            let (from, to) = (segment.src_port, segment.dst_port);
            println!("{number}: {}:{from} > {}:{to} {:?} {option}", ip.src, ip.dst, segment.flags);
        }
    }
    Ok(())
}
