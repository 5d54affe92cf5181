//! How often a script of k6 sends each of its requests, where one random number, or one counter, is
//! compared with numbers: `if (Math.random() < 0.2) { … } else { … }`, `switch (true)`.

use super::script_requests::{ScriptRequest, method_of};
use crate::args::other_tools::js_literals::{
    BEGIN, END, JsCall, calls, declared_once, end_of_statement, is_of_name, parts,
};
use crate::args::other_tools::wrk_weights::{Condition, Draw, HowOften, weights};

/// What is done under one condition.
struct Branch<'c> {
    /// `None`: else.
    condition: Option<&'c str>,
    done: &'c str,
}

/// The branches of a body of which one is done, and what stands around them.
struct Choice<'c> {
    before: &'c str,
    branches: Vec<Branch<'c>>,
    behind: &'c str,
}

/// How often an iteration sends each of its requests.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct RequestShares {
    /// Of each request, in their order.
    pub(super) each: Vec<u32>,
    /// Of one that every iteration sends once.
    pub(super) of_one_call: u32,
}

impl RequestShares {
    /// Those of an iteration with this body; `None` if they are not plain.
    pub(super) fn in_body(code: &str, body: &str) -> Option<RequestShares> {
        let mut choice = Choice::by_if(body).or_else(|| Choice::by_switch(body))?;
        // In a loop, or in a block of something else, it is done more or less than once.
        let is_in_loop = ["for", "while", "do"].iter().any(|it| has_word(choice.before, it));
        if is_in_loop || choice.before.matches('{').count() != choice.before.matches('}').count() {
            return None;
        }
        choice.take_rest_as_else();
        let (last, others) = choice.branches.split_last()?;
        let conditions = others.iter().map(|branch| condition(code, branch.condition?));
        let conditions: Vec<Condition<'_>> = conditions.collect::<Option<_>>()?;
        let HowOften::Weights { weights, .. } = weights(&conditions)? else { return None };
        let is_one = choice.branches.iter().all(|branch| sent_plainly(branch.done) == Some(1));
        let around = sent_plainly(choice.before).zip(sent_plainly(choice.behind));
        let (before, behind) = around.filter(|_| is_one && last.condition.is_none())?;
        let all: u32 = weights.iter().sum();
        let each = [vec![all; before], weights, vec![all; behind]].concat();
        Some(RequestShares { each, of_one_call: all })
    }
}

impl ScriptRequest {
    /// The requests of the default function, where an iteration sends each as often as these shares say; none if it has others.
    pub(super) fn all_with_shares(
        code: &str,
        of_body: &[JsCall<'_>],
        shares: &RequestShares,
    ) -> Vec<ScriptRequest> {
        let requests = ScriptRequest::all_in(code, of_body);
        if requests.len() != shares.each.len() || requests.iter().any(|request| request.shares > 1)
        {
            return Vec::new();
        }
        let all = shares.of_one_call;
        let with_share = requests.into_iter().zip(&shares.each);
        with_share
            .map(|(it, weight)| ScriptRequest { weight: *weight, shares: all, ..it })
            .collect()
    }
}

/// How many requests a part of a script sends; `None` if some of them only now and then.
fn sent_plainly(part: &str) -> Option<usize> {
    let calls = calls(part);
    let is_choice = |name: &str| ["if", "switch", "for", "while", "http.batch"].contains(&name);
    let requests: Vec<_> = calls.iter().filter(|call| method_of(call).is_some()).collect();
    let last = calls.iter().rposition(|call| method_of(call).is_some());
    let until_last = &calls[..last.map_or(0, |at| at + 1)];
    let is_plain = requests.iter().all(|call| call.depth == 0 && !call.is_conditional)
        && !until_last.iter().any(|call| is_choice(call.name));
    is_plain.then_some(requests.len())
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
                    (Some(&head[..head.len() - behind.len() - 1]), behind.trim_start())
                }
                None => (None, rest),
            };
            let length = match done.strip_prefix('{') {
                Some(inside) => done.len() - parts(inside)?.1.len(),
                None => (end_of_statement(done) + 1).min(done.len()),
            };
            let (done, behind) = done.split_at(length);
            let done = done.strip_prefix('{').and_then(|it| it.strip_suffix('}')).unwrap_or(done);
            branches.push(Branch { condition, done });
            let next =
                behind.trim_start().strip_prefix("else").filter(|it| !it.starts_with(is_of_name));
            match next {
                Some(next) if condition.is_some() => rest = next.trim_start(),
                _ => return Some(Choice { before, branches, behind }),
            }
        }
    }

    /// `switch (true) { case …: …; break; default: … }`
    fn by_switch(body: &'c str) -> Option<Choice<'c>> {
        let begin = place_of_word(body, "switch")?;
        let head = body[begin..].strip_prefix("switch")?.trim_start().strip_prefix("(true)")?;
        let cases = head.trim_start().strip_prefix('{')?;
        let (_, behind) = parts(cases)?;
        let mut rest = cases[..cases.len() - behind.len() - 1].trim_start();
        let mut branches = Vec::new();
        while !rest.is_empty() {
            let (condition, done) = rest.split_once(':')?;
            let condition = match condition.trim() {
                "default" => None,
                case => Some(case.strip_prefix("case ")?),
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

/// `Math.random() < 0.2`, `n < 9`, `__ITER % 10 === 0`.
fn condition<'c>(code: &'c str, written: &'c str) -> Option<Condition<'c>> {
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
    let found = signs.into_iter().find_map(|(sign, it)| Some((it, written.split_once(sign)?)));
    let (comparison, (drawn, bound)) = found?;
    let drawn = drawn.trim();
    let value = declared_once(code, drawn).map(|(_, value)| &value[..end_of_statement(value)]);
    let value = value.unwrap_or(drawn).trim();
    let (value, modulus) = match value.rsplit_once('%') {
        None => (value, None),
        Some((value, modulus)) => (value.trim(), Some(modulus.trim().parse().ok()?)),
    };
    let modulus = modulus.filter(|modulus: &u32| *modulus > 0);
    Condition::with(drawn, draw(value)?, modulus, comparison, bound.trim())
}

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
            // Not every iteration sends as many, or it is not known how often.
            ("if (Math.random() < 0.2) { http.post(u); } http.get(u);", None),
            ("if (Math.random() < 0.2) { http.post(u); }", None),
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
            let found = RequestShares::in_body(body, body).map(|shares| shares.each);
            assert_eq!(found, expected, "{body}");
        }
    }
}
