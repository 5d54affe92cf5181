//! `longtail sweep --inspect kernel` leaves nothing in the kernel. What it measures is in
//! `scenarios/waits.txt`.

use std::collections::BTreeSet;
use std::fs;

use rustix::process::{Pid, Signal};
use testkit::clock::eventually;

use crate::lab::{LONGTAIL, Lab, PATIENCE, can, free_port, sockets};

/// The BPF programs and links that a process holds.
fn held(pid: Pid) -> BTreeSet<u32> {
    let folder = format!("/proc/{}/fdinfo", pid.as_raw_pid());
    let files = fs::read_dir(folder).into_iter().flatten().flatten();
    let texts = files.filter_map(|file| fs::read_to_string(file.path()).ok());
    let id = |text: String| {
        text.lines().find_map(|line| line.strip_prefix("prog_id:")?.trim().parse().ok())
    };
    texts.filter_map(id).collect()
}

/// All BPF programs in the kernel.
pub(crate) fn loaded() -> BTreeSet<u32> {
    aya::programs::loaded_programs().filter_map(|program| Some(program.ok()?.id())).collect()
}

#[test]
fn nothing_stays_in_the_kernel_after_kill_9() {
    if !can(probe::bpf::possible().is_ok(), "no BPF here") {
        return;
    }
    let lab = Lab::new();
    let port = free_port();
    let words = format!(
        "sweep --slots 4 --url http://127.0.0.1:{port}/ -d0.02 --for 120s --warm-up 0 --multiples 2 --no-calibrate --anatomy \
         --inspect kernel -- {LONGTAIL} sink --listen 127.0.0.1:{port} --threads 4 --delay 20ms"
    );
    let mut sweep = lab.start(&words);
    let mut programs = BTreeSet::new();
    sweep.until(|_| {
        let holders: Vec<BTreeSet<u32>> =
            lab.living().into_iter().map(held).filter(|held| !held.is_empty()).collect();
        assert!(holders.len() <= 1, "only longtail itself, none of its children: {holders:?}");
        programs = holders.into_iter().next().unwrap_or_default();
        programs.len() == 6 && sockets(port).open > 4
    });
    assert!(programs.is_subset(&loaded()), "{programs:?}");
    sweep.send(Signal::KILL);
    let left = || loaded().intersection(&programs).count();
    eventually(
        PATIENCE,
        || format!("{} of {programs:?} are left", left()),
        || (left() == 0).then_some(()),
    );
    lab.assert_nothing_left(port);
}
