//! Open loop: more was offered than the server can do.

use model::{Nanos, Run, TwoGroups};
use serde::{Deserialize, Serialize};

use super::{Finding, Offered, two_groups_of};
use crate::limits;
use crate::words::{brief, few_digits};

/// Open loop: more was offered than the server can do.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Overloaded {
    /// Requests per second.
    pub offered_per_s: f64,
    /// Responses counted while the load lasted, per second.
    pub completed_per_s: f64,
    /// Growth of the backlog, in requests per second.
    pub backlog_growth_per_s: f64,
    /// Growth of the mean response time, in seconds per second; `None` if it doesn't grow steadily.
    pub growth: Option<f64>,
    /// The fast and the slow requests, if some don't wait at all.
    pub groups: Option<TwoGroups>,
    /// What limits it, such as `its threads are probably the limit`, if that is known. Its evidence
    /// is in the reason about it ([`super::Limited`]).
    #[serde(skip)]
    pub limit: Option<String>,
    /// Whether requests were left without a response, as the run was interrupted: the groups are then of
    /// those that have one.
    #[serde(default)]
    pub has_unfinished: bool,
}

/// Judges a constant rate: the backlog must have grown all the time.
pub(super) fn of(run: &Run, offered: Offered) -> Option<Finding> {
    let statistics = run.statistics.as_ref()?;
    let backlog = statistics.backlog.filter(|_| statistics.is_overload(&run.tally))?;
    offered.is_flat.then(|| {
        Overloaded {
            offered_per_s: offered.per_second,
            completed_per_s: run.completed_under_load(),
            backlog_growth_per_s: backlog.growth,
            growth: statistics.growth(),
            groups: run.tally.response_time.two_groups(),
            limit: run.limit().and_then(limits::clause),
            has_unfinished: run.tally.unfinished_above_all() > 0,
        }
        .into()
    })
}

impl Overloaded {
    /// Growth of the backlog, in requests per second: what a reader gets who subtracts the other two
    /// rates, unless requests that failed make another difference.
    fn growth_in_words(&self) -> f64 {
        /// The backlog is sampled, and responses are counted: they differ by so much of the rate.
        const NEAR: f64 = 0.02;
        let [offered, completed] = [self.offered_per_s, self.completed_per_s].map(f64::round);
        let difference = offered - completed;
        let is_near = (difference - self.backlog_growth_per_s).abs() <= NEAR * offered;
        if is_near && difference >= 1.0 { difference } else { self.backlog_growth_per_s }
    }

    fn requests(&self) -> &'static str {
        if self.has_unfinished { "the requests that were answered" } else { "the requests" }
    }

    pub(super) fn sentence(&self) -> String {
        let Overloaded { offered_per_s, completed_per_s, growth, groups, limit, .. } = self;

        let why = limit.as_ref().map(|limit| format!(", as {limit}")).unwrap_or_default();
        let [offered, completed, backlog] =
            [*offered_per_s, *completed_per_s, self.growth_in_words()].map(few_digits);
        let overload = format!(
            "OVERLOADED: of {offered} requests/s the server completes about {completed}{why}."
        );
        let grows = format!("{overload} The backlog grows by {backlog} requests per second");
        match (growth, groups) {
            (_, Some(groups)) => {
                format!(
                    "{grows}; {}, and the slow ones take longer and longer.",
                    two_groups_of(groups, self.requests())
                )
            }
            // First come, first served, what ends a second later waited so much longer: of each second's
            // requests that part was still to be done. By when they are due it would be more, and the
            // picture beside it goes by when they end.
            (Some(_), None) => format!(
                "{overload} Each second, the backlog grows by {backlog} requests and responses take {} \
                 longer; no percentile describes that.",
                brief(Nanos::from_secs_f64(self.growth_in_words() / offered_per_s.max(1e-9)))
            ),
            (None, None) => format!("{grows}, and the longest response times grow with it."),
        }
    }
}
