//! One run of one program against one server: the counts of the server and the kernel, and what the
//! program says.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::Path;

use launch::{Server, ServerExit};
use model::{Clock as _, Nanos};
use serde::Serialize;

use crate::counters::{Counted, Counting};
use crate::lab::{Account, Lab, Order, emptied};
use crate::server::Running;
use crate::tools::{End, Job, Tool, ToolReport, parsed};

/// The time allowed per request if a run ends by their number.
const SLOWEST: Nanos = Nanos::from_micros(50);
/// How often to check the program while it should run: rarely, because each check takes a CPU from
/// another process (and a polling lane goes to sleep if more threads are ready than there are
/// CPUs).
const SELDOM: Nanos = Nanos::from_millis(100);
/// How often to check when it should end.
const OFTEN: Nanos = Nanos::from_millis(10);

/// A generator with certain flags.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Contender {
    /// As the table calls it.
    pub(crate) name: String,
    pub(crate) tool: Tool,
    /// Flags in addition to those of the job.
    pub(crate) extra: Vec<String>,
    /// Whether it runs in each round, or only in the first ones.
    pub(crate) every_round: bool,
}

/// The result of a run.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct Sample {
    /// The round, from 1.
    pub(crate) round: u32,
    /// Requests that the server received.
    pub(crate) received: u64,
    /// Requests per second in the middle of the run, by the server's count.
    pub(crate) rate_per_s: Option<f64>,
    /// The share of a CPU that the server used meanwhile.
    pub(crate) server_busy: Option<f64>,
    /// CPUs that other processes used during the run, steal included.
    pub(crate) foreign: Option<f64>,
    pub(crate) account: Account,
    pub(crate) counted: Counted,
    pub(crate) reported: ToolReport,
}

impl Sample {
    /// CPU time per request, ns: by `task-clock` if it was counted, because the account then
    /// includes perf's own.
    pub(crate) fn cpu(&self) -> f64 {
        let account = (self.account.user_ns + self.account.system_ns) as f64;
        self.each(self.counted.cpu_ns.unwrap_or(account))
    }

    /// CPU time of the server per request, ns, in the middle of the run.
    pub(crate) fn server_cpu(&self) -> Option<f64> {
        Some(self.server_busy? * 1e9 / self.rate_per_s.filter(|rate| *rate > 0.0)?)
    }

    /// Instructions per request, in user mode.
    pub(crate) fn instructions_user(&self) -> Option<f64> {
        self.counted.instructions_user.map(|all| self.each(all))
    }

    /// Instructions per request, in the kernel.
    pub(crate) fn instructions_kernel(&self) -> Option<f64> {
        self.counted.instructions_kernel.map(|all| self.each(all))
    }

    /// Instructions per request, in both.
    pub(crate) fn instructions(&self) -> Option<f64> {
        Some(self.instructions_user()? + self.instructions_kernel()?)
    }

    /// Cycles per request, in both.
    pub(crate) fn cycles(&self) -> Option<f64> {
        Some(self.each(self.counted.cycles_user? + self.counted.cycles_kernel?))
    }

    /// System calls per request.
    pub(crate) fn calls(&self) -> Option<f64> {
        self.counted.calls.map(|all| self.each(all))
    }

    fn each(&self, all: f64) -> f64 {
        all / self.received as f64
    }
}

/// Runs a contender. `server` must be idle otherwise.
///
/// # Errors
/// Why there is no result, in one line.
pub(crate) fn run(
    lab: &Lab<'_>,
    server: &Running,
    contender: &Contender,
    job: &Job,
    counting: Counting,
) -> Result<Sample, String> {
    let tool = contender.tool;
    let folder = lab.folder.join("run");
    emptied(&folder).and_then(|()| emptied(&lab.studies())).map_err(|why| why.to_string())?;
    let argv = command(lab, server, contender, job)?;
    let argv = lab.counters.prefixed(counting, argv, &folder);
    let before = server.at_rest(lab).ok_or_else(silent)?;
    let machine = MachineUse::read(server);
    let done = run_process(lab, server, tool, job, counting, argv, &folder)?;
    let machine = machine.until(&MachineUse::read(server));
    let output = RunOutput::read(&folder);
    // perf (6.1) sometimes ends with 0 although its child failed; then there are no requests, or no
    // valid output.
    if done.exit != ServerExit::Code(0) {
        return Err(format!("{}{}", done.exit, output.last_words()));
    }
    let after = server.at_rest(lab).ok_or_else(silent)?;
    let received = after.requests - before.requests;
    if received == 0 {
        return Err(format!("the server got no request of it{}", output.last_words()));
    }
    let reported = parsed(tool, &output.printed, &lab.studies())
        .ok_or_else(|| format!("what it printed is not understood{}", output.last_words()))?;
    if tool == Tool::LONGTAIL {
        let counts = ServerCounts {
            requests: received,
            responses: after.answers - before.answers,
            received_bytes: after.received_bytes - before.received_bytes,
            counts_bytes: after.received_bytes > 0,
        };
        same_ledgers(&reported, &counts)?;
    }
    let (rate_per_s, server_busy) = middle(&done.glances);
    let sample = Sample {
        rate_per_s,
        server_busy,
        received,
        account: output.account.ok_or("there is no account of it")?,
        counted: lab.counters.read(counting, &folder),
        reported,
        ..Sample::default()
    };
    let own = sample.cpu() * received as f64 / 1e9;
    let foreign = machine.map(|others| ((others - own) / done.elapsed.as_secs_f64()).max(0.0));
    Ok(Sample { foreign, ..sample })
}

