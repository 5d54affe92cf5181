//! What one iteration of a script of k6 does: how often it sends its requests, and its pauses.

use model::Nanos;

use super::script_requests::method_of;
use super::varying_numbers::mean_of;
use crate::args::other_tools::js_literals::{
    JsCall, JsValue, calls_of_batch, value_with_constants,
};

/// Calls around a request that is not sent exactly once in each iteration.
const LOOPS: [&str; 3] = [".forEach", ".map", ".reduce"];

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

/// A pause of an iteration.
pub(super) struct Pause {
    /// In seconds.
    pub(super) mean: f64,
    pub(super) is_random: bool,
}

impl Pause {
    /// The pauses that are made once in each iteration and have a plain length.
    pub(super) fn all_in(code: &str, of_body: &[JsCall<'_>]) -> Vec<Pause> {
        let sleeps = of_body.iter().filter(|call| call.depth == 0 && call.name == "sleep");
        sleeps.filter_map(|call| Pause::of(code, call.arguments.first()?)).collect()
    }

    /// `1`, `Math.random() * 2`, `randomIntBetween(1, LONGEST)`, or a random whole number.
    pub(super) fn of(code: &str, written: &str) -> Option<Pause> {
        let number = |text: &str| value_with_constants(code, text).number();
        if let Some(mean) = number(written) {
            return Some(Pause { mean, is_random: false });
        }
        if let Some(mean) = mean_of(written) {
            return Some(Pause { mean, is_random: true });
        }
        let bare: String = written.chars().filter(|c| !c.is_whitespace()).collect();
        let most = bare.strip_prefix("Math.random()*").or(bare.strip_suffix("*Math.random()"));
        let ends = bare.strip_prefix("randomIntBetween(").and_then(|rest| rest.strip_suffix(')'));
        let mean = match (bare == "Math.random()", most, ends) {
            (true, _, _) => 0.5,
            (_, Some(most), _) => number(most)? / 2.0,
            (_, _, Some(ends)) => {
                let (least, most) = ends.split_once(',')?;
                f64::midpoint(number(least)?, number(most)?)
            }
            _ => return None,
        };
        Some(Pause { mean, is_random: true })
    }
}

/// Whether the same pause is behind each request.
pub(super) fn is_same_behind_each(of_body: &[JsCall<'_>]) -> bool {
    let top = of_body.iter().filter(|call| call.depth == 0);
    let steps: Vec<&JsCall<'_>> =
        top.filter(|call| method_of(call).is_some() || call.name == "sleep").collect();
    let first = steps.get(1).map(|call| &call.arguments);
    steps.chunks(2).all(|pair| {
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
