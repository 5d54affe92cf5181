//! The CPUs, whether the server's own or shared ones, and a lock that keeps a process to one CPU.

use model::{
    AtOnce, CpuUsage, GeneratorFacts, Limit, Nanos, ProcessCpu, Run, ServerCpu, ServingProcess,
    Strength, number,
};

use crate::busy_threads;
use crate::words::{listed, tenths};

/// The CPUs are used up if at least this share of them is used.
const USED: f64 = 0.90;
/// The same if the server's threads that run or wait for a CPU would use up all of them.
const USED_WITH_A_QUEUE: f64 = 0.80;
/// A server that uses a smaller share of its CPUs than this is not limited by them, whatever else
/// uses them, unless it is ready to run all the time and gets no more.
pub(crate) const SERVER_USES: f64 = 0.25;
/// Generator and other processes affect the server's rate if they use at least this share of its
/// CPUs.
const OTHERS_USE: f64 = 0.05;
/// If a process ran, or was ready to, for at least this share of the time, its lock was always
/// taken.
const LOCK_TAKEN: f64 = 0.90;

/// The limit that a run has reached, if it is the CPUs or a lock that keeps a process to one.
pub(crate) fn of(facts: &GeneratorFacts) -> Option<Limit> {
    of_server(facts.server.as_ref()?, CpuUsage::of(facts)?)
}

/// The same for a server that longtail does not load itself.
pub(crate) fn of_server(server: &ServerCpu, cpu: CpuUsage) -> Option<Limit> {
    let generator = if server.is_shared { cpu.generator } else { 0.0 };
    let beside = generator + cpu.others.unwrap_or(0.0);
    // What is not idle is not available, whatever uses it: a host can take CPUs from a virtual
    // machine without showing it.
    let used = server.idle.map_or(cpu.server + beside, |idle| cpu.of - idle);
    let is_alone = beside < OTHERS_USE * cpu.of || !server.is_shared;
    let takes_part = cpu.server >= SERVER_USES * cpu.of || is_starved(server, &cpu);
    let on_cpus = |cpu| if is_alone { Limit::Cpu(cpu) } else { Limit::SharedCpus(cpu) };
    if let Some(limit) = one_cpu_each(server, cpu) {
        return Some(limit);
    }
    if takes_part && used >= USED * cpu.of {
        return Some(on_cpus(cpu));
    }
    // Server and generator wake each other, so the scheduler sometimes leaves part of the CPUs idle
    // although more threads than CPUs are ready to run.
    let is_queued_for = used >= USED_WITH_A_QUEUE * cpu.of && wanted(server) >= cpu.of;
    if !is_alone && cpu.server >= SERVER_USES * cpu.of && is_queued_for {
        return Some(Limit::SharedCpus(cpu));
    }
    // Under a quota, idle time is unknown: other processes may use the CPUs that the quota would
    // allow.
    if cpu.by_quota && cpu.server >= QUOTA_USED * cpu.of && wanted(server) >= cpu.of {
        return Some(on_cpus(cpu));
    }
    let serving = server.serving();
    let each = least_busy(&serving);
    let is_taken = !serving.is_empty()
        && each >= COMPUTES
        && serving.iter().all(|process| process.wanted >= LOCK_TAKEN);
    let is_used_up = used >= USED * cpu.of;
    // A process that is always ready to run but gets less than a whole CPU waits for one.
    let waits = cpu.by_quota && each < WHOLE_CPU;
    if !is_taken {
        return None;
    }
    if is_used_up || waits {
        return Some(on_cpus(cpu));
    }
    if server.is_ruby && each >= WHOLE_CPU {
        let processes = serving.len() as u32;
        return Some(Limit::RubyLock { processes, each, cpu, strength: Strength::Is });
    }
    None
}

/// Whether the server gets few of its CPUs because other processes have them: each of its processes,
/// or as many as there are CPUs, would run all the time.
fn is_starved(server: &ServerCpu, cpu: &CpuUsage) -> bool {
    let others = cpu.others.unwrap_or(0.0);
    let could_use = cpu.of.min(server.serving().len() as f64);
    others >= (1.0 - SERVER_USES) * cpu.of && could_use > 0.0 && wanted(server) >= could_use
}

