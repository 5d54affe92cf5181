//! The CPUs: the server's own, those that it shares, and the lock of a process that keeps it to one.

use model::{CpuUsage, GeneratorFacts, Limit, Nanos, ProcessCpu, Run, ServerCpu, number};

use crate::words::{listed, tenths};

/// CPUs are all used where no more than this share of them is left.
const USED: f64 = 0.90;
/// The same where the server's threads, running or waiting for a CPU, would fill them all.
const USED_WITH_A_QUEUE: f64 = 0.80;
/// A server that has less of its CPUs than this is not limited by them, whoever else uses them.
const SERVER_USES: f64 = 0.25;
/// Generator and others are seen in the server's rate from this share of its CPUs on.
const OTHERS_USE: f64 = 0.05;
/// A process that ran or wanted to for this share of the time had its lock taken all the time.
const LOCK_TAKEN: f64 = 0.90;

/// Which limit of the CPUs a run has reached, if any: theirs, or that of Ruby's lock.
pub(crate) fn of(facts: &GeneratorFacts) -> Option<Limit> {
    of_server(facts.server.as_ref()?, CpuUsage::of(facts)?)
}

/// The same of a server that nobody has put under load here.
pub(crate) fn of_server(server: &ServerCpu, cpu: CpuUsage) -> Option<Limit> {
    let beside = if server.is_shared { cpu.generator } else { 0.0 } + cpu.others.unwrap_or(0.0);
    // What is not idle is not to be had, whoever has it: a host takes processors from a virtual
    // machine unseen.
    let used = server.idle.map_or(cpu.server + beside, |idle| cpu.of - idle);
    let is_alone = beside < OTHERS_USE * cpu.of || !server.is_shared;
    let on_cpus = |cpu| if is_alone { Limit::Cpu(cpu) } else { Limit::SharedCpus(cpu) };
    if let Some(limit) = one_cpu_each(server, cpu) {
        return Some(limit);
    }
    if cpu.server >= SERVER_USES * cpu.of && used >= USED * cpu.of {
        return Some(on_cpus(cpu));
    }
    // Server and generator wake each other: the scheduler leaves a part of the CPUs idle now and
    // then though more threads than there are CPUs are ready to run.
    let is_queued_for = used >= USED_WITH_A_QUEUE * cpu.of && wanted(server) >= cpu.of;
    if !is_alone && cpu.server >= SERVER_USES * cpu.of && is_queued_for {
        return Some(Limit::SharedCpus(cpu));
    }
    // Under a quota nobody says what is idle: others may have the CPUs that it would allow.
    if cpu.by_quota && cpu.server >= HALF * cpu.of && wanted(server) >= cpu.of {
        return Some(on_cpus(cpu));
    }
    let serving = server.serving();
    let each = serving.iter().map(|(used, _)| *used).fold(f64::INFINITY, f64::min);
    let is_taken = !serving.is_empty()
        && each >= COMPUTES
        && serving.iter().all(|(_, wanted)| *wanted >= LOCK_TAKEN);
    let is_used_up = used >= USED * cpu.of;
    // A process that is ready all the time and has less than a CPU waits for one.
    let waits = cpu.by_quota && each < WHOLE_CPU;
    match (is_taken, is_used_up || waits) {
        (true, true) => Some(on_cpus(cpu)),
        (true, false) if server.is_ruby && each >= WHOLE_CPU => {
            Some(Limit::RubyLock { processes: serving.len() as u32, each, cpu })
        }
        (true | false, _) => None,
    }
}

/// A server that uses half of its quota computes.
const HALF: f64 = 0.5;

/// CPUs that the server's threads ran on or waited for.
fn wanted(server: &ServerCpu) -> f64 {
    let ready = |process: &ProcessCpu| process.cpu + process.run_queue;
    let all: Nanos = server.processes.iter().map(ready).sum();
    all.as_secs_f64() / server.elapsed.as_secs_f64().max(1e-9)
}

/// From this share of the time in service on the wait for a CPU is why requests take longer.
const WAITS: f64 = 0.2;

/// Whether requests of a run wait so long for a CPU that it explains why they take longer than
/// alone. `slots`: requests that the server can process at a time.
pub(crate) fn are_waited_for(run: &Run, slots: u32) -> bool {
    let waited = run.generator.server.as_ref().and_then(ServerCpu::waited_per_request);
    let in_service = f64::from(slots.min(run.connections)) / run.completed_rate().max(1e-9);
    waited.is_some_and(|waited| waited.as_secs_f64() >= WAITS * in_service)
}

/// A process that had less of a CPU than this does not compute: its threads wait for one now and
/// then, and many of them wait long in sum.
const COMPUTES: f64 = 0.2;
/// A process that had this share of a CPU would have had little more of one of its own: a share of
/// 0.75 leaves a third. How much is said.
const WHOLE_CPU: f64 = 0.75;
/// A process that uses more than this runs threads at the same time.
const MORE_THAN_ONE_CPU: f64 = 1.05;

/// Processes that each use a whole CPU, and are fewer than the CPUs: by Ruby's lock, Python's, or one
/// thread. Whoever else uses the other CPUs, more processes would be served by them.
fn one_cpu_each(server: &ServerCpu, cpu: CpuUsage) -> Option<Limit> {
    let serving = server.serving();
    let is_whole = |(used, wanted): &(f64, f64)| {
        (WHOLE_CPU..=MORE_THAN_ONE_CPU).contains(used) && *wanted >= LOCK_TAKEN
    };
    if serving.is_empty() || serving.len() as f64 > cpu.of - 1.0 || !serving.iter().all(is_whole) {
        return None;
    }
    let processes = serving.len() as u32;
    let each = serving.iter().map(|(used, _)| *used).fold(f64::INFINITY, f64::min);
    Some(if server.is_ruby {
        Limit::RubyLock { processes, each, cpu }
    } else {
        Limit::OneCpuEach { processes, each, cpu }
    })
}

