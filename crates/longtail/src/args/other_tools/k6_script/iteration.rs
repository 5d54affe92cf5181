//! What one iteration of a script of k6 does: how often it sends its requests, and its pauses.

use model::Nanos;

use super::branch_shares::CallShares;
use super::script_requests::{LOOPS, method_of};
use super::varying_numbers::mean_of;
use crate::args::other_tools::js_literals::{
    JsCall, JsValue, calls, calls_of_batch, declared_once, end_of_statement, parts, parts_between,
    value_with_constants,
};

/// The pauses of an iteration.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) enum Pauses {
    #[default]
    None,
    /// There are some, of a length or number that is not plain.
    Unknown,
    Known {
        /// The one behind each request; where it pauses otherwise, the mean of it.
        behind_each: Nanos,
        in_all: Nanos,
        /// What is otherwise about that pause, for a person.
        said: Option<String>,
    },
}

impl Pauses {
    /// Those of an iteration that pauses so long in all, if that is known, and sends so many requests
    /// on average, 0 if that is not known, always `at_once` of them together.
    pub(super) fn of_iteration(
        of_body: &[JsCall<'_>],
        in_all: Option<Pause>,
        requests: f64,
        at_once: Option<u32>,
    ) -> Pauses {
        let Some(pause) = in_all.filter(|_| requests > 0.0) else { return Pauses::Unknown };
        let in_turn = requests / f64::from(at_once.unwrap_or(1));
        let behind_each = Nanos::from_secs_f64(pause.mean / in_turn);
        let in_all = Nanos::from_secs_f64(pause.mean);
        let mean = if pause.is_random { " (a mean)" } else { "" };
        let of_all = format!("its sleep() is {in_all}{mean} in each iteration");
        let is_same = at_once.is_some() || is_same_behind_each(of_body);
        // One request an iteration has all of the pause behind it, wherever the script has it.
        let is_alone = (requests - 1.0).abs() < f64::EPSILON;
        let said = match at_once {
            _ if (is_same || is_alone) && !pause.is_random => None,
            _ if is_alone => Some(format!("--think {behind_each} is the mean of its sleep()")),
            Some(_) => Some(of_all),
            None => Some(format!(
                "{of_all}: --think {behind_each} behind each request is as much in all"
            )),
        };
        Pauses::Known { behind_each, in_all, said }
    }
}

/// A pause of an iteration.
pub(super) struct Pause {
    /// In seconds.
    pub(super) mean: f64,
    pub(super) is_random: bool,
}

impl Pause {
    /// How long an iteration pauses on average, whatever decides that; `None` if that is not plain.
    /// `sleeps`: how often the script does.
    pub(super) fn of_iteration(code: &str, body: &str, sleeps: usize) -> Option<Pause> {
        let is_sleep = |call: &JsCall<'_>| call.name == "sleep";
        let shares = CallShares::in_body(code, body, &is_sleep)?;
        let calls = calls(body);
        let calls: Vec<_> = calls.iter().filter(|call| is_sleep(call)).collect();
        (calls.len() == sleeps).then_some(())?;
        let mut all = Pause { mean: 0.0, is_random: false };
        for (call, share) in calls.iter().zip(&shares.each) {
            let pause = Pause::of(code, call.arguments.first()?)?;
            all.mean += pause.mean * f64::from(*share) / f64::from(shares.of_one_call);
            all.is_random |= pause.is_random || *share != shares.of_one_call;
        }
        Some(all).filter(|all| all.mean > 0.0)
    }

    /// `1`, `Math.random() * 2 + LEAST`, `randomIntBetween(1, LONGEST)`, or a random whole number.
    pub(super) fn of(code: &str, written: &str) -> Option<Pause> {
        let written = written.trim();
        if let Some(mean) = value_with_constants(code, written).number() {
            return Some(Pause { mean, is_random: false });
        }
        if written == "Math.random()" {
            return Some(Pause { mean: 0.5, is_random: true });
        }
        if let Some(mean) = mean_of(written) {
            return Some(Pause { mean, is_random: true });
        }
        if let Some(inside) = written.strip_prefix("randomIntBetween(") {
            let (ends, behind) = parts(inside)?;
            let [least, most] = ends[..] else { return Pause::of_sum(code, written) };
            if behind.is_empty() {
                let (least, most) = (Pause::of(code, least)?, Pause::of(code, most)?);
                return Some(Pause { mean: f64::midpoint(least.mean, most.mean), is_random: true });
            }
        }
        if let Some(inside) = written.strip_prefix('(')
            && let Some((_, "")) = parts(inside)
        {
            return Pause::of(code, &inside[..inside.len() - 1]);
        }
        // Outside of a function it is drawn once.
        if let Some((before, value)) = declared_once(code, written)
            && before.matches('{').count() > before.matches('}').count()
        {
            return Pause::of(before, &value[..end_of_statement(value)]);
        }
        Pause::of_sum(code, written)
    }

