//! How often a script of k6 sends each of its requests, where one random number, or one counter, is
//! compared with numbers: `if (Math.random() < 0.2) { … } else { … }`, `switch (true)`.

use super::script_requests::{LOOPS, ScriptRequest, method_of};
use crate::args::other_tools::js_literals::{
    BEGIN, END, JsCall, calls, declared_once, end_of_statement, is_of_name, parts,
};
use crate::args::other_tools::wrk_weights::{Condition, Draw, HowOften, common_divisor, weights};

/// What is done under one condition.
struct Branch<'c> {
    /// `None`: else.
    condition: Option<BranchCondition<'c>>,
    done: &'c str,
}

/// The condition of a branch, as it is written.
enum BranchCondition<'c> {
    /// `Math.random() < 0.2`
    If(&'c str),
    /// That what a `switch` looks at is this value.
    Case { of: &'c str, value: &'c str },
}

/// The branches of a body of which one is done, and what stands around them.
struct Choice<'c> {
    before: &'c str,
    branches: Vec<Branch<'c>>,
    behind: &'c str,
}

/// How often an iteration makes each of its calls.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct CallShares {
    /// Of each call, in their order.
    pub(super) each: Vec<u32>,
    /// Of one that every iteration makes once.
    pub(super) of_one_call: u32,
}

/// How often something is done on average: so many times in so many iterations.
#[derive(Clone, Copy)]
struct Frequency {
    times: u32,
    iterations: u32,
}

const ONCE: Frequency = Frequency { times: 1, iterations: 1 };

/// The finest shares that are told apart.
const MOST_ITERATIONS: u32 = 1_000_000;

/// Where calls are looked for.
struct Search<'s> {
    code: &'s str,
    is_meant: &'s dyn Fn(&JsCall<'_>) -> bool,
}

impl CallShares {
    /// Those of the calls of an iteration with this body that are meant; `None` if they are not plain.
    pub(super) fn in_body(
        code: &str,
        body: &str,
        is_meant: &dyn Fn(&JsCall<'_>) -> bool,
    ) -> Option<CallShares> {
        let search = Search { code, is_meant };
        let all = search.frequencies(body, false)?;
        // None may stand in a condition.
        (all.len() == search.count(body)).then_some(())?;
        let mut iterations = 1_u32;
        for it in &all {
            let divisor = common_divisor(iterations, it.iterations);
            iterations = iterations.checked_mul(it.iterations / divisor)?;
        }
        (iterations <= MOST_ITERATIONS).then_some(())?;
        let share = |it: &Frequency| it.times.checked_mul(iterations / it.iterations);
        let each: Option<Vec<u32>> = all.iter().map(share).collect();
        Some(CallShares { each: each?, of_one_call: iterations })
    }
}

impl Search<'_> {
    /// How often a part of a script makes each of the calls, in their order. `is_branch`: whether
    /// something was drawn to get there.
    fn frequencies(&self, part: &str, is_branch: bool) -> Option<Vec<Frequency>> {
        let choices = [Choice::by_if(part), Choice::by_switch(part)];
        let first = choices.into_iter().flatten().min_by_key(|it| it.before.len());
        let Some(mut choice) = first.filter(|it| self.count(&part[it.before.len()..]) > 0) else {
            return self.count_plain(part).map(|count| vec![ONCE; count]);
        };
        // In a loop, or in a block of something else, it is done more or less than once.
        let is_in_loop = ["for", "while", "do"].iter().any(|it| has_word(choice.before, it));
        if is_in_loop || choice.before.matches('{').count() != choice.before.matches('}').count() {
            return None;
        }
        choice.take_rest_as_else();
        // fail() ends an iteration whose response is not as it should be: that is no usual one.
        let ends = |branch: &Branch<'_>| {
            ["return", "throw"].iter().any(|word| has_word(branch.done, word))
        };
        if choice.branches.iter().any(ends) && self.count(choice.behind) > 0 {
            return None;
        }
        if choice.branches.last()?.condition.is_some() {
            choice.branches.push(Branch { condition: None, done: "" });
        }
        let mut all = vec![ONCE; self.count_plain(choice.before)?];
        if choice.branches.iter().any(|branch| self.count(branch.done) > 0) {
            let weights = self.weights(&choice, is_branch)?;
            let sum: u32 = weights.iter().sum();
            for (branch, weight) in choice.branches.iter().zip(weights) {
                for Frequency { times, iterations } in self.frequencies(branch.done, true)? {
                    let times = times.checked_mul(weight)?;
                    all.push(Frequency { times, iterations: iterations.checked_mul(sum)? });
                }
            }
        }
        all.extend(self.frequencies(choice.behind, is_branch)?);
        Some(all)
    }

    /// How often each branch is done. Where all do the same, any weights are right.
    fn weights(&self, choice: &Choice<'_>, is_branch: bool) -> Option<Vec<u32>> {
        let (_, others) = choice.branches.split_last()?;
        let conditions = others.iter().map(|branch| {
            let condition = branch.condition.as_ref()?;
            condition.read(self.code).filter(|it| !is_branch || it.draws_anew())
        });
        let conditions: Option<Vec<Condition<'_>>> = conditions.collect();
        let known = conditions.and_then(|conditions| weights(&conditions));
        if let Some(HowOften::Weights { weights, .. }) = known {
            return Some(weights);
        }
        let done = |branch: &Branch<'_>| {
            self.count_plain(branch.done)?;
            let calls = calls(branch.done).into_iter().filter(|call| (self.is_meant)(call));
            let words = |call: JsCall<'_>| format!("{}({})", call.name, call.arguments.join(", "));
            Some(calls.map(words).collect::<Vec<_>>())
        };
        let first = done(choice.branches.first()?)?;
        let are_alike = choice.branches.iter().all(|branch| done(branch).as_ref() == Some(&first));
        are_alike.then(|| vec![1; choice.branches.len()])
    }

    fn count(&self, part: &str) -> usize {
        calls(part).iter().filter(|call| (self.is_meant)(call)).count()
    }

    /// How many of the calls a part of a script makes; `None` if some of them only now and then.
    fn count_plain(&self, part: &str) -> Option<usize> {
        let calls = calls(part);
        let is_choice = |name: &str| {
            ["if", "switch", "for", "while"].contains(&name)
                || LOOPS.iter().any(|end| name.ends_with(end))
        };
        let meant: Vec<_> = calls.iter().filter(|call| (self.is_meant)(call)).collect();
        let last = calls.iter().rposition(|call| (self.is_meant)(call));
        let until_last = &calls[..last.map_or(0, |at| at + 1)];
        let is_plain = meant.iter().all(|call| call.depth == 0 && !call.is_conditional)
            && !until_last.iter().any(|call| is_choice(call.name));
        is_plain.then_some(meant.len())
    }
}

