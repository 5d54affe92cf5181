//! What a whole look adds to the board: connections, processes and their sums, the machine's counters.

use model::Nanos;
use probe::family::Member;
use probe::host::Host;

use super::{Board, Of, Process};
use crate::watch::quantity::Quantity;
use crate::watch::sampler::Look;

/// Of processes that have ended, so many are kept: the last ones.
pub(super) const MOST_GONE: usize = 64;

impl Board {
    pub(super) fn look(&mut self, look: Look) {
        let at = look.at;
        self.now = at;
        self.looks.1 += 1;
        self.cpu = look.cpu;
        for line in look.missing {
            self.miss(line);
        }
        let connections = look.connections;
        let number = |n: Option<u32>| n.map(f64::from);
        let accepted = connections.map(|seen| seen.accepted);
        self.gauge(Of::All, Quantity::Open, at, number(connections.map(|seen| seen.open)));
        self.gauge(Of::All, Quantity::Accepted, at, number(accepted));
        self.gauge(Of::All, Quantity::Unread, at, number(connections.and_then(|seen| seen.unread)));
        let held: u32 = look.members.iter().filter_map(|member| member.connections).sum();
        let is_told = look.members.iter().any(|member| member.connections.is_some());
        let elsewhere = accepted.filter(|_| is_told).map(|accepted| accepted.saturating_sub(held));
        self.gauge(Of::All, Quantity::Elsewhere, at, number(elsewhere));
        self.members(at, &look.members);
        self.machine(at, look.host);
        self.last_look = Some((at, look.host));
        let longest = self.longest.take();
        self.plot(Quantity::AcceptQueue, longest);
        self.plot_all();
    }

    /// The processes of a look.
    fn members(&mut self, at: Nanos, members: &[Member]) {
        let gone: Vec<u32> = self.processes.iter().filter(|(_, one)| one.is_there).map(|(pid, _)| *pid).collect();
        for pid in gone {
            if !members.iter().any(|member| member.pid == pid) {
                self.gone(pid, at);
            }
        }
        self.rates(at, members);
        for member in members {
            let of = Of::Process(member.pid);
            self.gauge(of, Quantity::Accepted, at, member.connections.map(f64::from));
            self.gauge(of, Quantity::Memory, at, member.memory_bytes.map(|bytes| bytes as f64));
            self.gauge(of, Quantity::Threads, at, member.used.map(|used| used.threads as f64));
            let entry = self.processes.entry(member.pid).or_insert_with(|| Process {
                title: String::new(),
                parent: None,
                first_seen: at,
                last_seen: at,
                is_there: true,
            });
            entry.title.clone_from(&member.title);
            (entry.parent, entry.last_seen, entry.is_there) = (member.parent, at, true);
        }
        self.forget();
        let threads: Option<u64> = members.iter().map(|member| member.used.map(|used| used.threads)).sum();
        let threads = threads.filter(|_| !members.is_empty());
        self.gauge(Of::All, Quantity::Threads, at, threads.map(|n| n as f64));
    }

    /// What the processes have used, whose sums are the server's. A process has a rate from its second look on.
    fn rates(&mut self, at: Nanos, members: &[Member]) {
        let rates = [Quantity::Cpu, Quantity::RunQueueWait, Quantity::Voluntary, Quantity::Involuntary];
        let before = self.last_look.map(|(at, _)| at);
        for quantity in rates {
            let (mut all, mut any) = (Some(0.0), false);
            for member in members {
                let Some((count, scale)) = counter(member, quantity) else {
                    all = None;
                    self.series((Of::Process(member.pid), quantity)).take(at, None);
                    self.counters.remove(&(member.pid, quantity));
                    continue;
                };
                let earlier = self.counters.insert((member.pid, quantity), count);
                // A later process of the same number begins anew.
                let counted = earlier.and_then(|earlier| count.checked_sub(earlier)).map(|n| n as f64 * scale);
                if let (Some(from), Some(counted)) = (before, counted) {
                    self.series((Of::Process(member.pid), quantity)).count(from, at, counted);
                    all = all.map(|all| all + counted);
                    any = true;
                }
            }
            match (before, all) {
                (Some(from), Some(all)) if any => self.series((Of::All, quantity)).count(from, at, all),
                (Some(_), _) => self.gauge(Of::All, quantity, at, None),
                (None, _) => {}
            }
        }
    }

    /// A process that has ended: what it had stays, and nothing of it is there now.
    fn gone(&mut self, pid: u32, at: Nanos) {
        if let Some(process) = self.processes.get_mut(&pid) {
            process.is_there = false;
        }
        for quantity in Quantity::OF_PROCESS {
            self.counters.remove(&(pid, quantity));
            if let Some(series) = self.series.get_mut(&(Of::Process(pid), quantity)) {
                series.take(at, None);
            }
        }
    }

    /// Those that ended first go, where there are many.
    fn forget(&mut self) {
        let mut gone: Vec<(Nanos, u32)> =
            self.processes.iter().filter(|(_, one)| !one.is_there).map(|(pid, one)| (one.last_seen, *pid)).collect();
        gone.sort_unstable();
        for (_, pid) in &gone[..gone.len().saturating_sub(MOST_GONE)] {
            self.processes.remove(pid);
            self.series.retain(|(of, _), _| *of != Of::Process(*pid));
            self.miss(format!("processes that ended, but for the last {MOST_GONE}"));
        }
    }

    fn machine(&mut self, at: Nanos, host: Host) {
        let Some((from, before)) = self.last_look else { return };
        let counted = [
            (Quantity::Overflows, host.listen_overflows_since(&before)),
            (Quantity::Drops, host.listen_drops_since(&before)),
            (Quantity::SynRetransmits, host.syn_retransmits_since(&before)),
        ];
        for (quantity, counted) in counted {
            match counted {
                Some(n) => self.series((Of::All, quantity)).count(from, at, n as f64),
                None => self.gauge(Of::All, quantity, at, None),
            }
        }
    }
}

/// A process's counter and how much one of it is.
fn counter(member: &Member, quantity: Quantity) -> Option<(u64, f64)> {
    match quantity {
        Quantity::Cpu => member.used.map(|used| (used.cpu, 1e-9)),
        Quantity::RunQueueWait => member.used.map(|used| (used.run_queue, 1e-9)),
        Quantity::Voluntary => member.switches.map(|switches| (switches.voluntary, 1.0)),
        Quantity::Involuntary => member.switches.map(|switches| (switches.involuntary, 1.0)),
        _ => None,
    }
}