/// If a process of Ruby computes for at least this share of the time while requests wait inside,
/// its lock may be what holds them up. Handing the lock from thread to thread takes part of the
/// time, in which the process neither runs nor is ready to.
pub(crate) const MAY_BE_THE_LOCK: f64 = 0.5;

/// Explains a limit inside the app by Ruby's lock, where that is possible.
///
/// The lock is the probable limit if each process computes for most of the time. If requests take
/// no longer than they would by competing for the lock, more threads may do more.
pub(crate) fn or_ruby_lock(limit: Limit, run: &Run) -> Limit {
    let Some(server) = run.generator.server.as_ref().filter(|server| server.is_ruby) else {
        return limit;
    };
    let Some(cpu) = CpuUsage::of(&run.generator).filter(|cpu| !cpu.by_quota) else { return limit };
    let serving = server.serving();
    let each = least_busy(&serving);
    let locked = serving.iter().map(holds_the_lock).fold(f64::INFINITY, f64::min);
    if serving.is_empty() || serving.iter().any(|process| process.used > MORE_THAN_ONE_CPU) {
        return limit;
    }
    match limit {
        Limit::InsideApp { .. } if each >= WHOLE_CPU => {
            let processes = serving.len() as u32;
            Limit::RubyLock { processes, each, cpu, strength: Strength::Probably }
        }
        // If `busy` is known, threads were seen idle while requests waited, so there are enough.
        Limit::InsideApp { at_once: Some(at_once), slots, busy: None, .. }
            if each >= COMPUTES && is_competition(&at_once, slots, locked, run) =>
        {
            Limit::Threads {
                slots,
                connections: run.connections,
                at_once: Some(at_once),
                busy: busy_threads::of(run),
                unhindered: None,
                strength: Strength::MayBe,
                computes: Some(each),
            }
        }
        mut limit => {
            if let Limit::InsideApp { computes, .. } = &mut limit
                && locked >= MAY_BE_THE_LOCK
            {
                *computes = Some(each);
            }
            limit
        }
    }
}

/// Whether waiting for Ruby's lock explains how much longer requests take than alone. `locked`: the
/// share of the time for which a process holds it.
fn is_competition(at_once: &AtOnce, slots: u32, locked: f64, run: &Run) -> bool {
    let server = run.generator.server.as_ref();
    let Some(computing) = server.and_then(ServerCpu::per_request) else { return false };
    let waited = server.and_then(ServerCpu::waited_per_request).unwrap_or_default();
    let longer = (f64::from(slots) - at_once.mean) / run.completed_rate().max(1e-9);
    longer <= TAKES_OF_THE_LOCK * locked * (computing + waited).as_secs_f64()
}

/// A request takes Ruby's lock about this many times: to read, after each of its waits, to write.
/// Each time it finds it taken, it waits until another request has computed, at most.
const TAKES_OF_THE_LOCK: f64 = 5.0;

/// A server that uses at least this share of its quota is busy computing.
const QUOTA_USED: f64 = 0.5;

/// For which share of the time a process holds Ruby's lock, about: a thread that waits for a CPU keeps
/// it. The short waits of many threads that do not hold it add up, too, so waits count for no more than
/// half of what it computes.
fn holds_the_lock(process: &ServingProcess) -> f64 {
    process.wanted.min(1.5 * process.used)
}

/// What the least busy of these processes used of a CPU.
fn least_busy(serving: &[ServingProcess]) -> f64 {
    serving.iter().map(|process| process.used).fold(f64::INFINITY, f64::min)
}

/// CPUs that the server's threads ran on or waited for.
pub(crate) fn wanted(server: &ServerCpu) -> f64 {
    let ready = |process: &ProcessCpu| process.cpu + process.run_queue;
    let all: Nanos = server.processes.iter().map(ready).sum();
    all.as_secs_f64() / server.elapsed.as_secs_f64().max(1e-9)
}

/// If the wait for a CPU is at least this share of the time in service, it explains why requests
/// take longer.
const WAITS: f64 = 0.2;

/// Whether the requests of a run wait so long for a CPU that this explains why they take longer
/// than alone. `slots`: requests that the server can process at a time.
pub(crate) fn are_waited_for(run: &Run, slots: u32) -> bool {
    let waited = run.generator.server.as_ref().and_then(ServerCpu::waited_per_request);
    let in_service = f64::from(slots.min(run.connections)) / run.completed_rate().max(1e-9);
    waited.is_some_and(|waited| waited.as_secs_f64() >= WAITS * in_service)
}

