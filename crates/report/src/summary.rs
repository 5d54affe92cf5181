//! The summary of a study: what a person or a script wants of it first, with every percentile and
//! nothing else. `--json` prints it; the answer, Markdown and HTML lay it out, so that all of them
//! say the same.

use judge::named_runs::named_runs;
use judge::{Finding, FindingRole, findings};
use model::Study;
use serde::Serialize;

use crate::comparison::{self, SummaryComparison};
use crate::measured::{self, StudyHead};
pub use crate::run_summary::{SummaryRun, SummaryVerdict};
use judge::Grade;
use judge::expectations::{self, ExpectationResult};
use judge::next::{NextCommand, next_commands};
use judge::trust::{TrustLine, trust};

/// The version of the summary that this code writes.
pub(crate) const SUMMARY_SCHEMA: &str = "longtail.summary/1";

/// A study in short. Times are in milliseconds, rates in requests per second.
#[derive(Clone, Debug, Serialize)]
pub struct Summary<'a> {
    /// `SUMMARY_SCHEMA`.
    pub schema: &'static str,
    /// Which command made the study.
    pub command: &'static str,
    /// What the runs were limited by; of several the worst.
    pub verdict: SummaryVerdict,
    /// Whether every run's figures are the server's.
    pub trusted: bool,
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
    /// A row a run.
    pub runs: Vec<SummaryRun<'a>>,
    /// Conclusions and reasons, with their evidence.
    pub findings: Vec<SummaryFinding>,
    /// What speaks for the figures and against them.
    pub trust: Vec<TrustLine>,
    /// Commands that settle what is open.
    pub next: Vec<NextCommand>,
    /// What a comparison came to.
    pub comparison: Option<SummaryComparison>,
    /// What was expected, and what came of it.
    pub expectations: Vec<ExpectationResult>,
    /// Where the whole study is.
    pub study: Option<String>,
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

impl<'a> Summary<'a> {
    /// Of a study that is kept as `saved`.
    pub fn of(study: &'a Study, saved: Option<String>) -> Summary<'a> {
        let named = named_runs(study);
        let runs = SummaryRun::all_of(study);
        let findings = findings(study);
        let next = next_commands(study, &findings);
        let in_words = |finding: Finding| SummaryFinding {
            role: finding.role(),
            sentence: finding.sentence(),
            finding,
        };
        let findings: Vec<SummaryFinding> = findings.into_iter().map(in_words).collect();
        let comparison = match study {
            Study::Compare(study) => Some(comparison::summary(study)),
            _ => None,
        };
        let conclusions = findings.iter().filter(|finding| finding.role == FindingRole::Conclusion);
        // A comparison's runs that failed their checks are not counted.
        let is_counted = |run: &&SummaryRun<'_>| comparison.is_none() || run.is_the_servers();
        let counted = || runs.iter().filter(is_counted);
        let verdict = counted().map(|run| run.verdict).max();
        let is_trusted = verdict.is_some() && counted().all(SummaryRun::is_the_servers);
        let concluded = conclusions.map(|finding| finding.sentence.clone());
        let sentence = concluded.chain(comparison.as_ref().map(comparison::sentence));
        let sentence = sentence.collect::<Vec<_>>().join(" ");
        let none =
            if runs.is_empty() { SummaryVerdict::NotJudged } else { SummaryVerdict::Invalid };
        let trust = match (study, &comparison) {
            (Study::Compare(compared), Some(comparison)) => {
                let sound = trust(study, &comparison::sound_runs(compared), &[]);
                let (passed, doubts): (Vec<_>, Vec<_>) =
                    sound.into_iter().partition(|line| line.mark == Grade::Passed);
                let own = comparison::trust(compared, comparison);
                passed.into_iter().chain(own).chain(doubts).collect()
            }
            _ => trust(study, &named, &named),
        };
        let head = StudyHead::of(study);
        Summary {
            schema: SUMMARY_SCHEMA,
            command: command(study),
            verdict: verdict.unwrap_or(none),
            trusted: !study.is_claimed() && is_trusted,
            sentence,
            measured: measured::lines(study),
            command_line: head.command_line.to_owned(),
            started_at: head.started_at.to_owned(),
            longtail: head.environment.longtail_version.clone(),
            trust,
            next,
            expectations: expectations::results(study, &named),
            runs,
            findings,
            comparison,
            study: saved,
        }
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
        reasons.map(|finding| finding.sentence.as_str()).chain(of_comparison.map(String::as_str))
    }
}

/// The command that makes such studies.
fn command(study: &Study) -> &'static str {
    match study {
        Study::Load(_) => "load",
        Study::Compare(_) => "compare",
        Study::Sweep(_) | Study::Bodies(_) => "sweep",
    }
}
