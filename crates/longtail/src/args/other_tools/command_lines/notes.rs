//! What is said below our line: what was left out, what differs, and what may fail.

use judge::next::load_longer_by;
use judge::words::listed;
use model::objective::ObjectiveFigure;
use model::{Interval, Nanos, Objective};

use super::translation::Translation;
use super::value_behind;
use crate::args::other_tools::flags::{OtherTool, OwnType};

/// Bytes of a sentence that still reads well.
const LONGEST_SENTENCE: usize = 240;

/// Bytes of one of several sentences: two lines of a terminal.
const LONGEST_LINE: usize = 180;

impl Translation {
    /// What is said below our line, the most consequential first.
    pub(super) fn notes(&self) -> Vec<String> {
        // Of a flag that is given twice.
        let once = |kinds: &[&Vec<String>]| {
            let mut notes: Vec<String> = Vec::new();
            for note in kinds.iter().copied().flatten() {
                if !notes.contains(note) {
                    notes.push(note.clone());
                }
            }
            notes
        };
        // What is lost stands before what only differs.
        let mut notes = once(&[
            &self.to_fill,
            &self.fails,
            &self.left_out,
            &self.lines_of_script,
            &self.differs,
        ]);
        let mut minor = once(&[&self.harmless, &self.habits]);
        minor.extend(self.redirects.clone());
        notes.extend(Some(minor.join("; ")).filter(|minor| !minor.is_empty()));
        notes
    }

    /// What a script has that is not taken, in as few sentences as can be read.
    pub(super) fn leave_out_of_script(&mut self, what: &[String]) {
        let sentence = |what: &[String]| format!("not taken: {}", listed(what));
        if sentence(what).len() <= LONGEST_SENTENCE {
            self.left_out.push(sentence(what));
            return;
        }
        let mut begin = 0;
        for end in 1..=what.len() {
            let is_full = what.get(begin..=end).is_none_or(|it| sentence(it).len() > LONGEST_LINE);
            if is_full {
                self.lines_of_script.push(sentence(&what[begin..end]));
                begin = end;
            }
        }
    }

    /// A tool that goes on until it is interrupted, where ours ends.
    pub(super) fn note_endless(&mut self, tool: &'static OtherTool, theirs: &[String]) {
        let ends: &[&str] = match tool.name {
            "vegeta" => &["duration"],
            "siege" => &["t", "r"],
            "locust" => &["t"],
            _ => return,
        };
        if !ends.iter().any(|flag| tool.has_typed(flag, theirs)) {
            self.differs.push(format!(
                "without -{} {} goes on for ever; ours ends after 10 s unless --for says otherwise",
                ends.join(" or -"),
                tool.name
            ));
        }
    }

    /// Expectations that this number of requests cannot show, so that our line ends with exit code
    /// 1 where the other tool's ends with 0.
    pub(super) fn note_too_few_requests(&mut self, tool: &OtherTool, words: &[String]) {
        let number = |flag: &str| value_behind(words, flag)?.parse::<u64>().ok();
        let time = |flag: &str| value_behind(words, flag)?.parse::<Nanos>().ok();
        let rate = value_behind(words, "--rate");
        let rate = rate.and_then(|rate| rate.trim_end_matches("/s").parse::<f64>().ok());
        // With pauses a connection sends at most one request a pause.
        let per_s = match (rate, number("-c"), time("--think")) {
            (Some(rate), _, _) => Some(rate),
            (None, Some(users), Some(think)) if think > Nanos::ZERO => {
                Some(users as f64 / think.as_secs_f64())
            }
            _ => None,
        };
        let by_time = per_s.zip(time("--for"));
        let requests = match (number("-n"), by_time) {
            (Some(requests), _) => requests,
            (None, Some((per_s, length))) => (per_s * length.as_secs_f64()) as u64,
            (None, None) => return,
        };
        let mut unshown: Vec<String> = Vec::new();
        let mut times = 0;
        let expected = words.windows(2).filter(|pair| pair[0] == "--expect").map(|pair| &pair[1]);
        for expected in expected {
            let Ok(Objective { figure: ObjectiveFigure::ResponseTime(quantile), .. }) =
                expected.parse()
            else {
                continue;
            };
            let unknown = Interval {
                quantile,
                inflation: None,
                low: None,
                high: None,
                without_generator: None,
            };
            let Some(needed) = unknown.responses_needed(requests, None, 1.0) else { continue };
            unshown.push(expected.clone());
            times = times.max(needed.div_ceil(requests.max(1)));
        }
        let length = time("--for").filter(|_| number("-n").is_none());
        let Some(longer) = load_longer_by(length, number("-n"), times) else { return };
        if unshown.is_empty() {
            return;
        }
        let than = length.map(|_| format!(", longer than {}'s,", tool.name));
        // Responses take time beside pauses, so that there are fewer.
        let slow = if rate.is_none() && length.is_some() {
            " (more where responses are slow)"
        } else {
            ""
        };
        self.fails.push(format!(
            "{requests} responses are too few to show {} (exit code 1): {longer}{} makes enough{slow}",
            listed(&unshown),
            than.unwrap_or_default()
        ));
    }