impl ScriptRequest {
    /// The requests of the default function, where an iteration makes each call as often as these
    /// shares say; none if it has others.
    pub(super) fn all_with_shares(
        code: &str,
        of_body: &[JsCall<'_>],
        shares: &CallShares,
    ) -> Vec<ScriptRequest> {
        let calls = of_body.iter().filter(|call| method_of(call).is_some()).count();
        if calls != shares.each.len() {
            return Vec::new();
        }
        let with_share = |it: ScriptRequest| {
            let weight = it.weight * shares.each[it.call];
            ScriptRequest { weight, shares: it.shares * shares.of_one_call, ..it }
        };
        ScriptRequest::all_in(code, of_body).into_iter().map(with_share).collect()
    }
}

impl<'c> Choice<'c> {
    /// `if (…) … else if (…) … else …`
    fn by_if(body: &'c str) -> Option<Choice<'c>> {
        let begin = place_of_word(body, "if")?;
        let before = &body[..begin];
        let mut branches = Vec::new();
        let mut rest = &body[begin..];
        loop {
            let head =
                rest.strip_prefix("if").map(str::trim_start).and_then(|it| it.strip_prefix('('));
            let (condition, done) = match head {
                Some(head) => {
                    let (_, behind) = parts(head)?;
                    let written = &head[..head.len() - behind.len() - 1];
                    (Some(BranchCondition::If(written)), behind.trim_start())
                }
                None => (None, rest),
            };
            let length = match done.strip_prefix('{') {
                Some(inside) => done.len() - parts(inside)?.1.len(),
                None => (end_of_statement(done) + 1).min(done.len()),
            };
            let (done, behind) = done.split_at(length);
            let done = done.strip_prefix('{').and_then(|it| it.strip_suffix('}')).unwrap_or(done);
            let is_else = condition.is_none();
            branches.push(Branch { condition, done });
            let next =
                behind.trim_start().strip_prefix("else").filter(|it| !it.starts_with(is_of_name));
            match next {
                Some(next) if !is_else => rest = next.trim_start(),
                _ => return Some(Choice { before, branches, behind }),
            }
        }
    }

    /// `switch (…) { case …: …; break; default: … }`
    fn by_switch(body: &'c str) -> Option<Choice<'c>> {
        let begin = place_of_word(body, "switch")?;
        let head = body[begin..].strip_prefix("switch")?.trim_start().strip_prefix('(')?;
        let (_, behind) = parts(head)?;
        let of = head[..head.len() - behind.len() - 1].trim();
        let cases = behind.trim_start().strip_prefix('{')?;
        let (_, behind) = parts(cases)?;
        let mut rest = cases[..cases.len() - behind.len() - 1].trim_start();
        let mut branches = Vec::new();
        while !rest.is_empty() {
            let (condition, done) = rest.split_once(':')?;
            let condition = match condition.trim() {
                "default" => None,
                case => Some(match case.strip_prefix("case ")?.trim() {
                    condition if of == "true" => BranchCondition::If(condition),
                    value => BranchCondition::Case { of, value },
                }),
            };
            let end = [place_of_word(done, "case"), place_of_word(done, "default")];
            let end = end.into_iter().flatten().min().unwrap_or(done.len());
            let (done, next) = done.split_at(end);
            let has_end = ["break", "return"].iter().any(|it| has_word(done, it));
            if !has_end && !next.is_empty() || condition.is_none() && !next.is_empty() {
                return None;
            }
            branches.push(Branch { condition, done });
            rest = next.trim_start();
        }
        Some(Choice { before: &body[..begin], branches, behind })
    }

    /// What stands behind branches that all return is done otherwise.
    fn take_rest_as_else(&mut self) {
        let has_else = self.branches.last().is_some_and(|branch| branch.condition.is_none());
        let returns = |branch: &Branch<'_>| has_word(branch.done, "return");
        if !has_else && self.branches.iter().all(returns) {
            self.branches.push(Branch { condition: None, done: self.behind });
            self.behind = "";
        }
    }
}

fn has_word(text: &str, word: &str) -> bool {
    place_of_word(text, word).is_some()
}

/// Where a word stands for the first time that is no part of another one.
fn place_of_word(text: &str, word: &str) -> Option<usize> {
    let is_whole = |at: &usize| {
        let before = &text[..*at];
        let behind = &text[at + word.len()..];
        !before.ends_with(|c| is_of_name(c) || c == '.') && !behind.starts_with(is_of_name)
    };
    text.match_indices(word).map(|(at, _)| at).find(is_whole)
}

impl<'c> BranchCondition<'c> {
    /// `Math.random() < 0.2`, `n < 9`, `__ITER % 10 === 0`.
    fn read(&self, code: &str) -> Option<Condition<'c>> {
        let signs = [
            ("<=", "<="),
            (">=", ">="),
            ("!==", "~="),
            ("!=", "~="),
            ("===", "=="),
            ("==", "=="),
            ("<", "<"),
            (">", ">"),
        ];
        let (comparison, drawn, bound) = match *self {
            BranchCondition::Case { of, value } => ("==", of, value),
            BranchCondition::If(written) => signs.into_iter().find_map(|(sign, it)| {
                let (drawn, bound) = written.split_once(sign)?;
                Some((it, drawn.trim(), bound))
            })?,
        };
        let value = declared_once(code, drawn).map(|(_, value)| &value[..end_of_statement(value)]);
        let of_draw = value.unwrap_or(drawn).trim();
        let (of_draw, modulus) = match of_draw.rsplit_once('%') {
            None => (of_draw, None),
            Some((value, modulus)) => (value.trim(), Some(modulus.trim().parse().ok()?)),
        };
        let modulus = modulus.filter(|modulus: &u32| *modulus > 0);
        // What a switch looks at is drawn once for all of its cases.
        let name = match self {
            BranchCondition::Case { .. } if value.is_none() => "switch",
            BranchCondition::If(_) if drawn.contains(BEGIN) => DRAWN_ANEW,
            _ => drawn,
        };
        Condition::with(name, draw(of_draw)?, modulus, comparison, bound.trim())
    }
}

/// A name for a random whole number that a condition draws itself.
const DRAWN_ANEW: &str = "Math.random()";

/// A random number, or a counter of iterations.
fn draw(value: &str) -> Option<Draw> {
    let counters = ["iterationInTest", "iterationInScenario", "iterationInInstance"];
    let bare: String = value.chars().filter(|c| !c.is_whitespace()).collect();
    let is_counter = bare == "__ITER"
        || bare.starts_with("exec.") && counters.iter().any(|it| bare.ends_with(&format!(".{it}")));
    if is_counter {
        return Some(Draw::Counter);
    }
    if let Some(times) = bare.strip_prefix("Math.random()") {
        let of = times.strip_prefix('*').map_or(Some(1), |times| times.parse().ok());
        return Some(Draw::Fraction {
            of: of.filter(|_| times.is_empty() || times.starts_with('*'))?,
        });
    }
    let ends =
        bare.strip_prefix('\'')?.strip_prefix(BEGIN)?.strip_suffix('\'')?.strip_suffix(END)?;
    let (least, most) = ends.split_once("..")?;
    Some(Draw::Whole { least: least.parse().ok()?, most: most.parse().ok()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_conditions_are_shares() {
        for (body, expected) in [
            ("if (Math.random() < 0.2) { http.post(u); } else { http.get(u); }", Some(vec![2, 8])),
            ("if (Math.random() * 100 < 5) http.post(u);\nelse http.get(u);", Some(vec![5, 95])),
            (
                "http.get(h); const x = Math.random();\nif (x < 0.5) { http.get(a); } else if (x < 0.9) { http.get(b); } else { http.get(c); }\nhttp.get(d);",
                Some(vec![10, 5, 4, 1, 10]),
            ),
            (
                "const n = exec.scenario.iterationInTest % 10;\nif (n < 8) http.get(a);\nelse if (n < 9) http.get(b);\nelse http.get(c);",
                Some(vec![8, 1, 1]),
            ),
            ("if (__ITER % 4 === 0) { http.get(a); return; }\nhttp.get(b);", Some(vec![1, 3])),
            (
                "const x = Math.random();\nswitch (true) {\n case x < 0.7: http.get(a); break;\n case x < 0.9: http.get(b); break;\n default: http.get(c);\n}",
                Some(vec![7, 2, 1]),
            ),
            (
                "if (Math.random() < .2) http.post(u)\nif (__ITER % 10 == 0) http.get(r)\nhttp.get(u)",
                Some(vec![2, 1, 10]),
            ),
            ("if (Math.random() < 0.25) { http.post(u); }", Some(vec![25])),
            (
                "switch ('\u{1}0..2\u{2}') { case 0: http.get(a); break; case 1: http.get(b); break; default: http.get(c); }\nhttp.get(d);",
                Some(vec![1, 1, 1, 3]),
            ),
            (
                "if (Math.random() < 0.5) { http.get(a); if (Math.random() < 0.5) { http.get(b); } }",
                Some(vec![50, 25]),
            ),
            ("if (x) { http.get(a); } else { http.get(a); }", Some(vec![1, 1])),
            ("if (x) { log(); } http.get(a);", Some(vec![1])),
            // It is not known how often.
            ("if (x) { return; } http.get(a);", None),
            ("if (x) { http.get(a); } http.get(a);", None),
            (
                "const x = Math.random(); if (x < 0.5) { if (x < 0.2) { http.get(a); } } http.get(b);",
                None,
            ),
            (
                "if ('\u{1}0..2\u{2}' == 0) { http.get(a); } else if ('\u{1}0..2\u{2}' == 1) { http.get(b); } else { http.get(c); }",
                None,
            ),
            ("if (Math.random() < 0.5 || x) { http.get(a); }", None),
            ("if (http.get(a).status === 200) { http.get(b); }", None),
            ("if (Math.random() < share) { http.post(u); } else { http.get(u); }", None),
            (
                "if (Math.random() < 0.2) { http.get(a); } else if (Math.random() < 0.5) { http.get(b); } else { http.get(c); }",
                None,
            ),
            ("if (x) { http.get(a); } else { http.get(b); }", None),
            ("if (Math.random() < 0.2) { if (x) http.get(a); } else { http.get(b); }", None),
            ("for (;;) if (Math.random() < 0.2) http.get(a); else http.get(b);", None),
            (
                "const x = Math.random(); switch (true) { case x < 0.7: http.get(a); default: http.get(c); }",
                None,
            ),
        ] {
            let is_request = |call: &JsCall<'_>| method_of(call).is_some();
            let found = CallShares::in_body(body, body, &is_request).map(|shares| shares.each);
            assert_eq!(found, expected, "{body}");
        }
    }
}