/// Of CPUs that the server has for itself.
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

/// Of CPUs that it shares.
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

    /// A run of ten seconds on two CPUs, in tenths of a second of CPU time.
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
            processes: processes.iter().map(process).collect(),
            elapsed,
            requests: 1000,
            of: 2.0,
            by_quota: false,
            is_shared,
            busy: Some(busy as f64 / 100.0),
            idle: Some(2.0 - busy as f64 / 100.0),
            is_ruby,
        };
        let lane = LaneFacts { cpu: tenths(lane), elapsed, ..LaneFacts::default() };
        GeneratorFacts { lanes: vec![lane], server: Some(server), ..GeneratorFacts::default() }
    }

    #[test]
    fn shared_cpus_that_are_queued_for_are_used_up_though_a_part_is_idle() {
        let mut facts = facts(&[66, 66], 38, 172, (true, true));
        assert_eq!(super::of(&facts), None);
        let server = facts.server.as_mut().unwrap();
        server.processes[0].run_queue = Nanos::from_secs(32);
        assert_eq!(name(&super::of(&facts).unwrap()), "shared CPUs");
    }

    #[test]
    fn cpus_that_are_used_up_are_distinguished_from_threads_that_wait() {
        let of = |processes: &[u64], lane, busy, how| {
            super::of(&facts(processes, lane, busy, how)).map(|it| name(&it))
        };
        let (ruby, native) = ((true, true), (false, true));
        for (named, limit) in [
            (
                "two workers that compute have both CPUs",
                (of(&[1, 97, 96], 2, 197, ruby), Some("CPU")),
            ),
            (
                "and beside a generator that has its part",
                (of(&[1, 70, 72], 50, 198, ruby), Some("shared CPUs")),
            ),
            ("and beside others", (of(&[1, 70, 72], 2, 199, ruby), Some("shared CPUs"))),
            (
                "one worker that computes leaves a CPU",
                (of(&[98], 3, 104, ruby), Some("Ruby's lock")),
            ),
            (
                "so does one of two that has all to do",
                (of(&[97, 2], 3, 104, ruby), Some("Ruby's lock")),
            ),
            ("a process that is no Ruby has a CPU", (of(&[98], 3, 104, native), Some("one CPU"))),
            ("an app that waits", (of(&[5, 6], 2, 14, ruby), None)),
            ("an app that waits beside others that compute", (of(&[5, 6], 2, 200, ruby), None)),
            (
                "a generator on other CPUs takes none",
                (of(&[180], 90, 182, (false, false)), Some("CPU")),
            ),
        ] {
            assert_eq!(limit.0, limit.1, "{named}");
        }
        assert_eq!(super::of(&GeneratorFacts::default()), None);
        // The host had an eighth of both CPUs, and nobody says so: but none was idle.
        let mut by_host = facts(&[64, 64], 35, 175, ruby);
        assert_eq!(super::of(&by_host), None);
        by_host.server.iter_mut().for_each(|server| server.idle = Some(0.0));
        assert_eq!(super::of(&by_host).map(|it| name(&it)), Some("shared CPUs"));
        // One worker that computes beside others that do: it had 0.8 of a CPU and waited for the rest.
        let mut beside_others = facts(&[80], 2, 199, ruby);
        let wait = |run: &mut GeneratorFacts, part: u64| {
            let processes = run.server.iter_mut().flat_map(|server| &mut server.processes);
            processes.for_each(|one| one.run_queue = one.cpu / part);
        };
        wait(&mut beside_others, 5);
        let Some(Limit::RubyLock { each, .. }) = super::of(&beside_others) else {
            panic!("{:?}", super::of(&beside_others))
        };
        assert!((each - 0.8).abs() < 1e-9);
        // With half of one it would do twice as much: the CPUs that it shares are the limit.
        let mut half = facts(&[50], 2, 199, ruby);
        wait(&mut half, 1);
        assert_eq!(super::of(&half).map(|it| name(&it)), Some("shared CPUs"));
        // Under a quota of half a CPU, of which others left it 0.4.
        let mut under_quota = facts(&[41], 2, 0, ruby);
        under_quota.server.iter_mut().for_each(|server| {
            (server.of, server.by_quota, server.busy, server.idle) = (0.5, true, None, None);
        });
        assert_eq!(super::of(&under_quota), None, "it sleeps in between");
        wait(&mut under_quota, 1);
        let Some(Limit::Cpu(cpu)) = super::of(&under_quota) else { panic!() };
        assert!(sentence(&cpu).contains("allows the server 0.5, it uses 0.41"), "{cpu:?}");
        // A loop that had a third of a CPU and waited for one in the rest, because of others.
        let mut starved = facts(&[37], 2, 199, native);
        starved.server.iter_mut().flat_map(|server| &mut server.processes).for_each(|one| {
            one.run_queue = Nanos::from_millis(6300);
        });
        assert_eq!(super::of(&starved).map(|it| name(&it)), Some("shared CPUs"));
        // Two workers that hand their locks on: 80 % of each CPU, and some of the time they wait
        // for one. Two more workers did 21 % more.
        let mut waiting = facts(&[80, 80], 2, 166, ruby);
        wait(&mut waiting, 4);
        assert_eq!(super::of(&waiting).map(|it| name(&it)), Some("Ruby's lock"));
    }
}