/// A process that used less of a CPU than this does not compute: if it has many threads, their
/// short waits for a CPU still add up.
const COMPUTES: f64 = 0.2;
/// A process with this share of a CPU would gain at most a third from a CPU of its own. The
/// sentence says how much.
const WHOLE_CPU: f64 = 0.75;
/// A process that uses more than this runs several threads at the same time.
const MORE_THAN_ONE_CPU: f64 = 1.05;

/// Processes that each use a whole CPU and are fewer than the CPUs, because of Ruby's or Python's
/// lock or a single thread. More processes could use the other CPUs, even if those are shared.
fn one_cpu_each(server: &ServerCpu, cpu: CpuUsage) -> Option<Limit> {
    let serving = server.serving();
    let is_whole = |process: &ServingProcess| {
        (WHOLE_CPU..=MORE_THAN_ONE_CPU).contains(&process.used) && process.wanted >= LOCK_TAKEN
    };
    if serving.is_empty() || serving.len() as f64 > cpu.of - 1.0 || !serving.iter().all(is_whole) {
        return None;
    }
    let processes = serving.len() as u32;
    let each = least_busy(&serving);
    Some(if server.is_ruby {
        Limit::RubyLock { processes, each, cpu, strength: Strength::Is }
    } else {
        Limit::OneCpuEach { processes, each, cpu }
    })
}

/// The sentence for CPUs that the server has to itself.
pub(super) fn sentence(cpu: &CpuUsage) -> String {
    let is_less = cpu.server < USED * cpu.of;
    if cpu.by_quota && is_less {
        return format!(
            "The CPUs are the limit: the quota of its control group allows the server {}, it uses {} \
             and is ready to run all the time; others may have the rest.",
            cpu.of,
            number::fixed(cpu.server, 2)
        );
    }
    if cpu.by_quota {
        return format!(
            "The quota of its control group is the limit: it allows the server {} CPUs, and it uses \
             {}.",
            cpu.of,
            number::fixed(cpu.server, 2)
        );
    }
    format!("The server uses {} of {} CPUs: they are the limit.", tenths(cpu.server), cpu.of)
}

/// The sentence for shared CPUs.
pub(super) fn sentence_shared(cpu: &CpuUsage) -> String {
    let mut users = vec![("the server", cpu.server)];
    if cpu.generator > 0.0 {
        users.push(("longtail", cpu.generator));
    }
    users.extend(cpu.others.map(|others| ("other processes", others)));
    users.sort_by(|(_, a), (_, b)| b.total_cmp(a));
    let used = |(who, cpus): &(&str, f64)| format!("{} by {who}", tenths(*cpus));
    let users = listed(&users.iter().map(used).collect::<Vec<_>>());
    let of_quota = if cpu.by_quota { " of their control group's quota" } else { "" };
    format!(
        "The {} CPUs{of_quota} are used up, {users}: they are the limit, and they are shared.",
        cpu.of
    )
}

#[cfg(test)]
mod tests {
    use model::LaneFacts;

    use super::*;
    use crate::limits::name;

    /// A run of ten seconds on two CPUs. CPU times are in tenths of a second.
    fn facts(
        processes: &[u64],
        lane: u64,
        busy: u64,
        (is_ruby, is_shared): (bool, bool),
    ) -> GeneratorFacts {
        let tenths = |n: u64| Nanos::from_millis(100 * n);
        let elapsed = Nanos::from_secs(10);
        let process = |n: &u64| ProcessCpu { cpu: tenths(*n), ..ProcessCpu::default() };
        let server = ServerCpu {
            children: Nanos::ZERO,
            processes: processes.iter().map(process).collect(),
            elapsed,
            requests: 1000,
            of: 2.0,
            by_quota: false,
            is_shared,
            busy: Some(busy as f64 / 100.0),
            idle: Some(2.0 - busy as f64 / 100.0),
            is_ruby,
            threads: None,
        };
        let lane = LaneFacts { cpu: tenths(lane), elapsed, ..LaneFacts::default() };
        GeneratorFacts { lanes: vec![lane], server: Some(server), ..GeneratorFacts::default() }
    }

