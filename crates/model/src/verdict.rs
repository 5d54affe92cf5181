//! Was it the server that was measured, or the generator? Each run's evidence, graded, and the verdict from it.
//!
//! A gate is one question with its figure inside. The limits are those of docs/METHOD.md, "The verdict". What stays true: no
//! gate that was not looked at is counted as passed.

use serde::{Deserialize, Serialize};

use crate::{LoadPlan, LoadRun, Nanos, Run, Tally, Timing};

/// What limited a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The server: it was driven to its limit and the generator had room to spare.
    ServerBound,
    /// The generator: the figures say more about it than about the server.
    GeneratorBound,
    /// Nothing: the server was offered less than it can do, and kept up.
    Unloaded,
    /// The figures contradict each other or the machine spoiled them: no headline figure is given.
    Invalid,
}

/// The verdict and what it rests on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Judgement {
    /// The verdict.
    pub verdict: Verdict,
    /// Every question that could be asked, with its answer.
    pub gates: Vec<Gate>,
    /// Whether the user wants an invalid run's figures all the same.
    #[serde(default)]
    pub forced: bool,
}

/// How a gate came out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Grade {
    /// As it should be.
    Pass,
    /// Worth a look; does not change the verdict.
    Warn,
    /// Decides the verdict.
    Fail,
}

/// One question and its figure.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "gate", rename_all = "snake_case")]
pub enum Gate {
    /// What this generator, with these very settings, reaches against a server that takes no time.
    Headroom {
        /// That rate, in requests per second.
        ceiling_per_s: f64,
        /// It over the rate of the run.
        times: f64,
    },
    /// Open loop: requests sent within the window, of those that were due in it.
    SentInTime {
        /// Sent.
        sent: u64,
        /// Due.
        due: u64,
    },
    /// How late the generator was by itself: from due to the start of sending, waits for a connection left out.
    GeneratorLag {
        /// Its 99th percentile.
        #[serde(rename = "p99_ns")]
        p99: Nanos,
        /// That over the 99th percentile of the response time.
        of_response_time: f64,
    },
    /// The busiest lane's time on a CPU.
    LaneCpu {
        /// Share of the run, 0 to 1.
        share: f64,
    },
    /// The most that a lane waited for a CPU.
    LaneRunQueue {
        /// Share of the run, 0 to 1.
        share: f64,
    },
    /// Closed loop without think time: mean response time x rate must be the connections (Little's law).
    LittlesLaw {
        /// Mean response time x completed rate.
        in_flight: f64,
        /// Connections.
        connections: u32,
        /// How far apart the two may be by what the window's edges cut off, as a share.
        tolerance: f64,
    },
    /// Every planned request has exactly one outcome, and the server counts what we count.
    Conservation {
        /// Whole answers that we had.
        client: u64,
        /// Requests that the server took, where it says.
        server: u64,
    },
    /// Connections that the kernel dropped because the server's accept queue was full, on this machine, in the run.
    ListenOverflows {
        /// How many.
        dropped: u64,
    },
    /// Time that the hypervisor gave to others.
    Steal {
        /// Share of all processors' time, 0 to 1.
        share: f64,
    },
}

impl Gate {
    /// How it came out.
    pub fn grade(&self) -> Grade {
        let by = |value: f64, pass: f64, fail: f64| match value {
            v if v <= pass => Grade::Pass,
            v if v <= fail => Grade::Warn,
            _ => Grade::Fail,
        };
        match *self {
            Gate::Headroom { times, .. } => by(1.0 / times.max(1e-9), 1.0 / 3.0, 1.0 / 1.2),
            Gate::SentInTime { sent, due } => by(1.0 - sent as f64 / (due as f64).max(1.0), 0.005, 0.02),
            // Below 200 µs it is small whatever it is compared with.
            Gate::GeneratorLag { p99, .. } if p99 <= Nanos::from_micros(200) => Grade::Pass,
            Gate::GeneratorLag { of_response_time, .. } => by(of_response_time, 0.05, 0.20),
            Gate::LaneCpu { share } => by(share, 0.70, 0.90),
            Gate::LaneRunQueue { share } => by(share, 0.02, 0.10),
            Gate::LittlesLaw { in_flight, connections, tolerance } => {
                by((in_flight / f64::from(connections.max(1)) - 1.0).abs(), 0.01 + tolerance, 0.05 + tolerance)
            }
            Gate::Conservation { client, server } => {
                if client == server {
                    Grade::Pass
                } else {
                    Grade::Warn
                }
            }
            Gate::ListenOverflows { dropped } => {
                if dropped == 0 {
                    Grade::Pass
                } else {
                    Grade::Warn
                }
            }
            Gate::Steal { share } => by(share, 0.01, 0.05),
        }
    }

