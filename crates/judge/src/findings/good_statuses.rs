//! Good responses that are not the page, or not all alike: redirects (Rails' `force_ssl`, a login
//! page), 304, several statuses. They count as good, but their rate says nothing about the page.

use std::collections::BTreeMap;

use model::{Redirect, Run, Study};
use serde::{Deserialize, Serialize};

use super::Finding;
use crate::named_runs::named_runs;
use crate::words::{counted, listed};

/// Good responses that are not the page, or not all alike.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GoodStatuses {
    /// Which runs have them; empty if all have.
    pub runs: Vec<String>,
    /// Requests of these runs without a good response.
    pub failed: u64,
    /// Their good responses by status, or by class if another generator reports only that.
    pub statuses: BTreeMap<String, u64>,
    /// Where redirects lead.
    pub redirect: Option<Redirect>,
    /// Whether they lead from http to https.
    pub leads_to_tls: bool,
}

/// More runs than this are counted instead of named.
const MOST_NAMES: usize = 6;

/// A run's good responses by status.
fn good(run: &Run) -> BTreeMap<String, u64> {
    let is_good = |status: &str| status.starts_with(['2', '3']);
    run.statuses().into_iter().filter(|(status, n)| is_good(status) && *n > 0).collect()
}

/// These runs' good responses by status.
fn sum(runs: &[&Run]) -> BTreeMap<String, u64> {
    let mut sum = BTreeMap::new();
    for (status, requests) in runs.iter().flat_map(|run| good(run)) {
        *sum.entry(status).or_default() += requests;
    }
    sum
}

/// The status that all good responses of a study had; `None` if they had several, or there were
/// none.
pub fn only_status(study: &Study) -> Option<String> {
    let mut statuses = sum(&study.runs()).into_keys();
    statuses.next().filter(|_| statuses.next().is_none())
}

/// What to say where all good responses of a study were something else than the page, such as a
/// redirect.
pub fn page_not_measured(study: &Study) -> Option<String> {
    only_status(study).filter(|status| status.starts_with('3'))?;
    match of(study)? {
        Finding::GoodStatuses(statuses) => Some(statuses.sentence()),
        _ => None,
    }
}

/// Judges any study, whichever generator sent its load.
pub(super) fn of(study: &Study) -> Option<Finding> {
    let all = sum(&study.runs());
    let (usual, _) = all.iter().max_by_key(|(_, requests)| **requests)?;
    let is_notable = |status: &String| status.starts_with('3') || status != usual;
    let was_meant = |status: u16| all.len() == 1 && all.contains_key(&status.to_string());
    let is_plain = match study {
        Study::Load(study) if study.plan.expected_status.is_some_and(was_meant) => return None,
        Study::Load(study) => !study.plan.tls,
        Study::Sweep(_) | Study::Bodies(_) | Study::Compare(_) | Study::Capacity(_) => false,
    };
    let named = named_runs(study);
    let concerned = || named.iter().filter(|named| good(named.run).keys().any(is_notable));
    let runs: Vec<&Run> = concerned().map(|named| named.run).collect();
    if runs.is_empty() {
        return None;
    }
    let names = concerned().map(|named| named.name.clone());
    let redirects = runs.iter().filter_map(|run| run.tally.redirect.clone());
    let redirect = redirects.reduce(|known, more| known.and(&more));
    let location = redirect.as_ref().and_then(|redirect| redirect.location.as_deref());
    let leads_to_tls = is_plain && location.is_some_and(|to| to.starts_with("https://"));
    Some(Finding::GoodStatuses(GoodStatuses {
        runs: if runs.len() < named.len() { names.collect() } else { Vec::new() },
        failed: runs.iter().filter_map(|run| run.failed()).sum(),
        statuses: sum(&runs),
        redirect,
        leads_to_tls,
    }))
}

/// `301`, or a class that another generator reports.
fn is_redirect(status: &str) -> bool {
    status == "3xx" || status.parse().is_ok_and(Redirect::is_one)
}

impl GoodStatuses {
    pub(super) fn sentence(&self) -> String {
        let good = if self.failed > 0 { "good responses" } else { "responses" };
        let at = self.at();
        let only = self.statuses.first_key_value().filter(|_| self.statuses.len() == 1);
        let Some((status, requests)) = only else {
            return format!("The good responses{at} had several statuses: {}.", self.kinds());
        };
        let all = match *requests {
            1 => format!("The only {}{at} was", good.trim_end_matches('s')),
            requests => format!("All {requests} {good}{at} were"),
        };
        match status.as_str() {
            "304" => {
                format!("{all} 304 (not modified): this measures a response without the page.")
            }
            status if is_redirect(status) => {
                let to = self.leads(" ");
                let remedy = if self.leads_to_tls {
                    " Load that address; or send what a TLS-terminating proxy would: -H 'X-Forwarded-Proto: https'."
                } else {
                    ""
                };
                format!("{all} {status}{to}: this measures the redirect, not the page.{remedy}")
            }
            status if status.starts_with('3') => {
                format!("{all} {status}: this does not measure the page.")
            }
            status => format!("{all} {status}, unlike those of other runs."),
        }
    }

