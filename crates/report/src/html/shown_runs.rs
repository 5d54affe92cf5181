//! The runs of a sweep that are drawn, and what is said of them.

use model::{Run, SweepStudy};

use crate::html::figure::KeyEntry;
use crate::summary::{Summary, SummaryRun};

/// The runs of a sweep whose figures are the server's.
pub(crate) struct ShownRuns<'a> {
    pub(crate) study: &'a SweepStudy,
    pub(crate) summary: &'a Summary,
    pub(crate) runs: Vec<ShownRun<'a>>,
}

/// A run, and its figures in the summary.
#[derive(Clone, Copy)]
pub(crate) struct ShownRun<'a> {
    pub(crate) run: &'a Run,
    pub(crate) figures: &'a SummaryRun,
}

/// Colours that tell loads apart.
const COLOURS: usize = 8;

impl<'a> ShownRuns<'a> {
    pub(crate) fn of(study: &'a SweepStudy, summary: &'a Summary) -> ShownRuns<'a> {
        let all = study.runs.iter().zip(&summary.runs).map(|(run, figures)| ShownRun { run, figures });
        let is_forced = |run: &Run| run.judgement.as_ref().is_some_and(|judgement| judgement.forced);
        let runs = all.filter(|shown| shown.figures.is_the_servers() || is_forced(shown.run)).collect();
        ShownRuns { study, summary, runs }
    }

    /// The numbers of connections, rising.
    pub(crate) fn loads(&self) -> Vec<u32> {
        let mut loads: Vec<u32> = self.runs.iter().map(|shown| shown.run.connections).collect();
        loads.sort_unstable();
        loads.dedup();
        loads
    }

    /// The repeats of a load.
    pub(crate) fn at(&self, load: u32) -> impl Iterator<Item = ShownRun<'a>> + '_ {
        self.runs.iter().copied().filter(move |shown| shown.run.connections == load)
    }

    /// The first run of each load, for figures in which repeats have no room.
    pub(crate) fn first_of_each(&self) -> Vec<&'a Run> {
        self.loads().into_iter().filter_map(|load| Some(self.at(load).next()?.run)).collect()
    }

    /// The class of a run's colour: light for the least load, dark for the most.
    pub(crate) fn class(&self, run: &Run) -> String {
        let loads = self.loads();
        let place = loads.iter().position(|load| *load == run.connections).unwrap_or(0);
        format!("load{}", (place * (COLOURS - 1)).checked_div(loads.len() - 1).unwrap_or(COLOURS - 1))
    }

    /// The colours of the loads.
    pub(crate) fn key(&self) -> Vec<KeyEntry> {
        let entry = |run: &Run| KeyEntry::new(self.class(run), format!("{} ({})", run.connections, run.in_multiples()));
        self.first_of_each().into_iter().map(entry).collect()
    }

    /// Why a figure has nothing to show.
    pub(crate) fn why_none(&self, otherwise: String) -> String {
        if self.study.runs.is_empty() {
            "there is no run".to_owned()
        } else if self.runs.is_empty() {
            "no run's figures are the server's".to_owned()
        } else {
            otherwise
        }
    }

    /// Which runs are not in the plots.
    pub(crate) fn not_drawn(&self) -> Option<String> {
        let names = self.summary.runs.iter().filter(|run| !run.is_the_servers()).map(|run| run.label.as_str());
        let names: Vec<&str> = names.collect();
        let is_any = !names.is_empty() && self.runs.len() < self.study.runs.len();
        is_any.then(|| format!("Not drawn, because the figures are not the server's: {}.", names.join(", ")))
    }
}