    /// `a + b`, `a - b`, `a * b` and `a / b`.
    fn of_sum(code: &str, written: &str) -> Option<Pause> {
        let bare: String = written.chars().filter(|c| !c.is_whitespace()).collect();
        let is_sign = |c: char| "+-*/".contains(c);
        let mut pairs = bare.chars().zip(bare.chars().skip(1));
        if bare.starts_with(is_sign) || pairs.any(|(one, next)| is_sign(one) && is_sign(next)) {
            return None;
        }
        for sign in ['+', '-', '*', '/'] {
            let summands = parts_between(written, sign)?;
            let [first, others @ ..] = &summands[..] else { return None };
            if others.is_empty() {
                continue;
            }
            let mut all = Pause::of(code, first)?;
            for other in others {
                let other = Pause::of(code, other)?;
                all.mean = match sign {
                    '+' => all.mean + other.mean,
                    '-' => all.mean - other.mean,
                    '*' => all.mean * other.mean,
                    _ if other.is_random => return None,
                    _ => all.mean / other.mean,
                };
                all.is_random |= other.is_random;
            }
            return Some(all).filter(|all| all.mean.is_finite());
        }
        None
    }
}

/// Whether the same pause is behind each request.
pub(super) fn is_same_behind_each(of_body: &[JsCall<'_>]) -> bool {
    let steps: Vec<&JsCall<'_>> =
        of_body.iter().filter(|call| method_of(call).is_some() || call.name == "sleep").collect();
    let first = steps.get(1).map(|call| &call.arguments);
    let is_always = steps.iter().all(|call| call.depth == 0);
    is_always && steps.chunks(2).all(|pair| {
        matches!(pair, [request, sleep]
            if method_of(request).is_some() && sleep.name == "sleep" && Some(&sleep.arguments) == first)
    })
}

/// How requests are sent of which it is a condition that decides.
pub(super) const UNDER_CONDITION: &str = "under a condition";

/// Why it is not plain how many requests an iteration sends: how they are sent. `None` if each is
/// sent once in every iteration, and there are no others in the script.
pub(super) fn why_uncounted(all: &[JsCall<'_>], of_body: &[JsCall<'_>]) -> Option<&'static str> {
    let is_loop = |call: &JsCall<'_>| {
        call.name == "for" || LOOPS.iter().any(|name| call.name.ends_with(name))
    };
    let is_request = |call: &&JsCall<'_>| method_of(call).is_some();
    let sent = of_body.iter().filter(is_request).filter(|call| call.depth == 0).count();
    // What begins behind the last request has none in it, but for the ends of statements.
    let last = of_body.iter().rposition(|call| call.name.starts_with("http."));
    let until_last = &of_body[..last.map_or(0, |last| last + 1)];
    let has_end = |name: &str| of_body.iter().any(|call| call.name == name);
    if until_last.iter().any(is_loop) || has_end("while") {
        Some("in a loop")
    } else if until_last.iter().any(|call| call.name == "http.batch") {
        Some("in a batch")
    } else if until_last.iter().any(|call| ["if", "switch"].contains(&call.name))
        || of_body.iter().filter(is_request).any(|call| call.is_conditional)
        || has_end("catch")
    {
        Some(UNDER_CONDITION)
    } else if sent != all.iter().filter(is_request).count() {
        Some("in another function")
    } else {
        None
    }
}

/// Functions that k6 runs once, around all iterations.
pub(super) const RUN_ONCE: [&str; 2] = ["setup", "teardown"];

/// The functions that are iterations: those that scenarios name as `exec`.
pub(super) fn functions_of(options: Option<&JsValue>) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    let scenarios = options.and_then(|options| options.field("scenarios"));
    for (_, scenario) in scenarios.map_or(&[][..], JsValue::fields) {
        let name = match scenario.field("exec") {
            None => "default",
            Some(exec) => exec.text().unwrap_or("its exec"),
        };
        if !names.iter().any(|known| known == name) {
            names.push(name.to_owned());
        }
    }
    if names.is_empty() { vec!["default".to_owned()] } else { names }
}

/// Calls in which plain requests of a batch stand in its place.
pub(super) fn with_batches(calls: Vec<JsCall<'_>>) -> Vec<JsCall<'_>> {
    let mut expanded = Vec::new();
    for call in calls {
        let requests = if call.name == "http.batch" { calls_of_batch(&call) } else { None };
        match requests {
            Some(requests) => expanded.extend(requests),
            None => expanded.push(call),
        }
    }
    expanded
}