    /// ` at 2x and 4x`.
    fn at(&self) -> String {
        match self.runs.len() {
            0 => String::new(),
            1..=MOST_NAMES => format!(" at {}", listed(&self.runs)),
            all => format!(" of {}", counted(all as u64, "run")),
        }
    }

    /// Where redirects lead, such as `to https://h/`, after the text `lead`.
    fn leads(&self, lead: &str) -> String {
        match &self.redirect {
            None => String::new(),
            Some(Redirect { location: None, .. }) => format!("{lead}without a Location"),
            Some(Redirect { location: Some(to), has_others: false, .. }) => {
                format!("{lead}to {to}")
            }
            Some(Redirect { location: Some(to), has_others: true, .. }) => {
                format!("{lead}to several places, such as {to}")
            }
        }
    }

    /// `1900 were 200 and 100 were 302`, and where redirects lead.
    fn kinds(&self) -> String {
        let kind = |(status, requests): (&String, &u64)| {
            let verb = if *requests == 1 { "was" } else { "were" };
            let is_example =
                self.redirect.as_ref().is_some_and(|it| it.status.to_string() == *status);
            let to = if is_example { self.leads(" ") } else { String::new() };
            format!("{requests} {verb} {status}{to}")
        };
        listed(&self.statuses.iter().map(kind).collect::<Vec<_>>())
    }
}

#[cfg(test)]
mod tests {
    use model::{Counts, Outcome};

    use super::*;

    fn answered(statuses: &[(u16, u64)]) -> Counts {
        let mut counts = Counts::default();
        for (status, requests) in statuses {
            (0..*requests).for_each(|_| counts.record(Outcome::Answered(*status)));
        }
        counts
    }

    /// The sentence about a load with these responses.
    fn sentence(statuses: &[(u16, u64)], redirect: Option<Redirect>) -> Option<String> {
        let mut study = testkit::load::closed();
        study.run.tally.counts = answered(statuses);
        study.run.tally.redirect = redirect;
        of(&Study::Load(study.into())).map(|finding| finding.sentence())
    }

    #[test]
    fn responses_that_are_not_only_the_page_are_described() {
        let to = |location: &str, has_others| {
            Some(Redirect::of(302, Some(location.as_bytes()), has_others))
        };
        for (statuses, redirect, expected) in [
            (&[(200, 9)][..], None, None),
            (&[(204, 9)], None, None),
            (&[(200, 9), (503, 9)], None, None),
            (&[(503, 9)], None, None),
            (
                &[(302, 1)],
                to("/login", false),
                Some(
                    "The only response was 302 to /login: this measures the redirect, not the page.",
                ),
            ),
            (
                &[(302, 9), (500, 1)],
                to("/login?n=1", true),
                Some(
                    "All 9 good responses were 302 to several places, such as /login?n=1: this measures the redirect, not the page.",
                ),
            ),
            (
                &[(200, 8), (302, 1)],
                to("/login", false),
                Some(
                    "The good responses had several statuses: 8 were 200 and 1 was 302 to /login.",
                ),
            ),
            (
                &[(200, 8), (201, 2), (204, 3)],
                None,
                Some(
                    "The good responses had several statuses: 8 were 200, 2 were 201 and 3 were 204.",
                ),
            ),
        ] {
            assert_eq!(sentence(statuses, redirect).as_deref(), expected, "{statuses:?}");
        }
    }

    #[test]
    fn runs_whose_status_differs_are_named_in_every_kind_of_study() {
        for mut study in testkit::every_study() {
            let is_one = study.runs().len() < 2;
            let last = match &mut study {
                Study::Sweep(study) => study.runs.last_mut(),
                Study::Bodies(study) => study.runs.last_mut().map(|row| &mut row.run),
                Study::Compare(study) => study.runs.last_mut().map(|row| &mut row.run),
                Study::Load(_) | Study::Capacity(_) => None,
            };
            let Some(last) = last.filter(|run| !is_one && run.claim.is_none()) else { continue };
            last.tally.counts = answered(&[(302, 2)]);
            let sentence = of(&study).map(|finding| finding.sentence()).unwrap_or_default();
            assert!(sentence.starts_with("All 2 responses at "), "{sentence}");
            assert!(
                sentence.ends_with(" were 302: this measures the redirect, not the page."),
                "{sentence}"
            );
        }
    }
}
