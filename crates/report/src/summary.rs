//! The summary of a study: verdict, conclusions and figures of each run. `--json` prints it; the
//! answer, Markdown and HTML lay it out, so that all of them say the same.

use judge::named_runs::{NamedRun, named_runs};
use judge::{Finding, FindingRole, findings};
use model::Study;
use serde::Serialize;

use crate::capacity::{self, SummaryCapacity};
use crate::comparison::{self, SummaryComparison};
use crate::measured::{self, StudyHead};
pub use crate::run_summary::{SummaryRun, SummaryVerdict};
use judge::Grade;
use judge::ResponseCheckResult;
use judge::checks::hint_beside_keep_alive;
use judge::expectations::{self, ExpectationResult};
use judge::next::{NextCommand, next_commands};
use judge::trust::{TrustLine, trust};

/// Name and version of the schema.
pub(crate) const SUMMARY_SCHEMA: &str = "longtail.summary/1";

/// A study in short. In JSON times are in milliseconds, rates in requests per second.
#[derive(Clone, Debug, Serialize)]
pub struct Summary<'a> {
    /// Always `SUMMARY_SCHEMA`.
    pub schema: &'static str,
    /// Which command made the study.
    pub command: &'static str,
    /// What limited the runs: the worst of their verdicts.
    pub verdict: SummaryVerdict,
    /// Whether the figures of every run are the server's.
    pub trusted: bool,
    /// Whether the user, or the end of the server, cut it short.
    pub interrupted: bool,
    /// The conclusion.
    pub sentence: String,
    /// What was measured, and how: two lines.
    pub measured: Vec<String>,
    /// The command line that repeats it.
    pub command_line: String,
    /// When it began, as RFC 3339 in UTC.
    pub started_at: String,
    /// longtail's version.
    pub longtail: String,
    /// The runs.
    pub runs: Vec<SummaryRun<'a>>,
    /// Conclusions and reasons, with their evidence.
    pub findings: Vec<SummaryFinding>,
    /// What speaks for the figures and against them.
    pub trust: Vec<TrustLine>,
    /// Commands that answer what is open.
    pub next: Vec<NextCommand>,
    /// The result of a comparison.
    pub comparison: Option<SummaryComparison>,
    /// The result of a search for a capacity; its runs are its trials.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub capacity: Option<SummaryCapacity>,
    /// The thresholds, and whether each was met.
    pub expectations: Vec<ExpectationResult>,
    /// The checks of the responses of a load, and whether each holds.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub response_checks: Vec<ResponseCheckResult>,
    /// The file that has the whole study.
    pub study: Option<String>,
}

/// Whether something that the user demanded holds.
#[derive(Clone, Copy, Debug)]
pub struct Headline<'a> {
    /// Whether it does.
    pub result: HeadlineResult,
    /// The same in words, with the figure.
    pub sentence: &'a str,
}

/// Whether a demand is met, the worst first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum HeadlineResult {
    /// It is missed.
    Missed,
    /// It is not known.
    CannotTell,
    /// It is met.
    Met,
}

/// A finding, in a sentence and with its evidence.
#[derive(Clone, Debug, Serialize)]
pub struct SummaryFinding {
    /// `conclusion` or `reason`.
    pub role: FindingRole,
    /// In words.
    pub sentence: String,
    /// The evidence, with its code.
    #[serde(flatten)]
    pub finding: Finding,
}

impl SummaryFinding {
    fn of(finding: Finding) -> SummaryFinding {
        SummaryFinding { role: finding.role(), sentence: finding.sentence(), finding }
    }
}

