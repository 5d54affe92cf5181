//! One run of one program against one server: what the server counted, what the kernel counted,
//! what the program says.

use std::ffi::{OsStr, OsString};
use std::fs;

use launch::ServerExit;
use model::{Clock as _, Nanos};
use serde::Serialize;

use crate::counters::{Counted, Counting};
use crate::lab::{Account, Lab, Order, emptied};
use crate::server::Running;
use crate::tools::{End, Job, Said, Tool, said};

/// A request may take so long where a run ends by their number.
const SLOWEST: Nanos = Nanos::from_micros(50);
/// How often it is looked at while it ought to run: seldom, for whoever looks takes a processor
/// from somebody (and a lane that polls goes to sleep where more want to run than can).
const SELDOM: Nanos = Nanos::from_millis(100);
/// How often when it ought to end.
const OFTEN: Nanos = Nanos::from_millis(10);

/// Somebody who makes load, in a certain way.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Contender {
    /// As the table calls it.
    pub(crate) name: String,
    pub(crate) tool: Tool,
    /// Words beside those of the job.
    pub(crate) extra: Vec<String>,
    /// Whether it runs in each round, or in the first ones only.
    pub(crate) every_round: bool,
}

/// What a run came to.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct Sample {
    /// In which round, from 1.
    pub(crate) round: u32,
    /// Requests that the server received.
    pub(crate) received: u64,
    /// Requests per second in the middle of the run, by the server's count.
    pub(crate) rate_per_s: Option<f64>,
    /// The part of a processor that the server used meanwhile.
    pub(crate) server_busy: Option<f64>,
    /// Processors that others used during the run, steal included.
    pub(crate) foreign: Option<f64>,
    pub(crate) account: Account,
    pub(crate) counted: Counted,
    pub(crate) said: Said,
}

impl Sample {
    /// CPU time of a request, ns: by `task-clock` where it was counted (the account has perf's own
    /// in it then).
    pub(crate) fn cpu(&self) -> f64 {
        let account = (self.account.user_ns + self.account.system_ns) as f64;
        self.each(self.counted.cpu_ns.unwrap_or(account))
    }

    /// CPU time of the server a request, ns, in the middle of the run.
    pub(crate) fn server_cpu(&self) -> Option<f64> {
        Some(self.server_busy? * 1e9 / self.rate_per_s.filter(|rate| *rate > 0.0)?)
    }

    /// Instructions a request, in user mode.
    pub(crate) fn instructions_user(&self) -> Option<f64> {
        self.counted.instructions_user.map(|all| self.each(all))
    }

    /// Instructions a request, in the kernel.
    pub(crate) fn instructions_kernel(&self) -> Option<f64> {
        self.counted.instructions_kernel.map(|all| self.each(all))
    }

    /// Both.
    pub(crate) fn instructions(&self) -> Option<f64> {
        Some(self.instructions_user()? + self.instructions_kernel()?)
    }

    /// Cycles a request, of both.
    pub(crate) fn cycles(&self) -> Option<f64> {
        Some(self.each(self.counted.cycles_user? + self.counted.cycles_kernel?))
    }

    /// System calls a request.
    pub(crate) fn calls(&self) -> Option<f64> {
        self.counted.calls.map(|all| self.each(all))
    }

    fn each(&self, all: f64) -> f64 {
        all / self.received as f64
    }
}

