//! One question to the machine and its answer. What stays true: what could not be read is `Unknown`, never `Fine`.

use std::collections::BTreeMap;

use serde::Serialize;

/// How an answer is to be taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Grade {
    /// As it should be.
    Fine,
    /// It may spoil numbers.
    Warn,
    /// It will.
    Bad,
    /// It could not be found out.
    Unknown,
}

/// What a check is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Group {
    /// How many there are, of what kind, and who shares them.
    Processors,
    /// What the machine does while it is looked at.
    Now,
    /// How well a wait ends when it should.
    Timers,
    /// What limits connections.
    Network,
    /// What can be seen of the kernel's side.
    Sight,
    /// What is there to be measured, and to compare with.
    Programs,
}

/// A question and its answer.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Check {
    /// What it is about.
    pub group: Group,
    /// What was asked.
    pub name: &'static str,
    /// What was seen.
    pub seen: String,
    /// The figures in it, each with its unit last in its name.
    pub figures: BTreeMap<&'static str, f64>,
    /// How it is to be taken.
    pub grade: Grade,
    /// Which numbers it would spoil.
    pub spoils: &'static str,
    /// What to do about it, as a command where there is one.
    pub mend: Option<String>,
}

impl Check {
    /// The same with a figure more.
    #[must_use]
    pub(super) fn with(mut self, name: &'static str, figure: impl Into<f64>) -> Check {
        self.figures.insert(name, figure.into());
        self
    }
}

/// A question that waits for its answer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Question {
    pub(super) group: Group,
    pub(super) name: &'static str,
    pub(super) spoils: &'static str,
}

impl Question {
    pub(super) fn fine(self, seen: impl Into<String>) -> Check {
        self.answer(Grade::Fine, seen, None)
    }

    pub(super) fn warn(self, seen: impl Into<String>, mend: impl Into<String>) -> Check {
        self.answer(Grade::Warn, seen, Some(mend.into()))
    }

    pub(super) fn bad(self, seen: impl Into<String>, mend: impl Into<String>) -> Check {
        self.answer(Grade::Bad, seen, Some(mend.into()))
    }

    /// Because of what, as a part of a sentence.
    pub(super) fn unknown(self, why: impl Into<String>) -> Check {
        self.answer(Grade::Unknown, why, None)
    }

    /// Because the file cannot be read, or says something else than on the kernels we know.
    pub(super) fn unread(self, path: &str) -> Check {
        self.unknown(format!("{path} does not tell"))
    }

    /// Graded by a figure: fine up to the first limit, bad above the second.
    pub(super) fn graded(self, figure: f64, fine: f64, bad: f64, seen: impl Into<String>, mend: &str) -> Check {
        match figure {
            f if f <= fine => self.fine(seen),
            f if f <= bad => self.warn(seen, mend),
            _ => self.bad(seen, mend),
        }
    }

    fn answer(self, grade: Grade, seen: impl Into<String>, mend: Option<String>) -> Check {
        let Question { group, name, spoils } = self;
        Check { group, name, seen: seen.into(), figures: BTreeMap::new(), grade, spoils, mend }
    }
}

/// What all answers come to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Fitness {
    /// Whether nothing is bad.
    pub fit: bool,
    /// The names of what is bad.
    pub bad: Vec<&'static str>,
    /// How many doubts there are.
    pub doubts: usize,
    /// How much could not be found out.
    pub unknown: usize,
}

impl Fitness {
    /// Of these checks.
    pub fn of(checks: &[Check]) -> Fitness {
        let count = |grade| checks.iter().filter(|check| check.grade == grade).count();
        let bad: Vec<_> = checks.iter().filter(|check| check.grade == Grade::Bad).map(|check| check.name).collect();
        Fitness { fit: bad.is_empty(), bad, doubts: count(Grade::Warn), unknown: count(Grade::Unknown) }
    }

    /// `fit`, `fit with doubts: 3`, `not fit: busy; doubts: 2`, and how much is unknown.
    pub fn text(&self) -> String {
        let verdict = match (self.fit, self.doubts) {
            (false, 0) => format!("not fit: {}", self.bad.join(", ")),
            (false, doubts) => format!("not fit: {}; doubts: {doubts}", self.bad.join(", ")),
            (true, 0) => "fit".to_owned(),
            (true, doubts) => format!("fit with doubts: {doubts}"),
        };
        if self.unknown == 0 { verdict } else { format!("{verdict}; unknown: {}", self.unknown) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const QUESTION: Question = Question { group: Group::Now, name: "weather", spoils: "the picnic" };

    #[test]
    fn one_bad_answer_makes_a_machine_unfit() {
        let (fine, warn) = (QUESTION.fine("sun"), QUESTION.warn("clouds", "wait"));
        let (bad, unknown) = (QUESTION.bad("hail", "go home"), QUESTION.unread("/sky"));
        assert_eq!(Fitness::of(std::slice::from_ref(&fine)).text(), "fit");
        assert_eq!(Fitness::of(&[fine, warn.clone()]).text(), "fit with doubts: 1");
        assert_eq!(Fitness::of(std::slice::from_ref(&unknown)).text(), "fit; unknown: 1");
        assert_eq!(Fitness::of(&[warn, bad, unknown]).text(), "not fit: weather; doubts: 1; unknown: 1");
    }

    #[test]
    fn what_is_not_fine_says_how_to_mend_it() {
        let grade = |figure| QUESTION.graded(figure, 1.0, 2.0, "x", "mend");
        assert_eq!([1.0, 2.0, 2.1].map(|f| grade(f).grade), [Grade::Fine, Grade::Warn, Grade::Bad]);
        assert_eq!([1.0, 2.0, 2.1].map(|f| grade(f).mend.is_some()), [false, true, true]);
        assert_eq!(grade(f64::NAN).grade, Grade::Bad, "no figure is not a good one");
    }
}
