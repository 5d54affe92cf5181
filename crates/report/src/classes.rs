//! The classes of requests of a run, each as a run of its own with its shares of the whole.

use model::Run;

use crate::run_summary::{RunContext, SummaryRun};

/// A class of a run's requests.
#[derive(Clone, Debug)]
pub(crate) struct SummaryClass<'a> {
    /// Its name.
    pub(crate) name: &'a str,
    /// Its requests and response times.
    run: Run,
    context: RunContext<'a>,
    /// Its share of the requests, 0 to 1.
    pub(crate) share: Option<f64>,
    /// Its share of the response times of all requests, 0 to 1.
    pub(crate) share_of_response_time: Option<f64>,
}

impl<'a> SummaryClass<'a> {
    /// The classes of a run, those with the largest share of the response time first; none where
    /// its requests are not told apart.
    pub(crate) fn all_of(run: &SummaryRun<'a>) -> Vec<SummaryClass<'a>> {
        let all = run.run.tally.due();
        let mut classes: Vec<SummaryClass<'a>> = run
            .run
            .tally
            .classes
            .iter()
            .map(|class| SummaryClass {
                name: &class.name,
                run: run.run.of_class(class),
                context: run.context,
                share: (all > 0).then(|| class.due() as f64 / all as f64),
                share_of_response_time: run.run.share_of_response_time(class),
            })
            .collect();
        let time = |class: &SummaryClass<'_>| class.share_of_response_time.unwrap_or_default();
        classes.sort_by(|one, other| time(other).total_cmp(&time(one)));
        classes
    }

    /// Its figures, as columns take them from a run.
    pub(crate) fn view(&self) -> SummaryRun<'_> {
        SummaryRun::of(self.name.to_owned(), &self.run, self.context)
    }
}