/// Runs it. `server` has nothing else to do.
///
/// # Errors
/// Why there is no figure, in a line.
#[expect(clippy::too_many_lines, reason = "the steps of one run, in their order")]
pub(crate) fn run(
    lab: &Lab<'_>,
    server: &Running,
    contender: &Contender,
    job: &Job,
    counting: Counting,
) -> Result<Sample, String> {
    let tool = contender.tool;
    let program = lab.program(tool).ok_or("it is not here")?;
    let folder = lab.folder.join("run");
    emptied(&folder).and_then(|()| emptied(&lab.studies())).map_err(|why| why.to_string())?;
    let url = server.url(job.tls);
    let mut argv: Vec<OsString> = vec![program.into()];
    argv.extend(tool.arguments(job, &url));
    argv.extend(contender.extra.iter().map(OsString::from));
    let argv = lab.counters.before(counting, argv, &folder);
    let order = Order {
        cpu: lab.cpus.map(|(generator, _)| generator),
        becomes: false,
        folder: folder.clone(),
    };
    let silent = || "the server does not answer any more".to_owned();
    let before = server.at_rest(lab).ok_or_else(silent)?;
    let (machine, server_cpu, begun) = (machine_busy(), server.cpu(), lab.clock.now());
    let child = lab.start(&order, argv, &[("TOKIO_WORKER_THREADS", OsStr::new("1"))])?;
    let length = match job.end {
        End::After(length) => tool.length(length),
        End::Requests(n) => Nanos(SLOWEST.0 * n),
    };
    let until = |then: Nanos, step: Nanos| loop {
        if lab.interrupted() || child.exited().is_some() {
            return false;
        }
        let left = then.saturating_sub(lab.clock.now());
        if left == Nanos::ZERO {
            return true;
        }
        lab.clock.sleep(left.min(step));
    };
    // Start and end are not its speed: the rate is of what is between. Where nobody asks for speed,
    // nobody is disturbed.
    let mut glances = Vec::new();
    if counting == Counting::Cost && matches!(job.end, End::After(_)) {
        for share in [0.25, 0.9] {
            if until(begun + Nanos::from_secs_f64(length.as_secs_f64() * share), SELDOM) {
                glances.push(glance(lab, server));
            }
        }
        until(begun + length, SELDOM);
    }
    until(begun + length + lab.patience, OFTEN);
    let exit = child.exited();
    drop(child);
    if lab.interrupted() {
        return Err("interrupted".to_owned());
    }
    let exit = exit.ok_or_else(|| {
        format!("it had not ended {} after its time, and was killed", lab.patience)
    })?;
    let (machine_after, server_cpu_after, elapsed) =
        (machine_busy(), server.cpu(), lab.clock.now() - begun);
    let text = |name: &str| {
        String::from_utf8_lossy(&fs::read(folder.join(name)).unwrap_or_default()).into_owned()
    };
    let (printed, complaint) = (text("stdout"), text("stderr"));
    let why = || {
        last_line(&complaint)
            .or_else(|| last_line(&printed))
            .map(|l| format!(": {l}"))
            .unwrap_or_default()
    };
    // perf (6.1) now and then ends with 0 where its child did not; then there is no request, or no
    // output that is understood.
    if exit != ServerExit::Code(0) {
        return Err(format!("{exit}{}", why()));
    }
    let account = fs::read_to_string(Order::account(&folder))
        .ok()
        .and_then(|text| serde_json::from_str(&text).ok());
    let account: Account = account.ok_or("there is no account of it")?;
    let after = server.at_rest(lab).ok_or_else(silent)?;
    let received = after.requests - before.requests;
    if received == 0 {
        return Err(format!("the server got no request of it{}", why()));
    }
    let said = said(tool, &printed, &lab.studies())
        .ok_or_else(|| format!("what it printed is not understood{}", why()))?;
    if tool == Tool::Longtail {
        let theirs = (
            received,
            after.answers - before.answers,
            after.received_bytes - before.received_bytes,
        );
        same_ledgers(&said, theirs, after.received_bytes > 0)?;
    }
    let (rate_per_s, server_busy) = middle(&glances);
    let sample = Sample {
        rate_per_s,
        server_busy,
        received,
        account,
        counted: lab.counters.read(counting, &folder),
        said,
        ..Sample::default()
    };
    let seconds = elapsed.as_secs_f64();
    let server_used = server_cpu
        .zip(server_cpu_after)
        .map(|(before, after)| (after.saturating_sub(before)).as_secs_f64());
    let own = sample.cpu() * received as f64 / 1e9;
    let all = machine.zip(machine_after).map(|(before, after)| (after - before) / 100.0);
    Ok(Sample {
        foreign: all
            .zip(server_used)
            .map(|(all, server)| ((all - server - own) / seconds).max(0.0)),
        ..sample
    })
}

/// Marks the one trouble that makes the bench fail.
pub(crate) const LEDGERS: &str = "LEDGERS DIFFER";

/// Ours has to have counted what the server has: requests, answers, and bytes where it counts them.
fn same_ledgers(
    said: &Said,
    (requests, answers, bytes): (u64, u64, u64),
    counts_bytes: bool,
) -> Result<(), String> {
    let ours = said.requests.unwrap_or_default();
    let failed = said.failed.unwrap_or_default();
    let differ = if failed == 0 {
        let bytes_differ = counts_bytes && said.sent_bytes.is_some_and(|sent| sent != bytes);
        ours != requests || ours != answers || bytes_differ
    } else {
        // A request that failed may have reached the server, or not.
        ours < requests || ours - failed > answers
    };
    if differ {
        return Err(format!(
            "{LEDGERS}: ours {ours} requests ({failed} failed, {} bytes), the server's {requests} and {answers} answers ({bytes} bytes)",
            said.sent_bytes.unwrap_or_default()
        ));
    }
    Ok(())
}