impl<'a> Summary<'a> {
    /// The summary of a study that was saved as `saved`.
    pub fn of(study: &'a Study, saved: Option<String>) -> Summary<'a> {
        let named = named_runs(study);
        let runs = SummaryRun::all_of(study);
        let findings = findings(study);
        let next = next_commands(study, &findings);
        let findings: Vec<SummaryFinding> = findings.into_iter().map(SummaryFinding::of).collect();
        let comparison = match study {
            Study::Compare(study) => Some(comparison::summary(study)),
            Study::Sweep(_) | Study::Bodies(_) | Study::Load(_) | Study::Capacity(_) => None,
        };
        let capacity = match study {
            Study::Capacity(study) => Some(capacity::summary(study)),
            Study::Sweep(_) | Study::Bodies(_) | Study::Load(_) | Study::Compare(_) => None,
        };
        // Runs of a comparison, and trials of a search, that failed their checks are left out.
        let counts_all = comparison.is_none() && capacity.is_none();
        let counted: Vec<&SummaryRun<'_>> =
            runs.iter().filter(|run| counts_all || run.counts()).collect();
        let worst = |runs: &[&SummaryRun<'_>]| runs.iter().map(|run| run.verdict).max();
        let verdict = match worst(&counted) {
            // A search of which no trial counts is as its trials are.
            None if capacity.is_some() => worst(&runs.iter().collect::<Vec<_>>()),
            verdict => verdict,
        };
        let is_trusted = !counted.is_empty() && counted.iter().all(|run| run.counts());
        let none =
            if runs.is_empty() { SummaryVerdict::NotJudged } else { SummaryVerdict::Invalid };
        let head = StudyHead::of(study);
        Summary {
            schema: SUMMARY_SCHEMA,
            command: command(study),
            verdict: verdict.unwrap_or(none),
            trusted: !study.is_claimed() && is_trusted,
            interrupted: judge::is_cut_short(study),
            sentence: match study {
                Study::Capacity(study) => capacity::sentence(study),
                Study::Sweep(_) | Study::Bodies(_) | Study::Load(_) | Study::Compare(_) => {
                    judge::sentence_so_far(study, conclusions(&findings, comparison.as_ref()))
                }
            },
            measured: measured::lines(study),
            command_line: head.command_line.to_owned(),
            started_at: head.started_at.to_owned(),
            longtail: head.environment.longtail_version.clone(),
            trust: trust_lines(study, &named, comparison.as_ref()),
            next,
            expectations: match study {
                Study::Capacity(study) => judge::capacity::expectations(study),
                Study::Sweep(_) | Study::Bodies(_) | Study::Load(_) | Study::Compare(_) => {
                    expectations::results(study, &named)
                }
            },
            response_checks: judge::response_checks(study),
            runs,
            findings,
            comparison,
            capacity,
            study: saved,
        }
    }

    /// What decides the exit code, the worst first: thresholds and checks of the responses.
    pub fn headlines(&self) -> Vec<Headline<'_>> {
        let expected = self.expectations.iter().map(|it| Headline {
            result: match it.result {
                "met" => HeadlineResult::Met,
                "missed" => HeadlineResult::Missed,
                _ => HeadlineResult::CannotTell,
            },
            sentence: &it.sentence,
        });
        let checks = self.response_checks.iter().map(|it| Headline {
            result: if it.holds { HeadlineResult::Met } else { HeadlineResult::Missed },
            sentence: &it.sentence,
        });
        let mut sorted: Vec<Headline<'_>> = expected.chain(checks).collect();
        sorted.sort_by_key(|headline| headline.result);
        sorted
    }

    /// As JSON, on lines of its own.
    ///
    /// # Panics
    /// Never: every value of a summary has a place in JSON.
    pub fn json(&self) -> String {
        // A figure of a run, or the evidence of a finding, is a line.
        crate::json::indented(self, 2)
    }

    /// The reasons, in words.
    pub fn reasons(&self) -> impl Iterator<Item = &str> {
        let reasons = self.findings.iter().filter(|finding| finding.role == FindingRole::Reason);
        let of_comparison = self.comparison.iter().flat_map(|comparison| &comparison.reasons);
        let of_capacity = self.capacity.iter().flat_map(|capacity| &capacity.reasons);
        let others = of_comparison.chain(of_capacity).map(String::as_str);
        reasons.map(|finding| finding.sentence.as_str()).chain(others)
    }
}

/// All conclusions, each in its sentences.
fn conclusions(findings: &[SummaryFinding], comparison: Option<&SummaryComparison>) -> Vec<String> {
    let conclusions = findings.iter().filter(|finding| finding.role == FindingRole::Conclusion);
    let sentences = conclusions.map(|finding| finding.sentence.clone());
    sentences.chain(comparison.map(comparison::sentence)).collect()
}

/// What speaks for the figures and against them. A comparison trusts the runs that passed their
/// checks, and has checks of its own.
fn trust_lines(
    study: &Study,
    named: &[NamedRun<'_>],
    comparison: Option<&SummaryComparison>,
) -> Vec<TrustLine> {
    if let Study::Capacity(study) = study {
        return capacity::trust(study);
    }
    let (Study::Compare(compared), Some(comparison)) = (study, comparison) else {
        // The percentiles over all steps are not shown.
        let has_steps = named.iter().any(|named| !named.run.steps.is_empty());
        return trust(study, named, if has_steps { &[] } else { named });
    };
    let mut of_runs = trust(study, &comparison::sound_runs(compared), &[]);
    if comparison::compares_keep_alive(compared) {
        for line in &mut of_runs {
            line.hint = line.hint.map(hint_beside_keep_alive);
        }
    }
    let (mut lines, doubts): (Vec<TrustLine>, Vec<TrustLine>) =
        of_runs.into_iter().partition(|line| line.mark == Grade::Passed);
    lines.extend(comparison::trust(compared, comparison));
    lines.extend(doubts);
    // An answer has room for a few: after what holds for every run the worst doubts come first.
    if let Some((_, others)) = lines.split_first_mut() {
        others.sort_by_key(|line| std::cmp::Reverse(line.mark));
    }
    lines
}

/// The command that makes such studies.
fn command(study: &Study) -> &'static str {
    match study {
        Study::Load(_) => "load",
        Study::Compare(_) => "compare",
        Study::Capacity(_) => "capacity",
        Study::Sweep(_) | Study::Bodies(_) => "sweep",
    }
}
