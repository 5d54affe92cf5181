//! What limits a server that was already running. The limits, their thresholds and their sentences
//! are those of every run. But here it is unknown how long a request takes alone, so busy threads
//! prove nothing: they are just as busy while they wait for a lock.

use model::{CpuUsage, Limit, LockWaiters, Nanos, ProcessCpu, ServerCpu, Strength};

use super::evidence::{ENOUGH_REPORTS, WatchEvidence, WatchedWorker};
use super::idle::{self, Held};
use super::locks::{self, TWO_EACH, always_locked, inside_app};
use super::{doing, standstill, uneven};
use crate::limits::{cpus, threads};

/// What is concluded of the limit.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Found {
    /// Nothing waits and threads are free, as far as can be seen.
    NoneSeen,
    /// The same, and it is seen what the requests in flight wait for.
    Idle(Held),
    /// This is the limit, certainly or probably.
    Known(Limit),
    /// This may be the limit.
    Guess(Limit),
    /// Some worker holds requests back while another has free threads.
    Uneven,
    /// All threads are busy, and no request has begun for a while.
    Standstill,
    /// All threads are busy, but no request waits.
    Full,
    /// Requests wait, but the reason can't be seen.
    NotKnown(Unseen),
}

/// Why a limit is not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unseen {
    /// It can't be seen which threads are busy.
    Threads,
    /// The reports about threads are from before this load.
    OldReports,
    /// Connections wait although threads are free, but the reports about threads are older than the
    /// queue.
    FreeThreads,
    /// All threads were busy, but in the only report of a worker.
    OneReport,
    /// All threads are busy, but it can't be seen whether the CPUs are.
    Cpu,
    /// The threads were looked at too seldom, in all or since this load began.
    Brief,
}

/// The first conclusion that holds.
pub(super) fn of(seen: &WatchEvidence) -> Found {
    let busy = seen.busy_or_taken();
    let is_full = is_full(seen, busy);
    let waits = seen.waiting() > 0;
    if is_full && standstill::is_so(seen) {
        return Found::Standstill;
    }
    if let Some(limit) = of_cpus(seen).filter(|limit| is_reached(limit, seen, busy, waits)) {
        return Found::Known(limit);
    }
    let is_in_use = waits || is_full || seen.requests_out_at_most() > Some(0);
    if is_in_use && locks::are_too_few_looks(seen) {
        return Found::NotKnown(Unseen::Brief);
    }
    if !waits && !is_full {
        return idle::of(seen).map_or(Found::NoneSeen, Found::Idle);
    }
    if let Some(locked) = locked(seen) {
        return Found::Known(inside_app(seen, locked));
    }
    if uneven::is_so(seen) && !is_full {
        return Found::Uneven;
    }
    // Without reports only the kernel's account is known, by which a thread that waits for a client's
    // next request is not busy.
    let without_reports =
        if seen.no_statistics.is_none() { Unseen::OldReports } else { Unseen::Threads };
    let Some(busy) = busy else { return Found::NotKnown(without_reports) };
    if !is_full {
        let is_reported = seen.busy().is_some();
        return Found::NotKnown(if is_reported { Unseen::FreeThreads } else { without_reports });
    }
    // The kernel's figures are averages over some seconds; a report shows one moment.
    let out = seen.requests_out().zip(seen.slots());
    let is_settled = out.is_some_and(|(out, slots)| threads::are_busy(f64::from(out), slots));
    let is_early = |worker: &WatchedWorker| {
        worker.busy_threads.is_some() && worker.full_reports < ENOUGH_REPORTS
    };
    if !is_settled && seen.workers.iter().any(is_early) {
        return Found::NotKnown(Unseen::OneReport);
    }
    if !waits {
        return Found::Full;
    }
    if seen.cpu.is_none() || seen.cpus.is_none() {
        return Found::NotKnown(Unseen::Cpu);
    }
    let slots = seen.slots().unwrap_or(busy);
    if let Some(pool) = doing::likely_pool(seen).filter(|pool| pool.is_probable) {
        let waiting = pool.waiting;
        return Found::Guess(inside_app(seen, LockWaiters { busy, waiting, is_on_file: false }));
    }
    Found::Guess(Limit::Threads {
        slots,
        connections: seen.requests_out().unwrap_or(busy + seen.waiting()),
        at_once: None,
        busy: seen.busy().map(f64::from),
        unhindered: None,
        strength: Strength::MayBe,
        computes: locks::may_be_rubys(seen).filter(|_| doing::wait_for_a_lock(seen)),
    })
}

/// Whether every thread has a request. Puma 6 and older also count a thread as busy while it waits
/// for a client's next request; then there are fewer unanswered requests than busy threads.
fn is_full(seen: &WatchEvidence, busy: Option<u32>) -> bool {
    let all = seen.slots().zip(busy).is_some_and(|(slots, busy)| slots > 0 && busy >= slots)
        || are_nearly_all_out(seen);
    let is_out = |slots: u32| {
        let out = seen.requests_out_at_most();
        out.is_none_or(|out| threads::are_busy(f64::from(out), slots))
    };
    all && seen.slots().is_some_and(is_out)
}

