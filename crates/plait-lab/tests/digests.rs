//! Tests digests: the same scenario gives the same bytes in any build, and another scenario gives others.

use crate::common::report;
use std::collections::BTreeSet;

const PATHS: &str = "--path wifi:rate=20mbit,rtt=22ms,queue=60kB,loss=0.1% \
                     --path lte:rate=10mbit,rtt=60ms,jitter=10ms,queue=300kB";

fn digest(rest: &str) -> String {
    report(&format!("{PATHS} {rest}")).digest
}

/// The digests as text. Every build on every machine must give them. A commit that changes behaviour updates
/// them.
#[test]
fn every_build_gives_these() {
    let questions = [
        "--workload download:512kB --runs 3",
        "--workload upload:256KiB --runs 2 --cc cubic,lia",
        "--workload bulk:3s --runs 2 --schedulers minrtt,ecf",
        "--workload burst:30seg --runs 2 --schedulers blest,redundant",
        "--workload stream:20kB@50ms,for=2s --runs 2 --schedulers ecf,minrtt+rp --cc olia",
        "--workload download:256kB --runs 2 --rcvbuf 64KiB --cc reno --seed 7",
    ];
    let list: Vec<String> =
        questions.iter().map(|rest| format!("{rest}\n  {}", digest(rest))).collect();
    insta::assert_snapshot!(list.join("\n"));
}

#[test]
fn jobs_and_checks_change_nothing() {
    let base = digest("--workload download:512kB --runs 4 --jobs 1");
    for more in ["--jobs 2", "--jobs 3", "--check", "--jobs 2 --check"] {
        assert_eq!(digest(&format!("--workload download:512kB --runs 4 {more}")), base, "{more}");
    }
}

#[test]
fn whatever_differs_in_the_question_differs_in_the_digest() {
    let questions = [
        "--workload download:100000B --schedulers minrtt --runs 2",
        "--workload download:100001B --schedulers minrtt --runs 2",
        "--workload download:100000B --schedulers minrtt --runs 3",
        "--workload download:100000B --schedulers minrtt --runs 2 --seed 2",
        "--workload download:100000B --schedulers roundrobin --runs 2",
        "--workload download:100000B --schedulers redundant --runs 2",
        "--workload download:100000B --schedulers minrtt --runs 2 --cc reno",
        "--workload download:100000B --schedulers minrtt --runs 2 --mtu 1400",
        "--workload download:100000B --schedulers minrtt --runs 2 --delayed-ack off",
        "--workload upload:100000B --schedulers minrtt --runs 2",
    ];
    let digests: BTreeSet<String> = questions.iter().map(|rest| digest(rest)).collect();
    assert_eq!(digests.len(), questions.len());
}
