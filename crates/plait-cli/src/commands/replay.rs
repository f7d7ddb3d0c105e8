//! Fitted links of a capture in the simulator: for `plait explain --what-if` and for `plait regress`.

use crate::failure::Failure;
use plait_app::file;
use plait_capture::{CaptureExplanation, FitReport};
use plait_lab::{RawScenario, Scenario};

/// Returns the fit of the connection with the most data.
pub(crate) fn fit_of(explanation: &CaptureExplanation) -> Result<&FitReport, Failure> {
    let fit = explanation.connections.first().and_then(|connection| connection.fit.as_ref());
    fit.ok_or_else(|| {
        let files: Vec<&str> = explanation.files.iter().map(|it| it.file.as_str()).collect();
        Failure::Usage(format!(
            "{}: no link can be fitted: the largest connection has no data, or no RTT\n  capture \
             its start and its data: tcpdump -i any -s 160 -w FILE tcp",
            files.join(", ")
        ))
    })
}

/// Returns the scenario of the fit. Settings of `draft` have priority; paths and workload are those of the fit.
pub(crate) fn scenario(fit: &FitReport, mut draft: RawScenario) -> Result<Scenario, Failure> {
    for name in ["path", "workload"] {
        if draft.arguments().iter().any(|(said, _)| *said == name) {
            return Err(Failure::Usage(format!(
                "--{name}: the capture has it already\n  allowed: other settings, such as --cc or \
                 --rcvbuf; `plait compare` takes any --{name}"
            )));
        }
    }
    for path in &fit.paths {
        draft.argument("path", &path.argument)?;
    }
    draft.argument("workload", &fit.workload)?;
    for (name, value) in &fit.settings {
        if !draft.says(name) {
            draft.argument(name, value)?;
        }
    }
    Ok(draft.build_with(&file::named)?)
}
