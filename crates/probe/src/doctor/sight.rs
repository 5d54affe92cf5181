//! What can be seen of the kernel's side: time stamps, waits for a processor, BPF.
//!
//! BPF is tried out where it is permitted, since a kernel that is locked down may refuse all the same.

use std::io::{self, IoSliceMut, Write as _};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::fd::AsRawFd as _;
use std::time::Duration;

use model::{Clock, Nanos};
use nix::sys::socket::sockopt::ReceiveTimestampns;
use nix::sys::socket::{ControlMessageOwned, MsgFlags, recvmsg, setsockopt};
use nix::sys::time::TimeSpec;

use super::check::{Check, Group, Question};
use super::files::Files;
use crate::bpf::{Missing, possible};

const fn question(name: &'static str, spoils: &'static str) -> Question {
    Question { group: Group::Sight, name, spoils }
}

/// How long a byte may take over loopback.
const PATIENCE: Duration = Duration::from_millis(500);

/// Bits of `CapEff` (include/uapi/linux/capability.h).
const CAP_SYS_ADMIN: u32 = 21;
const CAP_PERFMON: u32 = 38;
const CAP_BPF: u32 = 39;

pub(super) fn checks(files: &Files, clock: &impl Clock) -> Vec<Check> {
    vec![stamps(stamped(clock)), run_queue(files), bpf(files, possible), perf(files)]
}

/// The kernel switches stamping on for the first socket that asks, from a work queue and so a moment later
/// (`net_enable_timestamp`, net/core/dev.c): bytes that come before have no stamp.
const TRIES: u32 = 20;
const BETWEEN_TRIES: Nanos = Nanos::from_millis(5);

/// Sends bytes to ourselves over loopback and looks whether the kernel says when they came.
fn stamped(clock: &impl Clock) -> io::Result<bool> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let mut client = TcpStream::connect(listener.local_addr()?)?;
    let (server, _) = listener.accept()?;
    server.set_read_timeout(Some(PATIENCE))?;
    setsockopt(&server, ReceiveTimestampns, &true)?;
    for _ in 0..TRIES {
        client.write_all(&[0])?;
        let (mut byte, mut control) = ([0], nix::cmsg_space!(TimeSpec));
        let mut bytes = [IoSliceMut::new(&mut byte)];
        let message = recvmsg::<()>(server.as_raw_fd(), &mut bytes, Some(&mut control), MsgFlags::empty())?;
        if message.cmsgs()?.any(|control| matches!(control, ControlMessageOwned::ScmTimestampns(_))) {
            return Ok(true);
        }
        clock.sleep(BETWEEN_TRIES);
    }
    Ok(false)
}

fn stamps(tried: io::Result<bool>) -> Check {
    const ASKED: Question =
        question("receive time stamps", "tails of a busy generator: without them its own late reading is in them");
    match tried {
        Ok(true) => ASKED.fine("work (SO_TIMESTAMPNS over loopback)"),
        Ok(false) => ASKED
            .warn("the kernel gives none with an answer", "a kernel of 4.14 or later, outside of gVisor and the like"),
        Err(error) => ASKED.unknown(format!("could not be tried: {error}")),
    }
}

fn run_queue(files: &Files) -> Check {
    const ASKED: Question =
        question("run-queue waits", "the verdict: whether lanes waited for a processor stays unknown");
    const SCHEDSTAT: &str = "/proc/thread-self/schedstat";
    match files.text(SCHEDSTAT) {
        None => ASKED.unread(SCHEDSTAT),
        Some(text) if text.split_ascii_whitespace().filter(|word| word.parse::<u64>().is_ok()).count() == 3 => {
            ASKED.fine(format!("counted ({SCHEDSTAT})"))
        }
        Some(_) => ASKED.warn("not counted", "a kernel with CONFIG_SCHED_INFO"),
    }
}

/// Effective capabilities.
fn capabilities(files: &Files) -> Option<u64> {
    u64::from_str_radix(&files.field("/proc/self/status", "CapEff")?, 16).ok()
}