fn silent() -> String {
    "the server does not answer any more".to_owned()
}

/// The command line of a contender for this job.
fn command(
    lab: &Lab<'_>,
    server: &Running,
    contender: &Contender,
    job: &Job,
) -> Result<Vec<OsString>, String> {
    let program = lab.program(contender.tool).ok_or("it is not here")?;
    let mut argv: Vec<OsString> = vec![program.into()];
    argv.extend(contender.tool.arguments(job, &server.url(job.tls)));
    argv.extend(contender.extra.iter().map(OsString::from));
    Ok(argv)
}

/// A process that ended, and what was seen of the server meanwhile.
struct EndedProcess {
    exit: ServerExit,
    elapsed: Nanos,
    glances: Vec<Option<Glance>>,
}

/// Runs the command to its end.
fn run_process(
    lab: &Lab<'_>,
    server: &Running,
    tool: Tool,
    job: &Job,
    counting: Counting,
    argv: Vec<OsString>,
    folder: &Path,
) -> Result<EndedProcess, String> {
    let order = Order {
        cpu: lab.cpus.map(|(generator, _)| generator),
        becomes: false,
        folder: folder.to_owned(),
    };
    let begun = lab.clock.now();
    let child = lab.start(&order, argv, &[("TOKIO_WORKER_THREADS", OsStr::new("1"))])?;
    let length = match job.end {
        End::After(length) => tool.length(length),
        End::Requests(n) => Nanos(SLOWEST.0 * n),
    };
    let measures_rate = counting == Counting::Cost && matches!(job.end, End::After(_));
    let glances = await_end(lab, server, &child, begun, length, measures_rate);
    let exit = child.exited();
    drop(child);
    let elapsed = lab.clock.now() - begun;
    if lab.interrupted() {
        return Err("interrupted".to_owned());
    }
    let exit = exit.ok_or_else(|| {
        format!("it had not ended {} after its time, and was killed", lab.patience)
    })?;
    Ok(EndedProcess { exit, elapsed, glances })
}

/// Waits until the program has ended, or for as long as [`Lab::patience`] allows. If it
/// `measures_rate`, takes two snapshots of the server meanwhile: the rate is measured between
/// start and end. Otherwise the run is not disturbed.
fn await_end(
    lab: &Lab<'_>,
    server: &Running,
    child: &Server,
    begun: Nanos,
    length: Nanos,
    measures_rate: bool,
) -> Vec<Option<Glance>> {
    // Waits for a moment; false if the program has ended before it, or the user interrupts.
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
    let mut glances = Vec::new();
    if measures_rate {
        for share in [0.25, 0.9] {
            if until(begun + Nanos::from_secs_f64(length.as_secs_f64() * share), SELDOM) {
                glances.push(glance(lab, server));
            }
        }
        until(begun + length, SELDOM);
    }
    until(begun + length + lab.patience, OFTEN);
    glances
}

/// CPU time so far, of the whole machine and of the server.
struct MachineUse {
    /// In ticks.
    all: Option<f64>,
    server: Option<Nanos>,
}

impl MachineUse {
    fn read(server: &Running) -> MachineUse {
        MachineUse { all: machine_busy(), server: server.cpu() }
    }

    /// CPU seconds that anything but the server used up to `later`.
    fn until(&self, later: &MachineUse) -> Option<f64> {
        let all = (later.all? - self.all?) / 100.0;
        Some(all - later.server?.saturating_sub(self.server?).as_secs_f64())
    }
}

