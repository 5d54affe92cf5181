//! Findings: what a study concludes about the server. Each has a file with its evidence, when it
//! holds, and its sentence.
//!
//! If the figures don't decide a question, the finding says so. Nothing but that is concluded from
//! a run that failed its checks.

mod accepts_late;
mod app_queue_time;
mod app_varies;
mod body_range;
mod changes_with_time;
mod claimed;
mod classes_wait_alike;
mod closed_loop;
mod collapsing;
mod event_cost;
mod failed;
mod falls_behind;
mod good_statuses;
mod heavy_class;
mod in_order;
mod keeps_up;
mod limited;
mod never_served;
mod not_measured;
mod one_load;
mod others_compute;
mod overloaded;
mod peaked;
mod rates_unclear;
mod saturated;
mod served_in_turns;
mod server_ended;
mod slow_clients_beside;
mod spread;
mod stalled;
mod still_rising;
mod streamed_bodies;
mod undecided;
mod uneven_dealing;
mod uneven_workers;
mod unfair;
mod wait_in_accept_queue;
mod wait_in_server;
mod waits_for_clients;

use model::{
    Arrivals, Diagnostic, Histogram, Limit, LoadPlan, Nanos, Pace, PercentileTime, Profile, Run,
    Study, SweepStudy, TwoGroups,
};
use serde::{Deserialize, Serialize};

pub use accepts_late::AcceptsLate;
pub use app_queue_time::AppQueueTime;
pub use app_varies::AppVaries;
pub use body_range::BodyRange;
pub use changes_with_time::ChangesWithTime;
pub use claimed::Claimed;
pub use classes_wait_alike::ClassesWaitAlike;
pub use closed_loop::ClosedLoop;
pub use collapsing::Collapsing;
pub use event_cost::EventCost;
pub(crate) use failed::failure;
pub use failed::{Failed, FailureCount};
pub use falls_behind::FallsBehind;
pub use good_statuses::{GoodStatuses, only_status, page_not_measured};
pub use heavy_class::{HeavyClass, WithoutClass};
pub use in_order::{InOrder, OrderEvidence};
pub use keeps_up::KeepsUp;
pub use limited::Limited;
pub use never_served::NeverServed;
pub use not_measured::NotMeasured;
pub use one_load::OneLoad;
pub use others_compute::OthersCompute;
pub use others_compute::{busy_others, others_beyond};
pub use overloaded::Overloaded;
pub use peaked::Peaked;
pub use rates_unclear::RatesUnclear;
pub use saturated::Saturated;
pub use served_in_turns::ServedInTurns;
pub use server_ended::{ServerEnded, server_ended};
pub use slow_clients_beside::SlowClientsBeside;
pub use spread::Spread;
pub use stalled::{Stalled, StallsOf};
pub use still_rising::StillRising;
pub use streamed_bodies::StreamedBodies;
pub use undecided::Undecided;
pub use uneven_dealing::UnevenDealing;
pub use uneven_workers::UnevenWorkers;
pub use unfair::Unfair;
pub use wait_in_accept_queue::WaitInAcceptQueue;
pub use wait_in_server::WaitInServer;
pub use waits_for_clients::WaitsForClients;

use crate::sweep_points::{self, SweepPoint};
use crate::words::{brief, share};
use model::number;

/// Whether a finding answers the user's question, or explains the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FindingRole {
    /// It answers the question.
    Conclusion,
    /// It says why.
    Reason,
}