    /// Whether a failure of it means that the generator was the limit; else it means that the figures are worth nothing.
    fn blames_the_generator(&self) -> bool {
        matches!(
            self,
            Gate::Headroom { .. }
                | Gate::SentInTime { .. }
                | Gate::GeneratorLag { .. }
                | Gate::LaneCpu { .. }
                | Gate::LaneRunQueue { .. }
        )
    }

    /// What was seen, in a few words.
    pub fn text(&self) -> String {
        let percent = |share: f64| format!("{:.1} %", share * 100.0);
        match *self {
            Gate::Headroom { ceiling_per_s, times } => {
                format!("generator's ceiling {ceiling_per_s:.0} req/s, {times:.1} x this")
            }
            Gate::SentInTime { sent, due } => format!("{sent} of {due} due requests sent in time"),
            Gate::GeneratorLag { p99, of_response_time } => {
                format!(
                    "own lag p99 {:.3} ms, {} of the response time's",
                    p99.as_millis_f64(),
                    percent(of_response_time)
                )
            }
            Gate::LaneCpu { share } => format!("lane CPU {}", percent(share)),
            Gate::LaneRunQueue { share } => format!("lane's wait for a CPU {}", percent(share)),
            Gate::LittlesLaw { in_flight, connections, .. } => {
                format!("Little's law {in_flight:.1} for {connections} connections")
            }
            Gate::Conservation { client, server } => format!("{client} answers here, {server} requests there"),
            Gate::ListenOverflows { dropped } => format!("{dropped} connects dropped by a full accept queue"),
            Gate::Steal { share } => format!("stolen CPU {}", percent(share)),
        }
    }

    /// What to do where it is not passed.
    pub fn remedy(&self) -> &'static str {
        match self {
            Gate::Headroom { .. } => {
                "more lanes (--lanes) on cores of their own, or a slower app: this rate is near the generator's own limit"
            }
            Gate::SentInTime { .. } => "more connections (-c) or lanes (--lanes), or a lower rate",
            Gate::GeneratorLag { .. } => "more lanes on cores of their own; in an open loop also --timing spin",
            Gate::LaneCpu { .. } => "more lanes (--lanes) on cores of their own",
            Gate::LaneRunQueue { .. } => {
                "the lanes compete for CPUs: a quieter machine, or fewer lanes than free cores"
            }
            Gate::LittlesLaw { .. } => {
                "run longer (--for): some requests took as long as the window, or time is counted wrongly somewhere"
            }
            Gate::Conservation { .. } => "is anything else sending to this server?",
            Gate::ListenOverflows { .. } => {
                "raise the server's backlog and net.core.somaxconn: a dropped connect shows as 1, 2, 3 … s"
            }
            Gate::Steal { .. } => "a machine whose cores are its own",
        }
    }
}

/// What a generator's lanes and machine did during a run, for the gates. What could not be read is absent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct GeneratorFacts {
    /// Each lane's use of the CPU.
    pub lanes: Vec<LaneFacts>,
    /// What the same settings reach against a server that takes no time.
    pub ceiling: Option<Ceiling>,
    /// Share of all processors' time that the hypervisor gave to others, 0 to 1.
    pub steal: Option<f64>,
    /// Connects dropped by full accept queues in this network namespace.
    pub listen_overflows: Option<u64>,
}

