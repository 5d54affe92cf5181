//! The classes of requests of a run, each as a run of its own with its shares of the whole.

use judge::class_times;
use model::{ClassTally, Run};

use crate::run_summary::{ClassShares, SummaryRun};

/// A class of a run's requests.
#[derive(Clone, Debug)]
pub(crate) struct SummaryClass<'a> {
    /// Its name, and its shares of all requests.
    pub(crate) shares: ClassShares<'a>,
    /// Its requests and response times.
    run: Run,
    /// The run that it is a part of.
    whole: &'a SummaryRun<'a>,
}

impl<'a> SummaryClass<'a> {
    /// The classes of a run, those with the largest share of the server's time, or else of the
    /// response time, first; none where its requests are not told apart.
    pub(crate) fn all_of(whole: &'a SummaryRun<'a>) -> Vec<SummaryClass<'a>> {
        let run = whole.run;
        let all = run.tally.due();
        let alone = |name: &str| class_times::time_alone(whole.classes_alone(), name);
        let server_time = |class: &ClassTally| {
            if class.due() == 0 {
                return Some(0.0);
            }
            let alone = alone(&class.name)?;
            let is_known = !class_times::is_faster_under_load(&class.name, alone, whole.all_runs());
            is_known.then(|| class_times::server_time(class, alone))
        };
        // If the time of one class is not known, neither is the sum.
        let of_all: Option<f64> = run.tally.classes.iter().map(server_time).sum();
        let mut classes: Vec<SummaryClass<'a>> = run
            .tally
            .classes
            .iter()
            .map(|class| SummaryClass {
                shares: ClassShares {
                    name: &class.name,
                    requests: (all > 0).then(|| class.due() as f64 / all as f64),
                    response_time: run.share_of_response_time(class),
                    alone: alone(&class.name),
                    server_time: server_time(class)
                        .zip(of_all)
                        .filter(|(_, all)| *all > 0.0)
                        .map(|(time, all)| time / all),
                },
                run: run.of_class(class),
                whole,
            })
            .collect();
        let time = |class: &SummaryClass<'_>| {
            class.shares.server_time.or(class.shares.response_time).unwrap_or_default()
        };
        classes.sort_by(|one, other| time(other).total_cmp(&time(one)));
        classes
    }

    /// Says of a class that is faster under load than alone that this hides the shares of the
    /// server's time.
    pub(crate) fn without_server_time(classes: &[SummaryClass<'_>]) -> Option<String> {
        let name = classes.iter().find_map(|class| {
            let ClassShares { name, alone, .. } = class.shares;
            let runs = class.whole.all_runs();
            class_times::is_faster_under_load(name, alone?, runs).then_some(name)
        })?;
        Some(format!(
            "No shares of the server's time: {name} takes less under load than alone, as with a cache."
        ))
    }

    /// Its figures, as columns take them from a run.
    pub(crate) fn view(&self) -> SummaryRun<'_> {
        SummaryRun {
            class: Some(self.shares),
            ..SummaryRun::of(self.whole.label.clone(), &self.run, self.whole.context)
        }
    }
}