fn bpf(files: &Files, tried: impl FnOnce() -> Result<(), Missing>) -> Check {
    const ASKED: Question =
        question("BPF", "where the wait is: times inside the kernel, request by request, cannot be had");
    const DISABLED: &str = "/proc/sys/kernel/unprivileged_bpf_disabled";
    let Some(held) = capabilities(files) else { return ASKED.unread("/proc/self/status") };
    let has = |bit: u32| held >> bit & 1 == 1;
    let may = has(CAP_SYS_ADMIN) || (has(CAP_BPF) && has(CAP_PERFMON));
    let types = files.exists("/sys/kernel/btf/vmlinux");
    let others = match files.number(DISABLED) {
        Some(0) => "others may a little",
        Some(_) => "others may not",
        None => "of others it is not told",
    };
    match (may, types) {
        (true, true) => match tried() {
            Ok(()) => ASKED.fine(format!("works (sweep --probe bpf): its tracepoints could be attached; {others}")),
            Err(missing) => ASKED.warn(
                format!("permitted, but: {missing}"),
                "a kernel of 6.3 or later that is not locked down, outside of containers",
            ),
        },
        (true, false) => {
            ASKED.warn("permitted, but /sys/kernel/btf/vmlinux is missing", "a kernel with CONFIG_DEBUG_INFO_BTF")
        }
        (false, _) => ASKED.warn(
            "not permitted: CAP_BPF and CAP_PERFMON are not held",
            "sudo setcap cap_bpf,cap_perfmon+ep \"$(command -v longtail)\", or run it as root",
        ),
    }
}

fn perf(files: &Files) -> Check {
    const ASKED: Question =
        question("perf events", "the why of a slow server: its profile (perf record) cannot be had");
    const PARANOID: &str = "/proc/sys/kernel/perf_event_paranoid";
    let Some(level) = files.text(PARANOID).and_then(|text| text.trim().parse::<i32>().ok()) else {
        return ASKED.unread(PARANOID);
    };
    let Some(held) = capabilities(files) else { return ASKED.unread("/proc/self/status") };
    let may = [CAP_SYS_ADMIN, CAP_PERFMON].iter().any(|bit| held >> bit & 1 == 1);
    let check = if may {
        ASKED.fine(format!("permitted (perf_event_paranoid {level} does not concern us)"))
    } else if level <= 2 {
        // 2 is the kernel's own default: one's own processes, outside of the kernel.
        ASKED.fine(format!("perf_event_paranoid {level}: our own processes"))
    } else {
        ASKED.warn(format!("perf_event_paranoid {level}: not permitted"), "sudo sysctl -w kernel.perf_event_paranoid=2")
    };
    check.with("level", level)
}

#[cfg(test)]
mod tests {
    use super::super::check::Grade;
    use super::super::files::given;
    use super::*;

    fn with(capabilities: &str, others: &[(&str, &str)]) -> Files {
        let status = format!("Name:\tlongtail\nCapEff:\t{capabilities}\n");
        given(&[&[("/proc/self/status", status.as_str())], others].concat())
    }

    #[test]
    fn bpf_wants_two_capabilities_or_all() {
        let types = [("/sys/kernel/btf/vmlinux", "")];
        let grade = |capabilities| bpf(&with(capabilities, &types), || Ok(())).grade;
        assert_eq!(grade("000001fffeffffff"), Grade::Fine);
        assert_eq!(grade("000000c000000000"), Grade::Fine);
        assert_eq!(grade("0000008000000000"), Grade::Warn, "CAP_BPF alone");
        assert_eq!(grade("0000000000000000"), Grade::Warn);
        assert_eq!(bpf(&with("000001ffffffffff", &[]), || Ok(())).grade, Grade::Warn, "no types");
    }

    #[test]
    fn what_is_permitted_and_refused_says_why() {
        let types = [("/sys/kernel/btf/vmlinux", "")];
        let refused = Missing::at("the tracepoint x", &io::Error::from_raw_os_error(1));
        let check = bpf(&with("000001ffffffffff", &types), || Err(refused));
        assert_eq!(check.grade, Grade::Warn);
        assert!(check.seen.contains("the tracepoint x: Operation not permitted"), "{}", check.seen);
    }

    #[test]
    fn perf_is_for_oneself_up_to_the_kernels_default() {
        let grade =
            |capabilities, level| perf(&with(capabilities, &[("/proc/sys/kernel/perf_event_paranoid", level)])).grade;
        assert_eq!([grade("0", "2\n"), grade("0", "3\n"), grade("0", "-1\n")], [Grade::Fine, Grade::Warn, Grade::Fine]);
        assert_eq!(grade("0000004000000000", "4\n"), Grade::Fine);
    }

    #[test]
    fn three_figures_are_an_account() {
        let grade = |text| run_queue(&given(&[("/proc/thread-self/schedstat", text)])).grade;
        assert_eq!([grade("0 35750 1\n"), grade("0 0\n")], [Grade::Fine, Grade::Warn]);
    }

    #[test]
    fn stamps_that_could_not_be_tried_are_unknown() {
        assert_eq!(stamps(Ok(true)).grade, Grade::Fine);
        assert_eq!(stamps(Ok(false)).grade, Grade::Warn);
        assert_eq!(stamps(Err(io::ErrorKind::PermissionDenied.into())).grade, Grade::Unknown);
    }
}