    #[test]
    fn a_server_that_others_keep_from_the_cpus_is_limited_by_them() {
        let limit = |waited: u64| {
            let mut facts = facts(&[1, 1], 0, 200, (true, true));
            for process in &mut facts.server.as_mut().unwrap().processes {
                process.run_queue = Nanos::from_secs(waited);
            }
            of(&facts)
        };
        let Some(Limit::SharedCpus(cpu)) = limit(10) else { panic!() };
        assert_eq!(
            sentence_shared(&cpu),
            "The 2 CPUs are used up, 2.0 by other processes and 0.0 by the server: they are the \
             limit, and they are shared."
        );
        assert_eq!(limit(1), None, "it hardly waits");
    }

    #[test]
    fn what_holds_requests_up_in_a_ruby_that_computes_may_be_its_lock() {
        let of = |tenths, is_ruby| inside_a_process_that_computes(2.0, tenths, is_ruby);
        let Limit::RubyLock { strength: Strength::Probably, .. } = of(81, true) else { panic!() };
        let Limit::InsideApp { computes: Some(_), .. } = of(66, true) else { panic!() };
        let Limit::InsideApp { computes: None, .. } = of(40, true) else { panic!() };
        let Limit::InsideApp { computes: None, .. } = of(81, false) else { panic!() };
    }

    #[test]
    fn threads_that_only_compete_for_rubys_lock_may_be_the_limit() {
        let of =
            |at_once, tenths, is_ruby| inside_a_process_that_computes(at_once, tenths, is_ruby);
        let Limit::Threads { computes: Some(_), .. } = of(4.9, 40, true) else { panic!() };
        let Limit::InsideApp { .. } = of(4.9, 40, false) else { panic!() };
        // It computes too little to keep requests waiting.
        let Limit::InsideApp { .. } = of(4.9, 10, true) else { panic!() };
    }

    #[test]
    fn a_thread_that_waits_for_a_cpu_keeps_rubys_lock() {
        let of = |tenths, waited: u64| {
            let mut generator = facts(&[tenths], 2, tenths + 2, (true, true));
            for process in &mut generator.server.as_mut().unwrap().processes {
                process.run_queue = Nanos::from_millis(100 * waited);
            }
            inside_with(generator, 2.0)
        };
        let Limit::InsideApp { computes: None, .. } = of(40, 0) else { panic!() };
        let Limit::InsideApp { computes: Some(_), .. } = of(40, 20) else { panic!() };
        // It computes so little that the waits are those of many threads.
        let Limit::InsideApp { computes: None, .. } = of(10, 60) else { panic!() };
    }

    /// What `or_ruby_lock` makes of a limit inside the app that lets `at_once` requests through for
    /// five threads, if its process uses `tenths` tenths of a second of CPU time in ten seconds.
    fn inside_a_process_that_computes(at_once: f64, tenths: u64, is_ruby: bool) -> Limit {
        inside_with(facts(&[tenths], 2, tenths + 2, (is_ruby, true)), at_once)
    }

    fn inside_with(generator: GeneratorFacts, at_once: f64) -> Limit {
        let run = Run { generator, ..testkit::study::canonical().runs.remove(0) };
        let at_once = Some(AtOnce { mean: at_once, low: at_once, high: Some(at_once) });
        let inside = Limit::InsideApp {
            slots: 5,
            workers: 1,
            at_once,
            held: None,
            locked: None,
            hindered: None,
            busy: None,
            computes: None,
        };
        or_ruby_lock(inside, &run)
    }

    #[test]
    fn shared_cpus_with_a_queue_are_used_up_although_some_are_idle() {
        let mut facts = facts(&[66, 66], 38, 172, (true, true));
        assert_eq!(super::of(&facts), None);
        let server = facts.server.as_mut().unwrap();
        server.processes[0].run_queue = Nanos::from_secs(32);
        assert_eq!(name(&super::of(&facts).unwrap()), "shared CPUs");
    }