/// Declares [`Finding`]: each finding once, by the name of its evidence, with its role.
macro_rules! findings_and_roles {
    ($($(#[$doc:meta])* $name:ident: $role:ident,)*) => {
        /// A conclusion and its evidence.
        #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
        #[serde(tag = "code", rename_all = "snake_case")]
        #[expect(clippy::large_enum_variant, reason = "a study has a few of them")]
        pub enum Finding {
            $($(#[$doc])* $name($name),)*
        }

        impl Finding {
            /// Whether it answers the question, or explains the answer.
            pub fn role(&self) -> FindingRole {
                match self {
                    $(Finding::$name(_) => FindingRole::$role,)*
                }
            }

            /// One sentence, or two. Every figure in it is in the finding.
            pub fn sentence(&self) -> String {
                match self {
                    $(Finding::$name(evidence) => evidence.sentence(),)*
                }
            }
        }

        $(impl From<$name> for Finding {
            fn from(evidence: $name) -> Finding {
                Finding::$name(evidence)
            }
        })*
    };
}

findings_and_roles! {
    /// Good responses that are not the page, or not all alike.
    GoodStatuses: Conclusion,
    /// The server ended in the middle of a load.
    ServerEnded: Conclusion,
    /// These runs measured something other than the server.
    NotMeasured: Conclusion,
    /// What an event in the middle of the run cost.
    EventCost: Conclusion,
    /// From this load on, more connections bring no more throughput.
    Saturated: Conclusion,
    /// Throughput still rises with the number of connections, up to the highest load tried.
    StillRising: Conclusion,
    /// The runs are too short to tell whether throughput still rises.
    RatesUnclear: Conclusion,
    /// Only one load was tried and no limit was seen, so it is unknown whether more load brings
    /// more throughput.
    OneLoad: Conclusion,
    /// Again and again, the server answered nothing for a while and then several requests at once.
    Stalled: Conclusion,
    /// The server becomes slower or faster over time, or with the requests it has served, rather
    /// than with load.
    ChangesWithTime: Conclusion,
    /// The server completes less at the highest load than at a lower one.
    Collapsing: Conclusion,
    /// A few requests wait many times as long as the others, and the app is not the reason.
    Unfair: Conclusion,
    /// All requests take about as long as if served first come, first served.
    InOrder: Conclusion,
    /// Requests of each class wait about as long, whatever they take alone.
    ClassesWaitAlike: Conclusion,
    /// Response times are spread out; the figures don't say whether the server or the app is the
    /// reason.
    Spread: Conclusion,
    /// Some requests are far slower than the others, and without a run in which none waits it is
    /// unknown whether the app is the reason.
    Undecided: Conclusion,
    /// The app takes many times longer for some requests than for most, even when none waits for
    /// another.
    AppVaries: Conclusion,
    /// Closed loop: what was completed over connections that never pause.
    ClosedLoop: Conclusion,
    /// Open loop: all that was offered was sent and completed.
    KeepsUp: Conclusion,
    /// Open loop: more was offered than the server can do.
    Overloaded: Conclusion,
    /// Open loop with a changing rate: more was offered than the server can do.
    Peaked: Conclusion,
    /// Open loop: less was completed than was offered, for an unknown reason.
    FallsBehind: Conclusion,
    /// Bodies: which are served at the lowest rate, and which at the highest.
    BodyRange: Conclusion,
    /// Another generator sent the load: the figures are its own.
    Claimed: Conclusion,
    /// Requests failed.
    Failed: Conclusion,
    /// What limits the server.
    Limited: Reason,
    /// A class of requests takes far more of the server's time than its share of the requests.
    HeavyClass: Reason,
    /// The server serves one connection several times before it takes the next.
    ServedInTurns: Reason,
    /// Requests wait in the kernel's accept queue.
    WaitInAcceptQueue: Reason,
    /// Requests wait in the server's own queue, until a thread takes them.
    WaitInServer: Reason,
    /// Requests wait in the accept queue while threads are free.
    AcceptsLate: Reason,
    /// Threads of an old Puma wait for clients while connections wait to be accepted.
    WaitsForClients: Reason,
    /// Bodies take most of the time.
    StreamedBodies: Reason,
    /// The workers hold unequal numbers of connections.
    UnevenDealing: Reason,
    /// The workers serve unequal shares of the requests.
    UnevenWorkers: Reason,
    /// Some connections get no response at all.
    NeverServed: Reason,
    /// Other processes use the CPUs, and requests wait for one.
    OthersCompute: Reason,
    /// Slow clients held connections beside the load.
    SlowClientsBeside: Reason,
    /// The app computed its queue time, as an APM does.
    AppQueueTime: Reason,
}

/// The findings of a study, the most important first.
pub fn findings(study: &Study) -> Vec<Finding> {
    let of_figures = match study {
        study if study.is_claimed() => claimed::of(study).into_iter().collect(),
        Study::Sweep(study) => of_sweep(study),
        Study::Load(study) => {
            let mut findings = of_load(&study.run, &study.plan);
            findings.extend(heavy_class::of_load(study));
            findings.extend(slow_clients_beside::of(study));
            findings.extend(app_queue_time::of(study));
            findings
        }
        Study::Bodies(study) => body_range::of(study).into_iter().collect(),
        // A comparison's conclusions are its estimates, in `comparison`.
        // Those of a search for a capacity are in `capacity`.
        Study::Compare(_) | Study::Capacity(_) => Vec::new(),
    };
    // What the responses were comes before how fast they were.
    good_statuses::of(study).into_iter().chain(of_figures).collect()
}

fn of_sweep(study: &SweepStudy) -> Vec<Finding> {
    let points = sweep_points::of(study);
    let slots = study.server.slots();
    let mut findings = not_measured::of_sweep(study);
    let with_time = changes_with_time::of(study);
    let changes = with_time.is_some();
    findings.extend(with_time);
    findings.extend(throughput(study, &points, changes));
    findings.extend(stalled::of_sweep(study, &points));
    findings.extend(order_of_service(study, &points));
    findings.extend(failed::of_sweep(study));
    findings.extend(limited::of_sweep(&points, slots));
    findings.extend(heavy_class::of(study, &points));
    findings.extend(points.iter().rev().find_map(|point| never_served::of(point.run)));
    findings.extend(served_in_turns::of(study));
    findings.extend(points.iter().rev().find_map(wait_in_accept_queue::of));
    findings.extend(points.iter().rev().find_map(|point| wait_in_server::of(study, point)));
    findings.extend(points.iter().rev().find_map(|point| accepts_late::of(study, point)));
    findings.extend(points.iter().rev().find_map(streamed_bodies::of));
    findings.extend(uneven_dealing::of(study, &points));
    findings.extend(points.iter().rev().find_map(uneven_workers::of));
    findings.extend(points.last().and_then(|point| others_compute::of(point.run, Some(slots))));
    findings
}

/// How throughput changes with load: the first of these findings that holds. A server that
/// `changes` over time is not judged by load.
fn throughput(study: &SweepStudy, points: &[SweepPoint<'_>], changes: bool) -> Option<Finding> {
    if changes {
        return None;
    }
    let variation = sweep_points::variation(study, points);
    collapsing::of(points, variation)
        .or_else(|| one_load::of(points))
        .or_else(|| still_rising::of(points, variation))
        .or_else(|| saturated::of(study, points))
        .or_else(|| rates_unclear::of(points, variation))
}

/// If at least this share of the slow requests is there when none waits for another, the app makes
/// them slow.
const OF_THE_APP: f64 = 0.25;

/// How long requests wait at the highest load, compared with serving them in order.
fn order_of_service(study: &SweepStudy, points: &[SweepPoint<'_>]) -> Option<Finding> {
    let slots = study.server.slots();
    let last = points.last().filter(|point| point.run.connections > slots)?;
    if never_served::of(last.run).is_some() {
        return None;
    }
    // Delays by the network or a dropped connect say nothing about the order of service. Nor do
    // response times if the server takes more at once than was stated: then requests don't wait for
    // slots.
    if matches!(
        last.limit(),
        Some(
            Limit::Network { .. }
                | Limit::AcceptQueue { .. }
                | Limit::MoreThanStated { .. }
                | Limit::Refusals { .. }
        )
    ) {
        return None;
    }
    let in_order = || {
        let by_class = classes_wait_alike::of(study, last);
        by_class.or_else(|| in_order::of(last)).or_else(|| spread::of(last))
    };
    let is_complete = last.run.tally.counts.censored() == 0;
    let class = most_frequent_class(last.run);
    let groups = comparable_times(last.run, class).two_groups().filter(|_| is_complete);
    let Some(groups) = groups else {
        return in_order();
    };
    let alone = points.iter().rev().find(|point| point.run.connections <= slots);
    let Some(alone) = alone else {
        // Without a run in which no request waits, only turns explain the slow requests.
        if !has_turns(last.run) {
            return Some(undecided::of(last, &groups));
        }
        return unfair::of(last, &groups, class).or_else(in_order);
    };
    let times_alone = comparable_times(alone.run, class);
    let by_app = times_alone.share_above(groups.cut) / groups.slow_share;
    if by_app >= OF_THE_APP && !stalled::explain(study, alone.run, groups.cut) {
        return app_varies::of(alone, times_alone, class);
    }
    unfair::of(last, &groups, class).or_else(in_order)
}

/// The class with the most responses, where requests are told apart.
fn most_frequent_class(run: &Run) -> Option<&str> {
    let most = run.tally.classes.iter().max_by_key(|class| class.response_time.count());
    most.map(|class| class.name.as_str())
}

/// Response times of requests that may be expected to take equally long: those of this class, or of
/// all requests where they are not told apart.
fn comparable_times<'r>(run: &'r Run, class: Option<&str>) -> &'r Histogram {
    let class = run.tally.classes.iter().find(|other| Some(other.name.as_str()) == class);
    class.map_or(&run.tally.response_time, |class| &class.response_time)
}

fn has_turns(run: &Run) -> bool {
    run.warnings.iter().any(|warning| matches!(warning, Diagnostic::ServedInTurns { .. }))
}

fn of_load(run: &Run, plan: &LoadPlan) -> Vec<Finding> {
    let mut findings = Vec::new();
    let ended = server_ended(run);
    let event = EventCost::of(run, plan.load.timeout);
    // The event's sentence names those that failed from it on.
    let named = event.as_ref().map_or(0, |event| event.failed + event.failed_later);
    if let Some(not_measured) = not_measured::of_load(run) {
        findings.push(not_measured);
        // What became of processes and requests is known all the same.
        findings.extend(event.map(Finding::from));
    } else if let Some(event) = event {
        // The findings below are about the server's usual behaviour, which an event interrupts.
        findings.push(event.into());
    } else if run.tally.counts.good() > 0 && ended.is_none() {
        let of_pace = of_pace(run, plan);
        let stalled = stalled::of_load(run);
        // A server that stood still explains why some requests are slow, and so does an overload,
        // whose sentence has both groups.
        let is_explained = stalled.is_some() || matches!(of_pace, Finding::Overloaded(_));
        let undecided = if is_explained { None } else { undecided::of_load(run, plan) };
        let waits_for_clients = waits_for_clients::of_load(run, &of_pace);
        findings.push(of_pace);
        findings.extend(stalled);
        findings.extend(undecided);
        if !waits_for_clients.as_ref().is_some_and(|waits| waits.is_only_limit) {
            findings.extend(limited::of_load(run, plan));
        }
        findings.extend(waits_for_clients.map(Finding::from));
        findings.extend(streamed_bodies::of_run(run).map(Finding::from));
        findings.extend(never_served::of(run));
        findings.extend(others_compute::of(run, None));
    }
    findings.extend(ended.map(Finding::from));
    if run.tally.counts.failed() > named {
        findings.extend(failed::of(Vec::new(), &[run], plan.load.timeout));
    }
    findings
}

/// What an open loop offered.
#[derive(Clone, Copy, Debug)]
struct Offered {
    /// Requests per second.
    per_second: f64,
    /// Whether the rate is constant.
    is_flat: bool,
    /// The constant rate that was asked for, if chance decides how many requests come.
    asked_per_second: Option<f64>,
}

fn of_pace(run: &Run, plan: &LoadPlan) -> Finding {
    let Pace::Open { profile, arrivals, .. } = &plan.load.pace else {
        return closed_loop::of(run, plan);
    };
    let asked_per_second = match (profile, arrivals) {
        (Profile::Flat { rate }, Arrivals::Poisson | Arrivals::Uniform) => Some(rate.per_second()),
        _ => None,
    };
    let offered = Offered {
        per_second: run.offered_rate(&plan.load.pace).unwrap_or_default(),
        is_flat: matches!(profile, Profile::Flat { .. }),
        asked_per_second,
    };
    peaked::of(run, offered)
        .or_else(|| overloaded::of(run, offered))
        .or_else(|| keeps_up::of(run, offered))
        .unwrap_or_else(|| falls_behind::of(run, offered))
}

/// The highest percentile that there are enough responses for.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct HighestPercentile {
    /// The percentile.
    #[serde(flatten)]
    pub at: PercentileTime,
    /// The ends of its 95 % interval, if that is wide or has one end only.
    #[serde(default, rename = "roughly_ns", skip_serializing_if = "Option::is_none")]
    pub roughly: Option<[Option<Nanos>; 2]>,
}

impl HighestPercentile {
    fn of(run: &Run) -> Option<HighestPercentile> {
        [0.99, 0.95, 0.9, 0.5].into_iter().find_map(|quantile| {
            let time = run.response_time(quantile).time()?;
            let roughly = crate::trust::rough_interval(run, quantile);
            Some(HighestPercentile { at: PercentileTime { quantile, time }, roughly })
        })
    }

    /// `; 99 of 100 are answered within 70.3 ms`
    fn clause(self) -> String {
        let PercentileTime { quantile, time } = self.at;
        let percent = number::fixed(quantile * 100.0, 0);
        let of = if percent == "50" { "half".to_owned() } else { format!("{percent} of 100") };
        let within = match self.roughly {
            None => brief(time),
            Some([low, high]) => {
                let range = match (low, high) {
                    (Some(low), Some(high)) => format!("{} to {}", brief(low), brief(high)),
                    (Some(low), None) => format!("at least {}", brief(low)),
                    (None, Some(high)) => format!("at most {}", brief(high)),
                    (None, None) => "its interval is not known".to_owned(),
                };
                format!("about {} ({range})", brief(time))
            }
        };
        format!("; {of} are answered within {within}")
    }
}

fn two_groups(groups: &TwoGroups) -> String {
    two_groups_of(groups, "the requests")
}

/// `the requests`, or those of a class.
fn requests_of(class: Option<&str>) -> String {
    class.map_or("the requests".to_owned(), |class| format!("the {class} requests"))
}

/// The same of these requests, such as those of a class.
fn two_groups_of(groups: &TwoGroups, requests: &str) -> String {
    // Round both shares alike, so that they add up to 100 %.
    let slow = if groups.slow_share >= 0.05 {
        (groups.slow_share * 100.0).round() / 100.0
    } else {
        groups.slow_share
    };
    let [fast_part, slow_part] = [1.0 - slow, slow].map(share);
    let [fast_mean, slow_mean] = [groups.fast_mean, groups.slow_mean].map(brief);
    format!(
        "{fast_part} of {requests} take {fast_mean} and {slow_part} take {slow_mean}, on average"
    )
}