/// One lane's use of the CPU, by the kernel's account (`/proc/thread-self/schedstat`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LaneFacts {
    /// Time on a CPU.
    #[serde(rename = "cpu_ns")]
    pub cpu: Nanos,
    /// Time on a run queue, waiting for one.
    #[serde(rename = "run_queue_ns")]
    pub run_queue: Nanos,
    /// Time that passed.
    #[serde(rename = "elapsed_ns")]
    pub elapsed: Nanos,
}

/// What a generator with certain settings reaches against a server that takes no time, on this machine.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Ceiling {
    /// Requests per second.
    pub rate_per_s: f64,
    /// Median service time there: the floor of what can be measured.
    #[serde(rename = "floor_p50_ns")]
    pub floor_p50: Nanos,
    /// 99th percentile there.
    #[serde(rename = "floor_p99_ns")]
    pub floor_p99: Nanos,
    /// The lanes' CPU time a request.
    #[serde(rename = "cpu_per_request_ns")]
    pub cpu_per_request: Nanos,
}

/// Gates that every run has.
fn common(tally: &Tally, rate: f64, facts: &GeneratorFacts) -> Vec<Gate> {
    let mut gates = Vec::new();
    // A run above its ceiling has disproved it: it was measured in a worse moment.
    let ceiling = facts.ceiling.filter(|ceiling| rate > 0.0 && rate <= 1.1 * ceiling.rate_per_s);
    if let Some(ceiling) = ceiling {
        gates.push(Gate::Headroom { ceiling_per_s: ceiling.rate_per_s, times: ceiling.rate_per_s / rate });
    }
    if let (Some(p99), Some(response)) = (tally.generator_lag.quantile(0.99), tally.response_time.quantile(0.99)) {
        gates.push(Gate::GeneratorLag { p99, of_response_time: p99.0 as f64 / (response.0 as f64).max(1.0) });
    }
    let most = |part: fn(&LaneFacts) -> Nanos| {
        let shares = facts.lanes.iter().filter(|lane| lane.elapsed > Nanos::ZERO);
        shares.map(|lane| part(lane).0 as f64 / lane.elapsed.0 as f64).reduce(f64::max)
    };
    gates.extend(most(|lane| lane.cpu).map(|share| Gate::LaneCpu { share }));
    gates.extend(most(|lane| lane.run_queue).map(|share| Gate::LaneRunQueue { share }));
    gates.extend(facts.listen_overflows.map(|dropped| Gate::ListenOverflows { dropped }));
    gates.extend(facts.steal.map(|share| Gate::Steal { share }));
    gates
}

/// Little's law of a closed loop without think time: the mean over the requests due in the window, times the rate of
/// those that ended in it. What the window cuts off at either end is at most the longest request.
fn littles_law(tally: &Tally, rate: f64, measured: Nanos, connections: u32) -> Option<Gate> {
    // A failed request holds its connection too, and its time is not in the mean.
    if tally.counts.failed() > 0 || measured == Nanos::ZERO {
        return None;
    }
    let mean = tally.response_time.mean()?;
    let longest = tally.response_time.max()?;
    let tolerance = longest.0 as f64 / measured.0 as f64;
    Some(Gate::LittlesLaw { in_flight: mean.as_secs_f64() * rate, connections, tolerance })
}

fn verdict(gates: &[Gate], is_saturated: bool) -> Verdict {
    let failed = |of_generator: bool| {
        gates.iter().any(|gate| gate.grade() == Grade::Fail && gate.blames_the_generator() == of_generator)
    };
    match () {
        () if failed(false) => Verdict::Invalid,
        () if failed(true) => Verdict::GeneratorBound,
        () if is_saturated => Verdict::ServerBound,
        () => Verdict::Unloaded,
    }
}

/// Judges a sweep's run on `slots` slots, whose connections are kept open (`keep_alive`) or not.
pub fn of_run(run: &Run, slots: u32) -> Judgement {
    let rate = run.completed_rate();
    let mut gates = common(&run.tally, rate, &run.generator);
    // Where a count ends the run, the connections end one after the other, and the law does not hold to the end.
    if run.tally.window.until != Nanos::MAX {
        gates.extend(littles_law(&run.tally, rate, run.measured, run.connections));
    }
    // With as many connections as slots every slot is taken as soon as it is free.
    let is_saturated = run.connections >= slots;
    Judgement { verdict: verdict(&gates, is_saturated), gates, forced: false }
}

