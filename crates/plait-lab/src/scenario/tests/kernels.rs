//! `--kernel NAME` applies the settings of a kernel, unless they are given.

use super::*;
use plait_cc::HyStart;
use plait_core::{KernelBuffers, LossDetection};

fn with(more: &[(&str, &str)]) -> Result<Scenario, ScenarioError> {
    let base = [("path", "wifi:rtt=20ms,rate=20mbit"), ("workload", "download:1MB")];
    build(&[&base[..], more].concat())
}

#[test]
fn a_scenario_has_the_settings_of_its_kernel() {
    let it = with(&[("kernel", "3.14"), ("prr", "rfc9937")]).unwrap();
    let transport = &it.transport;
    assert_eq!(transport.kernel, Kernel::None);
    assert!(transport.config.tsq && transport.config.joins.probe.is_none());
    assert_eq!(transport.config.recovery.loss_detection, LossDetection::SackProbe);
    assert_eq!(transport.config.window.hystart, HyStart::Linux3);
    assert_eq!(transport.config.recovery.prr, plait_core::Prr::Rfc9937);
    // The command line gives the settings instead of the kernel.
    assert_eq!(from_line(&it.command_line()), it);
    assert!(!it.command_line().contains("--kernel"));
    assert_eq!(with(&[("kernel", "6.18")]).unwrap().transport.kernel, Kernel::Linux6_18);
}

#[test]
fn controllers_count_as_in_the_kernel() {
    let it = with(&[("kernel", "3.5"), ("cc", "olia,reno")]).unwrap();
    let names: Vec<String> = it.ccs.iter().map(plait_cc::Spec::name).collect();
    let counted = ["olia:least=2seg,count=acks", "reno:count=acks"];
    assert_eq!(names, counted.map(|it| plait_cc::Spec::parse(it).unwrap().name()));
    assert_eq!(it.transport.config.window.hystart, HyStart::Off);
    let own = with(&[("kernel", "3.5"), ("cc", "olia:least=1seg,count=acks")]).unwrap();
    assert_eq!(own.ccs.len(), 1);
    let mixed = [("kernel", "3.5"), ("cc", "cubic,olia")];
    let error = with(&mixed).unwrap_err().to_string();
    assert!(error.contains("HyStart only with cubic"), "{error}");
    assert!(with(&[&mixed[..], &[("hystart", "off")]].concat()).is_ok());
}

#[test]
fn kernels_can_be_compared() {
    let it = with(&[("vary", "kernel=3.5,4.4,6.18")]).unwrap();
    let points = it.points(&read).unwrap();
    let tsq: Vec<bool> = points.iter().map(|point| point.scenario.transport.config.tsq).collect();
    assert_eq!(tsq, [false, true, false]);
    assert_eq!(points[2].scenario.transport.kernel, Kernel::Linux6_18);
    for (more, part) in [
        (&[("kernel", "3.5"), ("vary", "kernel=4.1,4.4")][..], "the kernel is set, too"),
        (&[("kernel", "3.6")], "unknown kernel"),
        (&[("vary", "kernel=4.1,5")], "unknown kernel"),
    ] {
        let error = with(more).unwrap_err().to_string();
        assert!(error.contains(part), "{error}");
    }
}

#[test]
fn only_the_receiver_behaves_as_a_kernel() {
    let buffers = |more: &[(&str, &str)]| {
        let it = with(more).unwrap();
        let sender = it.connection(true);
        let receiver = it.receiving(&sender);
        // Segments of the sender have room for 8 bytes more than those of a kernel.
        [sender, receiver]
            .map(|it| (it.buffers.kernel, it.joins.probe.is_some(), it.segment_payload()))
    };
    let plait = (None, true, 1_428);
    assert_eq!(buffers(&[]), [plait; 2]);
    let linux = KernelBuffers::LINUX_6_18;
    assert_eq!(buffers(&[("receiver", "6.18")]), [plait, (Some(linux), false, 1_420)]);
    // The kernel doubles SO_RCVBUF.
    let set = KernelBuffers { first_rcvbuf: 2_000_000, most_rcvbuf: 2_000_000, ..linux };
    let [_, receiver] = buffers(&[("receiver", "6.18"), ("rcvbuf", "1MB")]);
    assert_eq!(receiver.0, Some(set));
    // If it dials, its SYNs are those of the kernel.
    let it = with(&[("receiver", "6.18")]).unwrap();
    let linear = |it: &Config| it.kernel_rules.linear_syn_timeouts;
    let sender = it.connection(true);
    assert_eq!((linear(&sender), linear(&it.receiving(&sender))), (0, 4));
    let error = with(&[("receiver", "4.1")]).unwrap_err().to_string();
    assert!(error.contains("none"), "{error}");
}
