//! A class of requests takes far more of the server's time than its share of the requests.

use model::plan::quoted;
use model::{Limit, LoadStudy, Nanos, Strength, SweepStudy};
use serde::{Deserialize, Serialize};

use super::Finding;
use crate::class_times::{ClassTime, times_of_classes};
use crate::sweep_points::SweepPoint;
use crate::words::{brief, load, share};

/// A class of requests takes far more of the server's time than its share of the requests.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HeavyClass {
    /// The class.
    pub name: String,
    /// Its share of the requests, 0 to 1.
    pub of_requests: f64,
    /// Its share of the server's time, by what a request of each class takes alone.
    pub of_time: f64,
    /// How long a request of it takes alone.
    #[serde(rename = "alone_ns")]
    pub alone: Nanos,
    /// The same of all others, on average.
    #[serde(rename = "others_alone_ns")]
    pub others_alone: Nanos,
    /// What leaving it out would change; `None` if theory does not fit what was measured, and for a
    /// load, where the server's threads are not known.
    pub without: Option<WithoutClass>,
}

/// What theory says of a load without a class of its requests.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct WithoutClass {
    /// The load, connections / slots.
    pub multiple: f64,
    /// The mean response time there with the class: connections / throughput (Little's law).
    #[serde(rename = "with_ns")]
    pub with: Nanos,
    /// And without it: connections x what the others take alone / slots.
    #[serde(rename = "without_ns")]
    pub without: Nanos,
}

/// A heavy class takes at least this share of the server's time.
const OF_TIME: f64 = 0.4;
/// That share is also at least this many times its share of the requests.
const MORE_THAN_REQUESTS: f64 = 2.0;
/// Theory fits where it gives the measured mean with the class to within this share.
const FITS: f64 = 0.15;

/// Requests of a load have waited if a response takes longer than a request alone by at least this
/// share of the time alone.
const WAITED: f64 = 0.5;

