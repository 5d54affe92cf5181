//! What the runs come to: for each arm its figures, and their ratios to the bare arm's of the same round. Arithmetic alone.

use model::paired::{PairedAnswer, PairedRatio, median};
use serde::Serialize;
use sweep::{Arm, Overhead, OverheadPlan, Sample};

/// A lane that is busier has not much more to give: rates are its own then.
const BUSY: f64 = 0.9;

/// A figure of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Metric {
    /// CPU time of the server for each answer.
    ServerCpu,
    /// CPU time of the generator, and of what looks on from inside it.
    GeneratorCpu,
    /// Good answers a second.
    Rate,
}

impl Metric {
    /// In the order in which they are to be looked at.
    pub(crate) const ALL: [Metric; 3] = [Metric::ServerCpu, Metric::GeneratorCpu, Metric::Rate];

    /// Its words.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Metric::ServerCpu => "server CPU",
            Metric::GeneratorCpu => "generator CPU",
            Metric::Rate => "requests/s",
        }
    }

    fn of(self, sample: &Sample) -> Option<f64> {
        match self {
            Metric::ServerCpu => sample.server_ns_per_request(),
            Metric::GeneratorCpu => sample.generator_ns_per_request(),
            Metric::Rate => Some(sample.rate_per_s),
        }
    }
}

/// What an arm's figure is.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(crate) struct Figure {
    pub(crate) metric: Metric,
    /// Median of the runs: ns for each request, or requests a second.
    pub(crate) median: Option<f64>,
    /// To the bare arm; absent of the bare arm itself.
    pub(crate) ratio: Option<PairedRatio>,
    /// What the ratio tells; absent of the bare arm and its control.
    pub(crate) answer: Option<PairedAnswer>,
}

/// An arm and its figures.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct OfArm {
    pub(crate) name: String,
    pub(crate) runs: u32,
    pub(crate) figures: [Figure; 3],
}

#[cfg(test)]
impl OfArm {
    fn figure(&self, metric: Metric) -> &Figure {
        &self.figures[metric as usize]
    }
}

/// All of it.
#[derive(Debug)]
pub(crate) struct OverheadFindings<'a> {
    pub(crate) plan: &'a OverheadPlan,
    pub(crate) overhead: &'a Overhead,
    pub(crate) arms: Vec<OfArm>,
    pub(crate) warnings: Vec<String>,
}

impl<'a> OverheadFindings<'a> {
    /// Of these runs.
    pub(crate) fn of(plan: &'a OverheadPlan, overhead: &'a Overhead) -> OverheadFindings<'a> {
        let place = |arm: &Arm| plan.arms.iter().position(|other| other == arm);
        let (bare, control) = (place(&Arm::Bare), place(&Arm::Control));
        let ratio = |arm: usize, metric: Metric| {
            let value = |arm: usize, round: u32| {
                overhead.samples.iter().find(|s| s.arm == arm && s.round == round).and_then(|s| metric.of(s))
            };
            let pairs = (1..=plan.rounds).filter_map(|round| Some((value(arm, round)?, value(bare?, round)?)));
            PairedRatio::of_pairs(pairs)
        };
        let of_arm = |(at, arm): (usize, &Arm)| {
            let samples = || overhead.samples.iter().filter(move |sample| sample.arm == at);
            let figure = |metric: Metric| {
                let mut values: Vec<f64> = samples().filter_map(|sample| metric.of(sample)).collect();
                values.sort_by(f64::total_cmp);
                let own = (*arm != Arm::Bare).then(|| ratio(at, metric)).flatten();
                let floor = control.and_then(|control| ratio(control, metric));
                let answer = own.filter(|_| *arm != Arm::Control).map(|own| own.answer(floor.as_ref()));
                Figure { metric, median: median(&values), ratio: own, answer }
            };
            OfArm { name: arm.name(), runs: samples().count() as u32, figures: Metric::ALL.map(figure) }
        };
        let arms: Vec<OfArm> = plan.arms.iter().enumerate().map(of_arm).collect();
        let warnings = warnings(plan, overhead, &arms, control);
        OverheadFindings { plan, overhead, arms, warnings }
    }
}

