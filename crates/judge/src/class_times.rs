//! What each class of a run's requests takes alone, and so how much of the server's time it takes
//! and how long it waits.

use model::theory::ClassAlone;
use model::{ClassTally, Nanos, Run};

/// A class needs at least this many responses alone for its mean to be used.
const LEAST_ALONE: u64 = 5;

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
        self.requests * self.alone.as_secs_f64()
    }

    /// How much longer a response took than alone, on average; `None` without a response.
    pub(crate) fn wait(&self) -> Option<Nanos> {
        Some(self.tally.response_time.mean()?.saturating_sub(self.alone))
    }
}

/// The classes of a run; `None` unless it has several and it is known of each what it takes alone.
pub(crate) fn times_of_classes<'a>(
    classes_alone: &[ClassAlone],
    run: &'a Run,
) -> Option<Vec<ClassTime<'a>>> {
    let sent = run.tally.classes.iter().filter(|class| class.due() > 0);
    let times: Option<Vec<ClassTime<'a>>> = sent
        .map(|tally| {
            let alone = classes_alone
                .iter()
                .find(|alone| alone.name == tally.name && alone.responses >= LEAST_ALONE)?;
            let alone = alone.mean.filter(|mean| *mean > Nanos::ZERO)?;
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
