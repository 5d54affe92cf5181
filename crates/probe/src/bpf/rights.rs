//! Why the kernel's tracepoints cannot be listened to: what is missing, in a line.

use std::error::Error;
use std::path::Path;

use thiserror::Error;

/// What is missing.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct MissingRight(String);

/// The numbers of the system calls accept and accept4.
pub(super) const ACCEPTS: Option<(u32, u32)> = if cfg!(target_arch = "x86_64") {
    Some((43, 288))
} else if cfg!(target_arch = "aarch64") {
    Some((202, 242))
} else {
    None
};

/// The kernel's own types.
const TYPES: &str = "/sys/kernel/btf/vmlinux";

/// Bits of `CapEff` (include/uapi/linux/capability.h).
const CAP_SYS_ADMIN: u32 = 21;
const CAP_PERFMON: u32 = 38;
const CAP_BPF: u32 = 39;

impl MissingRight {
    /// What can be seen to be missing before anything is tried.
    pub(super) fn beforehand() -> Option<MissingRight> {
        if ACCEPTS.is_none() {
            return Some(MissingRight(format!("not for this kind of processor ({})", std::env::consts::ARCH)));
        }
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        if !may(&status) {
            let hint = "run as root, or give this program the two: setcap cap_bpf,cap_perfmon+ep";
            return Some(MissingRight(format!("CAP_BPF and CAP_PERFMON are not held ({hint})")));
        }
        let namespace = std::fs::read_link("/proc/self/ns/pid").unwrap_or_default();
        if !is_first(&namespace) {
            let why = "in this PID namespace processes have other numbers than in the kernel (a container: --pid=host)";
            return Some(MissingRight(why.to_owned()));
        }
        (!Path::new(TYPES).exists())
            .then(|| MissingRight(format!("{TYPES} is not there (a kernel with CONFIG_DEBUG_INFO_BTF)")))
    }

    /// A part of the compiled program: our own mistake, which the tests would find.
    pub(super) fn part(name: &str) -> MissingRight {
        MissingRight(format!("'{name}' of path.bpf.o"))
    }

    /// What failed, and why.
    pub(crate) fn at(what: &str, error: &dyn Error) -> MissingRight {
        // The kernel's own word is the last; before it may stand pages of the verifier's.
        let mut last = error;
        while let Some(source) = last.source() {
            last = source;
        }
        let text = last.to_string();
        let line = text.lines().next().unwrap_or_default();
        MissingRight(format!("{what}: {line}"))
    }
}

/// Whether it is the PID namespace that the kernel began with (`PROC_PID_INIT_INO`, `include/linux/proc_ns.h`).
fn is_first(namespace: &Path) -> bool {
    namespace == Path::new("pid:[4026531836]")
}

/// By `/proc/self/status`: whether both capabilities, or all, are held.
fn may(status: &str) -> bool {
    let held = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let held = held.and_then(|held| u64::from_str_radix(held.trim(), 16).ok()).unwrap_or(0);
    let has = |bit: u32| held >> bit & 1 == 1;
    has(CAP_SYS_ADMIN) || has(CAP_BPF) && has(CAP_PERFMON)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_capabilities_or_all() {
        let may = |held: &str| may(&format!("Name:\tx\nCapEff:\t{held}\n"));
        assert!(may("000001ffffffffff") && may("000000c000000000"));
        assert!(!may("0000008000000000") && !may("0000000000000000") && !may("x"));
    }

    #[test]
    fn a_containers_numbers_are_others() {
        assert!(is_first(Path::new("pid:[4026531836]")));
        assert!(!is_first(Path::new("pid:[4026532178]")) && !is_first(Path::new("")));
    }

    #[test]
    fn the_kernels_own_word_is_one_line() {
        let error = std::io::Error::from_raw_os_error(1);
        assert_eq!(
            MissingRight::at("loading lt_state", &error).to_string(),
            "loading lt_state: Operation not permitted (os error 1)"
        );
    }
}
