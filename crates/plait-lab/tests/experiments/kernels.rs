//! Tests the kernels of papers, and the parameters that papers leave open.

use super::{SMALL, all};
use plait_lab::experiment::{Experiment, Open, Plan};
use plait_lab::scenario::Kernels;
use plait_lab::scenario::no_files;

/// Reads a file of a paper that starts with this line.
fn paper(name: &str, more: &str) -> Result<Experiment, String> {
    let text = format!("{more}{SMALL}");
    Experiment::from_toml(&format!("{name}.toml"), &text).map_err(|error| error.to_string())
}

#[test]
fn a_figure_has_the_kernel_of_its_paper() {
    for (more, part) in [
        ("", "the figures of `imc` have a kernel"),
        ("kernel = \"3.6\"\n", "unknown kernel"),
        ("kernel = \"4.1\"\n", "the other figures of `imc` have `3.5`"),
        ("kernel = \"3.5\"\nprr = \"rfc9937\"\n", "the kernel `3.5` decides prr: rfc6937"),
        ("kernel = \"3.5\"\ntsq = \"off\"\n", "[[differs]]"),
    ] {
        let error = paper("imc-x", more).unwrap_err();
        assert!(error.contains(part), "{more}: {error}");
    }
    let row = SMALL.replace("lrf = { ", "lrf = { hystart = \"off\", ");
    let text = format!("kernel = \"3.5\"\n{row}");
    let error = Experiment::from_toml("imc-x.toml", &text).unwrap_err().to_string();
    assert!(error.contains("the kernel `3.5` decides hystart: linux3"), "{error}");
    // A paper of the user needs no kernel.
    assert!(paper("my-x", "").unwrap().kernel.is_none());
    let differs = "[[differs]]\nsetting = \"tsq\"\nis = \"on\"\nbecause = \"section 9\"\n[sweep]";
    let text = format!("kernel = \"3.5\"\n{}", SMALL.replace("[sweep]", differs));
    let figure = Experiment::from_toml("imc-x.toml", &text).unwrap();
    assert_eq!(figure.differs[0].because, "section 9");
    let plan = Plan::of(&figure, false, &no_files).unwrap();
    let scenario = &plan.cells[0].cell.scenario;
    assert!(scenario.transport.config.tsq);
    assert_eq!(scenario.transport.config.recovery.loss_detection, plait_core::LossDetection::Sack);
    let without = text.replace("because = \"section 9\"\n", "");
    let error = Experiment::from_toml("imc-x.toml", &without).unwrap_err().to_string();
    assert!(error.contains("`because`: the difference has no `because`"), "{error}");
}

/// HyStart is a part of CUBIC, and controllers count ACKs as in the kernel.
#[test]
fn controllers_are_those_of_the_kernel() {
    for (cc, named, hystart) in [
        ("cubic", "cubic", plait_cc::HyStart::Linux3),
        ("lia", "lia:count=acks", plait_cc::HyStart::Off),
        ("olia", "olia:least=2seg,count=acks", plait_cc::HyStart::Off),
    ] {
        let figure = paper("imc-x", &format!("kernel = \"3.5\"\ncc = \"{cc}\"\n")).unwrap();
        let cell = &Plan::of(&figure, false, &no_files).unwrap().cells[0].cell;
        assert_eq!(cell.cc.name(), plait_cc::Spec::parse(named).unwrap().name());
        assert_eq!(cell.scenario.transport.config.window.hystart, hystart, "{cc}");
    }
}

#[test]
fn each_paper_has_one_kernel_with_its_sources() {
    let kernels = Kernels::embedded().unwrap().0;
    for experiment in all() {
        let kernel = experiment.kernel.as_ref().unwrap();
        let own = kernel.papers.iter().any(|paper| paper == experiment.paper());
        assert!(
            own || experiment.differs.iter().any(|it| it.setting == "kernel"),
            "{}",
            experiment.id
        );
    }
    assert!(kernels.values().all(|kernel| !kernel.sources.is_empty()));
}

#[test]
fn every_open_value_can_be_planned() {
    let (open, mut tried) = (Open::embedded().unwrap(), 0);
    for experiment in all() {
        for (parameter, value) in open.of(&experiment) {
            let changed = experiment.with_values(&value.set);
            let changed = changed.unwrap_or_else(|error| panic!("{}: {error}", experiment.id));
            let plan = Plan::of(&changed.quickened(), true, &no_files)
                .unwrap_or_else(|error| panic!("{}, {}: {error}", experiment.id, parameter.what));
            assert!(plan.cells.is_empty() || changed != experiment, "{}", value.is);
            tried += 1;
        }
    }
    assert!(tried > 100, "{tried}");
    // Every figure in the list exists.
    let known: Vec<String> = all().into_iter().map(|it| it.id).collect();
    for parameter in open.0.values().flatten() {
        assert!(parameter.figures.iter().all(|it| known.contains(it)), "{}", parameter.what);
    }
}