    #[test]
    fn used_up_cpus_are_told_apart_from_waiting_threads() {
        let of = |processes: &[u64], lane, busy, how| {
            super::of(&facts(processes, lane, busy, how)).map(|it| name(&it))
        };
        let ruby = (true, true);
        let native = (false, true);
        for (named, limit) in [
            (
                "two workers that compute use both CPUs",
                (of(&[1, 97, 96], 2, 197, ruby), Some("CPU")),
            ),
            (
                "the same beside a generator that uses its share",
                (of(&[1, 70, 72], 50, 198, ruby), Some("shared CPUs")),
            ),
            (
                "the same beside other processes",
                (of(&[1, 70, 72], 2, 199, ruby), Some("shared CPUs")),
            ),
            (
                "one worker that computes leaves a CPU",
                (of(&[98], 3, 104, ruby), Some("Ruby's lock")),
            ),
            (
                "so does one of two workers that gets all requests",
                (of(&[97, 2], 3, 104, ruby), Some("Ruby's lock")),
            ),
            ("a native process uses one CPU", (of(&[98], 3, 104, native), Some("one CPU"))),
            ("an app that waits", (of(&[5, 6], 2, 14, ruby), None)),
            (
                "an app that waits beside other processes that compute",
                (of(&[5, 6], 2, 200, ruby), None),
            ),
            (
                "a generator on other CPUs takes none of the server's",
                (of(&[180], 90, 182, (false, false)), Some("CPU")),
            ),
        ] {
            assert_eq!(limit.0, limit.1, "{named}");
        }
        assert_eq!(super::of(&GeneratorFacts::default()), None);
    }

    /// All processes of the server waited for a CPU for their CPU time divided by `part`.
    fn wait(run: &mut GeneratorFacts, part: u64) {
        let processes = run.server.iter_mut().flat_map(|server| &mut server.processes);
        processes.for_each(|one| one.run_queue = one.cpu / part);
    }

    #[test]
    fn cpus_that_the_host_took_are_shared_cpus() {
        let ruby = (true, true);
        // The host took an eighth of both CPUs without showing it, but no CPU was idle.
        let mut by_host = facts(&[64, 64], 35, 175, ruby);
        assert_eq!(super::of(&by_host), None);
        by_host.server.iter_mut().for_each(|server| server.idle = Some(0.0));
        assert_eq!(super::of(&by_host).map(|it| name(&it)), Some("shared CPUs"));
    }

    #[test]
    fn one_worker_beside_other_processes_is_limited_by_what_it_could_do_alone() {
        let ruby = (true, true);
        // One worker that computes beside other processes: it got 0.8 of a CPU and waited for the
        // rest.
        let mut beside_others = facts(&[80], 2, 199, ruby);
        wait(&mut beside_others, 5);
        let Some(Limit::RubyLock { each, .. }) = super::of(&beside_others) else {
            panic!("{:?}", super::of(&beside_others))
        };
        assert!((each - 0.8).abs() < 1e-9);
        // With half a CPU it could do twice as much on its own: the shared CPUs are the limit.
        let mut half = facts(&[50], 2, 199, ruby);
        wait(&mut half, 1);
        assert_eq!(super::of(&half).map(|it| name(&it)), Some("shared CPUs"));
        // An event loop that got a third of a CPU and waited the rest of the time because of other
        // processes.
        let mut starved = facts(&[37], 2, 199, (false, true));
        starved.server.iter_mut().flat_map(|server| &mut server.processes).for_each(|one| {
            one.run_queue = Nanos::from_millis(6300);
        });
        assert_eq!(super::of(&starved).map(|it| name(&it)), Some("shared CPUs"));
    }

    #[test]
    fn a_quota_is_the_limit_only_if_the_server_waits_for_it() {
        let ruby = (true, true);
        // Under a quota of half a CPU, of which other processes left it 0.4.
        let mut under_quota = facts(&[41], 2, 0, ruby);
        under_quota.server.iter_mut().for_each(|server| {
            (server.of, server.by_quota, server.busy, server.idle) = (0.5, true, None, None);
        });
        assert_eq!(super::of(&under_quota), None, "it sleeps in between");
        wait(&mut under_quota, 1);
        let Some(Limit::Cpu(cpu)) = super::of(&under_quota) else { panic!() };
        assert!(sentence(&cpu).contains("allows the server 0.5, it uses 0.41"), "{cpu:?}");
    }

    #[test]
    fn workers_whose_threads_hand_the_lock_over_are_limited_by_it() {
        // Two workers whose threads hand the lock over: each uses 80 % of a CPU and sometimes waits
        // for one. Two more workers did 21 % more.
        let mut waiting = facts(&[80, 80], 2, 166, (true, true));
        wait(&mut waiting, 4);
        assert_eq!(super::of(&waiting).map(|it| name(&it)), Some("Ruby's lock"));
    }
}