/// What spoils the figures, a line each.
fn warnings(plan: &OverheadPlan, overhead: &Overhead, arms: &[OfArm], control: Option<usize>) -> Vec<String> {
    let mut warnings = Vec::new();
    if let Some(control) = control.and_then(|at| arms.get(at)) {
        for figure in &control.figures {
            if figure.ratio.is_some_and(|ratio| ratio.answer(None) == PairedAnswer::Differs) {
                warnings.push(format!(
                    "the control differs from the bare arm in {}, although both are the same: something drifts, and no difference as small as that means anything",
                    figure.metric.name()
                ));
            }
        }
    }
    let of = |arm: &Arm| plan.arms.iter().position(|other| other == arm);
    let samples = |arm: usize| overhead.samples.iter().filter(move |sample| sample.arm == arm);
    let mut busy: Vec<f64> = overhead.samples.iter().filter_map(|sample| sample.lane_busy).collect();
    busy.sort_by(f64::total_cmp);
    if let Some(busy) = median(&busy).filter(|busy| *busy > BUSY) {
        warnings.push(format!(
            "the generator was busy {} % of the time: rates are partly its own; go by the CPU time",
            report::number::percent(busy)
        ));
    }
    let failed: u64 = overhead.samples.iter().map(|sample| sample.failed).sum();
    if failed > 0 {
        warnings.push(format!(
            "{} failed, and may have taken less than the others",
            report::number::count_of(failed, "request")
        ));
    }
    if overhead.samples.iter().any(|sample| sample.server_cpu.is_none()) {
        warnings.push(
            "the server's CPU time is not known of every run: the kernel does not tell it, or a process ended"
                .to_owned(),
        );
    }
    if let Some(anatomy) = of(&Arm::Anatomy)
        && samples(anatomy).any(|sample| !sample.is_stamped)
    {
        warnings
            .push("anatomy: the app did not say when it began and ended, so only the question was measured".to_owned());
    }
    if let Some(statsd) = of(&Arm::Statsd) {
        let (mut packets, mut answers) = (0, 0);
        for sample in samples(statsd) {
            packets += sample.packets.unwrap_or(0);
            answers += sample.answers;
        }
        if packets < answers {
            warnings.push(format!("statsd: {packets} packets for {answers} answers: the kernel dropped the rest, which is part of their cost"));
        }
    }
    warnings
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use model::{Nanos, Probe, ServerKind, ServerPlan, StreamPlan};

    pub(crate) fn plan(rounds: u32) -> OverheadPlan {
        let sweep = testkit::study::canonical().plan;
        OverheadPlan {
            server: ServerPlan { kind: ServerKind::Puma { command: None }, ..sweep.server },
            stream: StreamPlan { path: Some("/".to_owned()), ..sweep.stream },
            connections: None,
            arms: vec![Arm::Bare, Arm::Control, Arm::Probe(Probe::Proc), Arm::Statsd],
            rounds,
            seed: 3,
        }
    }

    /// Each round is slower than the one before, which no ratio shows.
    pub(crate) fn overhead(rounds: u32) -> Overhead {
        let mut samples = Vec::new();
        for round in 1..=rounds {
            let drift = 1.0 + f64::from(round);
            // A control that is 2 % off to either side, proc within that, statsd 25 % dearer.
            let sign = if round % 2 == 0 { 1.0 } else { -1.0 };
            for (arm, factor) in [1.0, 1.0 + 0.02 * sign, 1.0 + 0.01 * sign, 1.25].into_iter().enumerate() {
                samples.push(Sample {
                    arm,
                    round,
                    rate_per_s: 4000.0 / drift / factor,
                    answers: 1000,
                    failed: 0,
                    server_cpu: Some(Nanos((200_000_000.0 * drift * factor).round() as u64)),
                    generator_cpu: Nanos(10_000_000),
                    lane_busy: Some(0.2),
                    packets: (arm == 3).then_some(1001),
                    is_stamped: false,
                });
            }
        }
        let server = testkit::study::canonical().server;
        Overhead { server, connections: 10, samples, interrupted: false }
    }

    #[test]
    fn ratios_are_of_pairs_and_drift_is_in_none_of_them() {
        let (plan, overhead) = (plan(6), overhead(6));
        let found = OverheadFindings::of(&plan, &overhead);
        let statsd = found.arms[3].figure(Metric::ServerCpu);
        let ratio = statsd.ratio.unwrap();
        assert_eq!((ratio.median, ratio.low, ratio.high), (1.25, Some(1.25), Some(1.25)));
        assert_eq!(statsd.answer, Some(PairedAnswer::Differs));
        let rate = found.arms[3].figure(Metric::Rate);
        assert!((rate.ratio.unwrap().median - 0.8).abs() < 1e-12 && rate.answer == Some(PairedAnswer::Differs));
        assert_eq!(found.arms[3].figure(Metric::GeneratorCpu).answer, Some(PairedAnswer::Noise));
        for metric in [Metric::ServerCpu, Metric::Rate] {
            assert_eq!(found.arms[2].figure(metric).answer, Some(PairedAnswer::Noise));
        }
        let control = found.arms[1].figure(Metric::ServerCpu);
        assert_eq!(
            (control.answer, control.ratio.map(|ratio| (ratio.low, ratio.high))),
            (None, Some((Some(0.98), Some(1.02))))
        );
        // 200 us times the middle of the drift 2 to 7.
        assert_eq!(found.arms[0].figure(Metric::ServerCpu).median, Some(900_000.0));
        assert_eq!((found.arms[0].figure(Metric::Rate).ratio, found.arms[0].runs), (None, 6));
        assert_eq!(found.warnings, Vec::<String>::new());
    }

    #[test]
    fn five_rounds_tell_nothing() {
        let (plan, overhead) = (plan(5), overhead(5));
        let found = OverheadFindings::of(&plan, &overhead);
        let figure = found.arms[3].figure(Metric::ServerCpu);
        assert_eq!((figure.answer, figure.ratio.unwrap().low), (Some(PairedAnswer::TooFewRounds), None));
    }

    #[test]
    fn a_round_that_is_not_whole_has_no_pair() {
        let (plan, mut overhead) = (plan(7), overhead(7));
        overhead.samples.retain(|sample| sample.round < 7 || sample.arm != 0);
        let found = OverheadFindings::of(&plan, &overhead);
        assert_eq!(found.arms[3].figure(Metric::Rate).ratio.unwrap().rounds, 6);
        assert_eq!(found.arms[3].runs, 7);
    }

    #[test]
    fn what_spoils_it_is_said() {
        let (mut plan, mut overhead) = (plan(6), overhead(6));
        plan.arms[2] = Arm::Anatomy;
        for sample in &mut overhead.samples {
            sample.lane_busy = Some(0.97);
            sample.packets = sample.packets.map(|_| 900);
            if sample.arm == 1 {
                sample.rate_per_s *= 0.5;
                sample.failed = 1;
                sample.server_cpu = None;
            }
        }
        let warnings = OverheadFindings::of(&plan, &overhead).warnings;
        for part in [
            "control differs from the bare arm in requests/s",
            "busy 97.0 %",
            "6 requests failed",
            "CPU time is not known",
            "only the question",
            "5400 packets for 6000",
        ] {
            assert!(warnings.iter().any(|line| line.contains(part)), "{part}: {warnings:?}");
        }
        assert_eq!(warnings.len(), 6);
    }
}