/// Whether connections wait in the kernel while nearly every thread has a request by the kernel's
/// account, and the others may have those requests of which it is unclear at a look whether they are
/// answered.
fn are_nearly_all_out(seen: &WatchEvidence) -> bool {
    const FEW: f64 = 0.2;
    /// A thread is free for a moment between two requests, and there are a few such moments.
    const BETWEEN_REQUESTS: f64 = 0.5;
    let missing = |worker: &WatchedWorker| {
        let threads = f64::from(worker.threads?);
        Some(threads - worker.requests_out?.min(threads))
    };
    let missing = seen.workers.iter().map(missing).sum::<Option<f64>>();
    let unclear = seen.out_most.zip(seen.out).map(|(most, least)| most - least);
    let Some(((missing, unclear), slots)) = missing.zip(unclear).zip(seen.slots()) else {
        return false;
    };
    seen.busy().is_none()
        && seen.in_kernel().is_some_and(|waiting| waiting > 0)
        && missing <= unclear + BETWEEN_REQUESTS
        && missing <= FEW * f64::from(slots)
}

/// The CPUs, or a lock that keeps a process to one.
fn of_cpus(seen: &WatchEvidence) -> Option<Limit> {
    let second = |share: f64| Nanos::from_secs_f64(share.max(0.0));
    let process = |worker: &WatchedWorker| {
        Some(ProcessCpu {
            pid: worker.pid?,
            cpu: second(worker.cpu?),
            run_queue: second(worker.cpu_wait?),
        })
    };
    let server = ServerCpu {
        processes: seen.workers.iter().filter_map(process).collect(),
        children: second(seen.children_cpu.unwrap_or(0.0)),
        elapsed: Nanos::from_secs(1),
        requests: 0,
        of: seen.cpus?,
        // Under a quota, other processes' CPU time is not read, because they don't use up this
        // quota.
        by_quota: seen.busy_cpus.is_none(),
        is_shared: true,
        busy: seen.busy_cpus,
        idle: None,
        is_ruby: seen.is_ruby,
        threads: seen.slots(),
    };
    let own = server.cpus();
    let others = seen.busy_cpus.map(|busy| (busy - own).max(0.0));
    let usage =
        CpuUsage { server: own, generator: 0.0, others, of: server.of, by_quota: server.by_quota };
    cpus::of_server(&server, usage)
}

/// Whether requests wait because of this limit. A single client that sends one request after
/// another also keeps a CPU busy, although the server could serve others meanwhile.
fn is_reached(limit: &Limit, seen: &WatchEvidence, busy: Option<u32>, waits: bool) -> bool {
    match limit {
        Limit::RubyLock { processes, .. } | Limit::OneCpuEach { processes, .. } => {
            let under_way = busy.or(seen.requests_out());
            waits || under_way.is_none_or(|requests| requests >= TWO_EACH * processes)
        }
        Limit::Cpu(_)
        | Limit::SharedCpus(_)
        | Limit::Threads { .. }
        | Limit::InsideApp { .. }
        | Limit::MoreThanStated { .. }
        | Limit::Refusals { .. }
        | Limit::AcceptQueue { .. }
        | Limit::Network { .. }
        | Limit::Generator { .. }
        | Limit::NotKnown { .. } => true,
    }
}

/// The threads that wait for a lock other than Ruby's, if in every worker with two or more requests
/// some thread always does.
fn locked(seen: &WatchEvidence) -> Option<LockWaiters> {
    let busy = seen.busy_or_taken()?;
    // While connections wait to be accepted, no thread is free: without the server's own count, as
    // many threads are busy as requests may be in flight.
    let do_wait = seen.in_kernel().is_some_and(|waiting| waiting > 0) && seen.busy().is_none();
    let most = seen.requests_out_at_most().zip(seen.slots()).filter(|_| do_wait);
    let busy = most.map_or(busy, |(out, slots)| busy.max(out.min(slots)));
    let mut waiting = 0.0;
    let mut on_files = 0.0;
    let mut at_looks = 0.0;
    for worker in seen.workers.iter().filter(|worker| worker.busy() >= Some(TWO_EACH)) {
        let waits = always_locked(worker)?;
        waiting += waits.lock + waits.file_lock;
        on_files += waits.file_lock;
        at_looks += waits.with_request();
    }
    // Those that do something else get through: that not every request was seen in flight makes them
    // no fewer.
    let busy = busy.max(at_looks.round() as u32);
    (waiting > 0.0).then_some(LockWaiters { busy, waiting, is_on_file: on_files > waiting / 2.0 })
}