    /// What becomes of requests for which no connection is free when they are due: most tools send
    /// them late and forget since when they waited.
    pub(super) fn note_lateness(
        &mut self,
        tool: &'static OtherTool,
        theirs: &[String],
        words: &[String],
    ) {
        let is_open = words.iter().any(|word| word == "--rate");
        let note = match tool.name {
            "vegeta" if is_open && tool.has_typed("max-workers", theirs) => {
                "with all -max-workers busy, vegeta's times count from the sending, ours from the due time"
            }
            "oha" if is_open && !tool.has_typed("latency-correction", theirs) => {
                "oha's times count from the sending (without --latency-correction), ours from the due time"
            }
            _ => return,
        };
        self.differs.push(note.to_owned());
    }

    /// That a tool follows redirects, unless it is told not to. A form that was sent is often
    /// answered with one, so that this is said of every method.
    ///
    /// k6 also sends the cookies that responses set with the later ones of the `requests_each` of an
    /// iteration.
    pub(super) fn note_redirects(
        &mut self,
        tool: &'static OtherTool,
        theirs: &[String],
        requests_each: Option<f64>,
    ) {
        if tool.redirects.is_some_and(|flag| !tool.has_typed(flag, theirs)) {
            let is_kept = requests_each.is_some_and(|requests| requests > 1.0);
            let cookies = if is_kept { " and keeps cookies" } else { "" };
            self.redirects =
                Some(format!("{} follows redirects{cookies}, ours does not", tool.name));
        }
    }

    /// What a tool says of a body unasked, and a server may answer otherwise without: its method and
    /// its type. `words` is our line, `beside` are words of ours in it that were typed.
    pub(super) fn note_unasked(&mut self, tool: &OtherTool, beside: &[String], words: &[String]) {
        let typed = [&self.flags[..], beside].concat();
        let has = |words: &[String], word: &str| words.iter().any(|one| one == word);
        if has(words, "GET") && !has(&typed, "GET") {
            self.habits.push(format!("{} sends GET unless -m says otherwise", tool.name));
        }
        let has_body = ["-d", "--data-raw", "-D"].iter().any(|flag| has(words, flag));
        if !has_body {
            return;
        }
        let is_unasked = has(words, "-T") && !has(&typed, "-T");
        let own_type = match tool.own_type {
            OwnType::OfBodies(name) if is_unasked => Some(format!("calls a body {name} (-T)")),
            OwnType::OfAll(name) if is_unasked => Some(format!("calls every request {name} (-T)")),
            OwnType::None | OwnType::OfBodies(_) | OwnType::OfAll(_) => None,
        };
        if let Some(own_type) = own_type {
            self.habits.push(format!("{} itself {own_type}", tool.name));
        }
    }
}
