//! What each class of a run's requests takes alone, and so how much of the server's time it takes
//! and how long it waits.

use model::statistics::STANDARD_ERRORS;
use model::theory::ClassAlone;
use model::{ClassTally, Nanos, Outcome, Run};

/// A class needs at least this many responses, alone or under load, for its mean to be used.
const LEAST: u64 = 5;
/// A class whose mean under load is below this share of its mean alone was measured alone in another
/// state of the server, as with a cache that was still empty.
const FASTER: f64 = 0.9;
/// If no more than this share of the requests failed, the good ones are like all.
const NEGLIGIBLE: f64 = 0.01;

/// How long a request of this class takes alone, on average; `None` if too few were measured.
pub fn time_alone(classes_alone: &[ClassAlone], name: &str) -> Option<Nanos> {
    let class = classes_alone.iter().find(|class| class.name == name)?;
    class.mean.filter(|mean| *mean > Nanos::ZERO && class.responses >= LEAST)
}

/// Whether requests of this class took notably less time in one of the runs than alone, beyond
/// chance, so that the time alone says nothing about the work of a request under load.
pub fn is_faster_under_load(name: &str, alone: Nanos, runs: &[Run]) -> bool {
    let is_faster = |run: &Run| {
        let class = run.tally.classes.iter().find(|class| class.name == name)?;
        let times = &class.response_time;
        let mean = times.mean().filter(|_| times.count() >= LEAST)?.as_secs_f64();
        let deviation = times.standard_deviation()?.as_secs_f64();
        let at_most = mean + STANDARD_ERRORS * deviation / (times.count() as f64).sqrt();
        Some(at_most < FASTER * alone.as_secs_f64())
    };
    runs.iter().filter_map(is_faster).any(|is_so| is_so)
}

/// The server's time, in seconds, that the requests of a class took, each as long as `alone`. Refused
/// ones (503, 429) took none, and others that failed no longer than the fastest failure, as they may
/// have waited before.
pub fn server_time(class: &ClassTally, alone: Nanos) -> f64 {
    let failed = class.failed_response_time.count();
    let refused = class.counts.sum_of(Outcome::is_refusal);
    // The fastest failure may be a refused request.
    let of_failed = if refused > 0 {
        alone
    } else {
        class.failed_response_time.min().unwrap_or_default().min(alone)
    };
    let others = class.due().saturating_sub(failed);
    let failed = failed.saturating_sub(refused);
    others as f64 * alone.as_secs_f64() + failed as f64 * of_failed.as_secs_f64()
}

/// How much work a good response of a run was, as a multiple of that of an average request of the
/// mix: 1 unless one class failed more often than another. `None` where that cannot be told.
pub(crate) fn work_of_good(classes_alone: &[ClassAlone], run: &Run) -> Option<f64> {
    let classes = &run.tally.classes;
    let counts = &run.tally.counts;
    if classes.len() < 2 || counts.failed() as f64 <= NEGLIGIBLE * counts.total() as f64 {
        return Some(1.0);
    }
    let mean = |requests: &dyn Fn(&ClassTally) -> u64| {
        let mut time = 0.0;
        let mut all = 0;
        for class in classes.iter().filter(|class| class.due() > 0) {
            let alone = time_alone(classes_alone, &class.name)?;
            time += requests(class) as f64 * alone.as_secs_f64();
            all += requests(class);
        }
        (all > 0).then(|| time / all as f64)
    };
    Some(mean(&|class| class.counts.good())? / mean(&ClassTally::due)?)
}

/// A class of a run's requests, and how long one takes alone.
pub(crate) struct ClassTime<'a> {
    pub(crate) name: &'a str,
    pub(crate) tally: &'a ClassTally,
    /// Requests that were due.
    pub(crate) requests: f64,
    pub(crate) alone: Nanos,
}

impl ClassTime<'_> {
    /// The server's time that it took, in seconds.
    pub(crate) fn server_time(&self) -> f64 {
        server_time(self.tally, self.alone)
    }

    /// How much longer a response took than alone, on average; `None` without a response.
    pub(crate) fn wait(&self) -> Option<Nanos> {
        Some(self.tally.response_time.mean()?.saturating_sub(self.alone))
    }
}

/// The classes of a run, which is one of `runs`; `None` unless it has several and it is known of each
/// what it takes alone.
pub(crate) fn times_of_classes<'a>(
    classes_alone: &[ClassAlone],
    run: &'a Run,
    runs: &[Run],
) -> Option<Vec<ClassTime<'a>>> {
    let sent = run.tally.classes.iter().filter(|class| class.due() > 0);
    let times: Option<Vec<ClassTime<'a>>> = sent
        .map(|tally| {
            let alone = time_alone(classes_alone, &tally.name)
                .filter(|alone| !is_faster_under_load(&tally.name, *alone, runs))?;
            Some(ClassTime { name: &tally.name, tally, requests: tally.due() as f64, alone })
        })
        .collect();
    times.filter(|times| times.len() > 1)
}

/// Sweeps of a mix, for the tests of what is found in them.
#[cfg(test)]
pub(crate) mod fixtures {
    use model::theory::ClassAlone;
    use model::{
        ClassTally, Exchange, Judgement, Limit, Nanos, Outcome, Strength, SweepStudy, Tally,
        Verdict, Window,
    };