/// The server at an instant, while it works.
#[derive(Clone, Copy)]
struct Glance {
    at: Nanos,
    /// Requests that it has received.
    requests: u64,
    /// CPU time that it has used.
    cpu: Option<Nanos>,
}

fn glance(lab: &Lab<'_>, server: &Running) -> Option<Glance> {
    let before = lab.clock.now();
    let requests = server.count()?.requests;
    let after = lab.clock.now();
    Some(Glance { at: before + Nanos((after - before).0 / 2), requests, cpu: server.cpu() })
}

/// Requests per second between two glances, and the part of a processor that the server used.
fn middle(glances: &[Option<Glance>]) -> (Option<f64>, Option<f64>) {
    let [Some(first), Some(last)] = glances else { return (None, None) };
    let seconds = (last.at - first.at).as_secs_f64();
    let busy = first
        .cpu
        .zip(last.cpu)
        .map(|(first, last)| last.saturating_sub(first).as_secs_f64() / seconds);
    (Some((last.requests - first.requests) as f64 / seconds), busy)
}

/// Ticks of 10 ms in which any processor worked, for whomever: user, nice, system, interrupts and
/// steal of `/proc/stat`.
fn machine_busy() -> Option<f64> {
    let text = fs::read_to_string("/proc/stat").ok()?;
    let ticks: Vec<f64> = text
        .lines()
        .next()?
        .split_ascii_whitespace()
        .skip(1)
        .map_while(|n| n.parse().ok())
        .collect();
    let of = |at: usize| ticks.get(at).copied().unwrap_or_default();
    Some([0, 1, 2, 5, 6, 7].into_iter().map(of).sum())
}

fn last_line(text: &str) -> Option<String> {
    text.lines().rev().find(|line| !line.trim().is_empty()).map(|line| line.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_of_what_lies_between() {
        let at = |ms, requests| {
            Some(Glance {
                at: Nanos::from_millis(ms),
                requests,
                cpu: Some(Nanos::from_millis(ms / 2)),
            })
        };
        assert_eq!(middle(&[at(250, 1000), at(750, 2000)]), (Some(2000.0), Some(0.5)));
        assert_eq!(middle(&[at(250, 1000), None]), (None, None));
        assert_eq!(middle(&[at(250, 1000)]), (None, None));
    }

    #[test]
    fn ledgers_that_differ_by_one_are_found() {
        let ours = |requests, failed| Said {
            requests: Some(requests),
            failed: Some(failed),
            sent_bytes: Some(requests * 10),
            ..Said::default()
        };
        assert_eq!(same_ledgers(&ours(5, 0), (5, 5, 50), true), Ok(()));
        // The bytes of requests whose head another counts otherwise are not compared.
        assert_eq!(same_ledgers(&ours(5, 0), (5, 5, 0), false), Ok(()));
        for theirs in [(4, 4, 40), (6, 6, 60), (5, 4, 50), (5, 5, 51)] {
            let said = same_ledgers(&ours(5, 0), theirs, true).unwrap_err();
            assert!(said.starts_with(LEDGERS), "{said}");
        }
        // Two failed: they may or may not have been received.
        for requests in 3..=5 {
            assert_eq!(same_ledgers(&ours(5, 2), (requests, 3, 0), false), Ok(()));
        }
        assert!(same_ledgers(&ours(5, 2), (6, 3, 0), false).is_err());
    }

    #[test]
    fn figures_are_of_a_request() {
        let sample = Sample {
            received: 10,
            account: Account { user_ns: 100, system_ns: 300, ..Account::default() },
            ..Sample::default()
        };
        assert_eq!((sample.cpu(), sample.instructions(), sample.calls()), (40.0, None, None));
        let counted = Counted {
            cpu_ns: Some(200.0),
            instructions_user: Some(1000.0),
            instructions_kernel: Some(3000.0),
            ..Counted::default()
        };
        let sample = Sample { counted, ..sample };
        assert_eq!(
            (sample.cpu(), sample.instructions(), sample.cycles()),
            (20.0, Some(400.0), None)
        );
    }
}