/// What a program left in its folder.
struct RunOutput {
    printed: String,
    complaint: String,
    account: Option<Account>,
}

impl RunOutput {
    fn read(folder: &Path) -> RunOutput {
        let text = |name: &str| {
            String::from_utf8_lossy(&fs::read(folder.join(name)).unwrap_or_default()).into_owned()
        };
        let account = fs::read_to_string(Order::account(folder)).ok();
        RunOutput {
            printed: text("stdout"),
            complaint: text("stderr"),
            account: account.and_then(|text| serde_json::from_str(&text).ok()),
        }
    }

    /// Its last line, as the end of a sentence.
    fn last_words(&self) -> String {
        let line = last_line(&self.complaint).or_else(|| last_line(&self.printed));
        line.map(|line| format!(": {line}")).unwrap_or_default()
    }
}

/// Marks the only kind of trouble that makes the bench fail.
pub(crate) const LEDGERS: &str = "LEDGERS DIFFER";

/// What the server counted during a run.
struct ServerCounts {
    requests: u64,
    responses: u64,
    received_bytes: u64,
    /// Whether it counts bytes at all.
    counts_bytes: bool,
}

/// Longtail must have counted the same as the server: requests, responses, and bytes if the server
/// counts them.
fn same_ledgers(reported: &ToolReport, server: &ServerCounts) -> Result<(), String> {
    let ServerCounts { requests, responses, received_bytes, counts_bytes } = *server;
    let ours = reported.requests.unwrap_or_default();
    let failed = reported.failed.unwrap_or_default();
    let sent = reported.sent_bytes;
    let differ = if failed == 0 {
        let bytes_differ = counts_bytes && sent.is_some_and(|sent| sent != received_bytes);
        ours != requests || ours != responses || bytes_differ
    } else {
        // A failed request may or may not have reached the server.
        ours < requests || ours - failed > responses
    };
    if differ {
        return Err(format!(
            "{LEDGERS}: ours {ours} requests ({failed} failed, {} bytes), \
             the server's {requests} and {responses} responses ({received_bytes} bytes)",
            sent.unwrap_or_default()
        ));
    }
    Ok(())
}

/// A snapshot of the working server.
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

/// Requests per second between two snapshots, and the share of a CPU that the server used.
fn middle(glances: &[Option<Glance>]) -> (Option<f64>, Option<f64>) {
    let [Some(first), Some(last)] = glances else { return (None, None) };
    let seconds = (last.at - first.at).as_secs_f64();
    let busy = first
        .cpu
        .zip(last.cpu)
        .map(|(first, last)| last.saturating_sub(first).as_secs_f64() / seconds);
    (Some((last.requests - first.requests) as f64 / seconds), busy)
}

/// Ticks of 10 ms in which any CPU was busy with anything: user, nice, system, interrupts and steal
/// of `/proc/stat`.
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
    fn a_rate_is_measured_between_two_snapshots() {
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
    fn ledgers_that_differ_by_one_are_detected() {
        let ours = |requests, failed| ToolReport {
            requests: Some(requests),
            failed: Some(failed),
            sent_bytes: Some(requests * 10),
            ..ToolReport::default()
        };
        let without_bytes = |requests, responses| ServerCounts {
            requests,
            responses,
            received_bytes: 0,
            counts_bytes: false,
        };
        let with_bytes = |requests, responses, received_bytes| ServerCounts {
            received_bytes,
            counts_bytes: true,
            ..without_bytes(requests, responses)
        };
        assert_eq!(same_ledgers(&ours(5, 0), &with_bytes(5, 5, 50)), Ok(()));
        assert_eq!(same_ledgers(&ours(5, 0), &without_bytes(5, 5)), Ok(()));
        for theirs in
            [with_bytes(4, 4, 40), with_bytes(6, 6, 60), with_bytes(5, 4, 50), with_bytes(5, 5, 51)]
        {
            let error = same_ledgers(&ours(5, 0), &theirs).unwrap_err();
            assert!(error.starts_with(LEDGERS), "{error}");
        }
        // Two failed requests may or may not have been received.
        for requests in 3..=5 {
            assert_eq!(same_ledgers(&ours(5, 2), &without_bytes(requests, 3)), Ok(()));
        }
        assert!(same_ledgers(&ours(5, 2), &without_bytes(6, 3)).is_err());
    }

    #[test]
    fn figures_are_per_request() {
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