    /// What requests of a class take alone, and wait, in ms.
    #[derive(Clone, Copy)]
    pub(crate) struct AloneAndWait {
        pub(crate) alone: u64,
        pub(crate) wait: u64,
    }

    /// The canonical sweep (its requests take 200 ms on average and wait for a thread), with one
    /// search among five requests at the highest load.
    pub(crate) fn with_searches(posts: AloneAndWait, searches: AloneAndWait) -> SweepStudy {
        let mut study = testkit::study::canonical();
        let names = ["/posts", "/search"];
        let both = [posts, searches];
        study.classes_alone = (0..2)
            .map(|class| ClassAlone {
                name: names[class].to_owned(),
                requests: 21,
                responses: 20,
                mean: Some(Nanos::from_millis(both[class].alone)),
            })
            .collect();
        let limit = Limit::Threads {
            slots: study.server.slots(),
            connections: 80,
            at_once: None,
            busy: None,
            unhindered: None,
            strength: Strength::Is,
            computes: None,
        };
        let run = study.runs.last_mut().expect("it has runs");
        let mut classes = names.map(ClassTally::new);
        let mut whole = Tally::new(Window { from: Nanos::ZERO, until: Nanos::MAX }, 1);
        for n in 0..run.tally.counts.total() {
            let class = usize::from(n % 5 == 0);
            let ended = Nanos::from_millis(both[class].alone + both[class].wait);
            let [due, sent] = [Nanos::ZERO; 2];
            let outcome = Outcome::Answered(200);
            let exchange = Exchange { due, sent, ended, received_bytes: 1, outcome };
            whole.record_of(Some(&mut classes[class]), &exchange, 0);
        }
        run.tally.classes = classes.to_vec();
        run.judgement = Some(Judgement {
            verdict: Verdict::ServerBound,
            decided_by: None,
            checks: Vec::new(),
            limit: Some(limit),
            forced: false,
        });
        study
    }
}

#[cfg(test)]
mod tests {
    use model::{Exchange, Histogram, Tally, Window};

    use super::*;

    /// 100 requests of 10 ms and 100 of 100 ms, of which 90 are refused at once.
    fn with_refusals() -> Run {
        let mut classes = ["/posts", "/search"].map(ClassTally::new);
        let window = Window { from: Nanos::ZERO, until: Nanos::MAX };
        let mut tally = Tally::new(window, 1);
        for n in 0..200_u64 {
            let is_search = n % 2 == 0;
            let is_refused = is_search && n >= 20;
            let millis = if is_refused { 30 } else { [10, 100][usize::from(is_search)] };
            let outcome = Outcome::Answered(if is_refused { 503 } else { 200 });
            let [due, sent] = [Nanos::ZERO; 2];
            let ended = Nanos::from_millis(millis);
            let exchange = Exchange { due, sent, ended, received_bytes: 1, outcome };
            tally.record_of(Some(&mut classes[usize::from(is_search)]), &exchange, 0);
        }
        tally.add_classes(&classes);
        tally.classes = classes.to_vec();
        Run::recorded(1, tally, Nanos::ZERO, Nanos::ZERO)
    }

    fn alone(name: &str, millis: u64, responses: u64) -> ClassAlone {
        let mean = Some(Nanos::from_millis(millis));
        ClassAlone { name: name.to_owned(), requests: responses, responses, mean }
    }

    #[test]
    fn a_few_responses_that_happened_to_be_short_show_no_cache() {
        let alone = Nanos::from_millis(100);
        let is_faster = |millis: [u64; 5]| {
            let mut run = with_refusals();
            let posts = &mut run.tally.classes[0].response_time;
            *posts = Histogram::default();
            for time in millis {
                posts.record(Nanos::from_millis(time));
            }
            is_faster_under_load("/posts", alone, &[run])
        };
        assert!(!is_faster([10, 20, 50, 90, 240]), "82 ms on average, by chance");
        assert!(is_faster([10, 11, 10, 11, 10]));
    }

    #[test]
    fn a_refused_request_is_no_work() {
        let run = with_refusals();
        let known = [alone("/posts", 10, 20), alone("/search", 100, 20)];
        let times = times_of_classes(&known, &run, std::slice::from_ref(&run)).unwrap();
        let times: Vec<f64> = times.iter().map(ClassTime::server_time).collect();
        assert!((times[0] - 1.0).abs() < 1e-6 && (times[1] - 1.0).abs() < 1e-6, "{times:?}");
        // The good ones take 18.2 ms on average, those of the mix 55 ms.
        let work = work_of_good(&known, &run).unwrap();
        assert!((work - 18.18 / 55.0).abs() < 0.001, "{work}");
        assert_eq!(work_of_good(&known[..1], &run), None);
    }

    #[test]
    fn a_time_alone_is_known_from_a_few_responses_and_no_longer_than_under_load() {
        assert_eq!(time_alone(&[alone("/posts", 10, 4)], "/posts"), None);
        let run = with_refusals();
        let runs = std::slice::from_ref(&run);
        let empty_cache = [alone("/posts", 12, 20), alone("/search", 100, 20)];
        assert!(is_faster_under_load("/posts", Nanos::from_millis(12), runs));
        assert!(!is_faster_under_load("/posts", Nanos::from_millis(10), runs));
        assert!(times_of_classes(&empty_cache, &run, runs).is_none());
    }
}