/// Judges a load.
pub fn of_load(run: &LoadRun, plan: &LoadPlan) -> Judgement {
    let rate = run.completed_rate();
    let mut gates = common(&run.tally, rate, &run.generator);
    if plan.timing == Timing::Spin {
        // It is awake on purpose.
        gates.retain(|gate| !matches!(gate, Gate::LaneCpu { .. }));
    }
    let counts = &run.tally.counts;
    let is_saturated = if plan.pace.is_open() {
        // A request that waits for a connection, or is skipped for want of one, waits for the server.
        if run.tally.queued.count == 0 && counts.attempted() == counts.total() {
            gates.push(Gate::SentInTime { sent: run.tally.sent_in_window, due: counts.total() });
        }
        run.tally.queued.count > 0 || rate < 0.98 * counts.total() as f64 / run.measured.as_secs_f64().max(1e-9)
    } else {
        if plan.think == Nanos::ZERO && plan.length.is_some() && plan.requests_total.is_none() {
            gates.extend(littles_law(&run.tally, rate, run.measured, plan.connections * plan.pipeline.max(1)));
        }
        // Nobody waits but for the server.
        plan.think == Nanos::ZERO
    };
    Judgement { verdict: verdict(&gates, is_saturated), gates, forced: false }
}

impl Judgement {
    /// The gates that were not passed, the worst first.
    pub fn troubles(&self) -> Vec<&Gate> {
        let mut troubles: Vec<&Gate> = self.gates.iter().filter(|gate| gate.grade() > Grade::Pass).collect();
        troubles.sort_by_key(|gate| std::cmp::Reverse(gate.grade()));
        troubles
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_gate_has_its_limits() {
        let grades = |gates: [Gate; 3]| gates.map(|gate| gate.grade());
        let all = [Grade::Pass, Grade::Warn, Grade::Fail];
        let headroom = |times| Gate::Headroom { ceiling_per_s: times, times };
        assert_eq!(grades([headroom(3.0), headroom(2.0), headroom(1.1)]), all);
        let sent = |sent| Gate::SentInTime { sent, due: 1000 };
        assert_eq!(grades([sent(996), sent(985), sent(970)]), all);
        let lag = |share| Gate::GeneratorLag { p99: Nanos::from_millis(1), of_response_time: share };
        assert_eq!(grades([lag(0.04), lag(0.1), lag(0.3)]), all);
        assert_eq!(Gate::GeneratorLag { p99: Nanos::from_micros(150), of_response_time: 0.9 }.grade(), Grade::Pass);
        let cpu = |share| Gate::LaneCpu { share };
        assert_eq!(grades([cpu(0.5), cpu(0.8), cpu(0.95)]), all);
        let queue = |share| Gate::LaneRunQueue { share };
        assert_eq!(grades([queue(0.01), queue(0.05), queue(0.2)]), all);
        let little = |in_flight| Gate::LittlesLaw { in_flight, connections: 100, tolerance: 0.0 };
        assert_eq!(grades([little(100.5), little(103.0), little(282.0)]), all);
        let steal = |share| Gate::Steal { share };
        assert_eq!(grades([steal(0.0), steal(0.03), steal(0.1)]), all);
    }

    #[test]
    fn wrks_arithmetic_would_be_invalid_here() {
        // Seed 001: 32 connections, 2937 req/s, a printed mean of 41.30 ms.
        let gate = Gate::LittlesLaw { in_flight: 2937.14 * 0.0413, connections: 32, tolerance: 0.0 };
        assert_eq!(verdict(&[gate], true), Verdict::Invalid);
    }

    #[test]
    fn the_generator_is_named_before_the_server() {
        let tight = Gate::Headroom { ceiling_per_s: 1000.0, times: 1.05 };
        assert_eq!(verdict(&[tight], true), Verdict::GeneratorBound);
        assert_eq!(verdict(&[], true), Verdict::ServerBound);
        assert_eq!(verdict(&[], false), Verdict::Unloaded);
    }
}
