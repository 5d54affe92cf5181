//! The classes of requests of a run, each as a run of its own with its shares of the whole.

use model::Run;

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
    /// The classes of a run, those with the largest share of the response time first; none where
    /// its requests are not told apart.
    pub(crate) fn all_of(whole: &'a SummaryRun<'a>) -> Vec<SummaryClass<'a>> {
        let run = whole.run;
        let all = run.tally.due();
        let mut classes: Vec<SummaryClass<'a>> = run
            .tally
            .classes
            .iter()
            .map(|class| SummaryClass {
                shares: ClassShares {
                    name: &class.name,
                    requests: (all > 0).then(|| class.due() as f64 / all as f64),
                    response_time: run.share_of_response_time(class),
                },
                run: run.of_class(class),
                whole,
            })
            .collect();
        let time = |class: &SummaryClass<'_>| class.shares.response_time.unwrap_or_default();
        classes.sort_by(|one, other| time(other).total_cmp(&time(one)));
        classes
    }

    /// Its figures, as columns take them from a run.
    pub(crate) fn view(&self) -> SummaryRun<'_> {
        SummaryRun {
            class: Some(self.shares),
            ..SummaryRun::of(self.whole.label.clone(), &self.run, self.whole.context)
        }
    }
}
