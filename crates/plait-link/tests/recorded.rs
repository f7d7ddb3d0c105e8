//! Recorded traces from `$PLAIT_DATA`, or from `../shared/data` beside the checkout, if present.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use plait_base::{Rate, Span, Time};
use plait_link::{RateSource, Service, Trace, TraceFormat};

fn folder() -> Option<PathBuf> {
    let beside = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data");
    let data = std::env::var_os("PLAIT_DATA").map_or_else(beside, PathBuf::from);
    Some(data.join("traces")).filter(|folder| folder.is_dir())
}

#[test]
fn recorded_traces_are_read_and_replayed() {
    let Some(folder) = folder() else {
        eprintln!("skipped: no recorded traces in $PLAIT_DATA or ../shared/data");
        return;
    };
    let mut files: Vec<_> = folder.read_dir().unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    assert!(!files.is_empty());
    for file in files {
        let text = std::fs::read_to_string(&file).unwrap();
        let name = file.file_name().unwrap().to_string_lossy();
        let trace = Trace::parse(&name, &text).unwrap_or_else(|error| panic!("{error}"));
        let csv = name.ends_with(".csv");
        assert_eq!(trace.format(), if csv { TraceFormat::Csv } else { TraceFormat::Mahimahi });
        assert!(trace.duration() > Span::from_secs(90), "{name}");
        assert!(trace.mean_rate() > Rate::from_bps(500_000), "{name}");
        if !csv {
            assert_eq!(trace.to_mahimahi(), text, "{name}");
        }
        let again = Trace::parse(&name, &trace.to_mahimahi()).unwrap();
        assert_eq!(again.duration(), trace.duration(), "{name}");

        // A queue that is never empty uses the whole capacity: two laps end at the end of the recording,
        // within one packet.
        let lap = trace.mean_rate().bytes_in(trace.duration());
        let duration = trace.duration();
        let mut service =
            Service::new(&RateSource::Trace { trace: Arc::new(trace), offset: Span::ZERO });
        for _ in 0..2 * lap / 1500 {
            service.serve(Time::ZERO, 1500);
        }
        let end = Time::ZERO + duration + duration;
        assert!(service.free_at() <= end, "{name}");
        assert!(service.serve(Time::ZERO, 4500) > end, "{name}");
    }
}