/// Judges the highest load, if requests waited for a thread there: otherwise a heavy class takes
/// nothing from the others.
pub(super) fn of(study: &SweepStudy, points: &[SweepPoint<'_>]) -> Option<Finding> {
    let slots = study.server.slots();
    let last = points.last().filter(|point| point.run.connections > slots)?;
    let is_limited_by_threads = matches!(
        last.limit(),
        Some(Limit::Threads { strength: Strength::Probably | Strength::Is, .. })
    );
    if !is_limited_by_threads {
        return None;
    }
    let classes = times_of_classes(&study.classes_alone, last.run, &study.runs)?;
    let found = heaviest(&classes)?;
    let per_slot = f64::from(last.run.connections) / f64::from(slots);
    let measured = last.in_order().as_secs_f64();
    let fits = (per_slot * mean_alone(&classes) / measured - 1.0).abs() <= FITS;
    let without = fits.then(|| WithoutClass {
        multiple: last.multiple,
        with: last.in_order(),
        without: Nanos::from_secs_f64(per_slot * found.others_alone.as_secs_f64()),
    });
    Some(HeavyClass { without, ..found }.into())
}

/// Judges a load before which each class was measured alone, if requests waited in it. The number
/// of threads is not known, so theory says nothing about the load without the class.
pub(super) fn of_load(study: &LoadStudy) -> Option<Finding> {
    let run = &study.run;
    let classes = times_of_classes(&study.classes_alone, run, std::slice::from_ref(run))?;
    let mean = run.tally.response_time.mean()?.as_secs_f64();
    let has_waited = mean >= (1.0 + WAITED) * mean_alone(&classes);
    if !has_waited || !run.is_evidence() {
        return None;
    }
    heaviest(&classes).map(Finding::from)
}

/// What a request takes alone on average, in seconds.
fn mean_alone(classes: &[ClassTime<'_>]) -> f64 {
    let requests: f64 = classes.iter().map(|class| class.requests).sum();
    classes.iter().map(ClassTime::server_time).sum::<f64>() / requests
}

/// The class with the most of the server's time, if that is far more than its share of the
/// requests.
fn heaviest(classes: &[ClassTime<'_>]) -> Option<HeavyClass> {
    let requests: f64 = classes.iter().map(|class| class.requests).sum();
    let time: f64 = classes.iter().map(ClassTime::server_time).sum();
    let heaviest = classes.iter().max_by(|a, b| a.server_time().total_cmp(&b.server_time()))?;
    let of_requests = heaviest.requests / requests;
    let of_time = heaviest.server_time() / time;
    if of_time < OF_TIME || of_time < MORE_THAN_REQUESTS * of_requests {
        return None;
    }
    let others_alone = (time - heaviest.server_time()) / (requests - heaviest.requests);
    Some(HeavyClass {
        name: heaviest.name.to_owned(),
        of_requests,
        of_time,
        alone: heaviest.alone,
        others_alone: Nanos::from_secs_f64(others_alone),
        without: None,
    })
}

impl HeavyClass {
    pub(super) fn sentence(&self) -> String {
        let HeavyClass { name, of_requests, of_time, alone, others_alone, without } = self;
        let first = format!(
            "{name}: {} of the requests, {} of the server's time: alone, one takes {}, the others {} \
             on average.",
            share(*of_requests),
            share(*of_time),
            brief(*alone),
            brief(*others_alone)
        );
        let Some(WithoutClass { multiple, with, without }) = without else { return first };
        format!(
            "{first} Without it, the others would take about {} on average at {} in place of {}, by \
             theory; --without {} measures that.",
            brief(*without),
            load(*multiple),
            brief(*with),
            quoted(name)
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::class_times::fixtures::{AloneAndWait, with_searches};
    use crate::sweep_points;

    fn found(study: &SweepStudy) -> Option<HeavyClass> {
        match of(study, &sweep_points::of(study)) {
            Some(Finding::HeavyClass(found)) => Some(found),
            _ => None,
        }
    }

    fn times(alone: u64) -> AloneAndWait {
        AloneAndWait { alone, wait: 300 }
    }

    #[test]
    fn a_class_that_takes_most_of_the_time_is_named_with_what_theory_says_without_it() {
        let found = found(&with_searches(times(50), times(800))).unwrap();
        assert_eq!(found.name, "/search");
        assert!((found.of_requests - 0.2).abs() < 0.01 && (found.of_time - 0.8).abs() < 0.01);
        let without = found.without.expect("a fifth of 800 ms and four of 50 ms are 200 ms");
        let part = without.without.as_secs_f64() / without.with.as_secs_f64();
        assert!((part - 0.25).abs() < 0.05, "{without:?}");
        let sentence = found.sentence();
        assert!(sentence.contains("20 % of the requests, 80 % of the server's time"), "{sentence}");
        assert!(sentence.contains("by theory"), "{sentence}");
    }

    #[test]
    fn nothing_is_said_without_a_heavy_class_or_where_no_request_waits_for_a_thread() {
        assert_eq!(found(&with_searches(times(180), times(280))), None);
        let heavy = || with_searches(times(50), times(800));
        let mut not_threads = heavy();
        let judgement = not_threads.runs.last_mut().unwrap().judgement.as_mut().unwrap();
        judgement.limit = None;
        assert_eq!(found(&not_threads), None);
        let mut unknown = heavy();
        unknown.classes_alone.pop();
        assert_eq!(found(&unknown), None);
    }

    #[test]
    fn of_a_load_that_was_measured_alone_the_class_is_named_if_requests_waited() {
        let sweep = with_searches(times(50), times(800));
        let mut study = testkit::load::closed();
        study.run.tally.classes = sweep.runs.last().unwrap().tally.classes.clone();
        assert_eq!(of_load(&study), None, "not measured alone");
        study.classes_alone = sweep.classes_alone.clone();
        let mean = study.run.tally.response_time.mean().unwrap();
        for (part, is_found) in [(2, true), (1, false)] {
            // Together they take 200 ms alone.
            for class in &mut study.classes_alone {
                class.mean = class.mean.map(|alone| Nanos(alone.0 * mean.0 / 200_000_000 / part));
            }
            assert_eq!(of_load(&study).is_some(), is_found, "1/{part} of what a response takes");
            study.classes_alone = sweep.classes_alone.clone();
        }
    }

    #[test]
    fn theory_that_does_not_fit_the_measurement_is_not_told() {
        // Together they would take 83 ms, and the run says 200 ms.
        let found = found(&with_searches(times(20), times(336))).unwrap();
        assert_eq!(found.without, None);
        assert!(!found.sentence().contains("theory"), "{}", found.sentence());
    }
}
