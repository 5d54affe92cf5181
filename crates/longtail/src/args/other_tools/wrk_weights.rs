//! How often a script of wrk sends each of its requests, where what decides is plain: one random
//! number, or one counter, that is compared with numbers. Scripts of k6 count likewise.

use super::lua_literals::{
    arguments, body_of_request, goes_on, parts_and_rest, value_in_request, words,
};

/// How often a script sends each of several requests.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum HowOften {
    /// So many times each, in their order in the script.
    Weights {
        weights: Vec<u32>,
        /// Whether a counter decides, so that they come in a fixed order.
        is_counted: bool,
    },
    /// What decides stands in `request()`, and is not plain.
    Unknown,
    /// They are made before the load, for a list.
    Listed,
}

/// A request that `request()` returns.
struct Arm<'t> {
    /// What must hold, and nothing before it; `None`: else.
    condition: Option<&'t str>,
}

/// What a condition compares.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Draw {
    /// At least 0 and less than this.
    Fraction { of: u32 },
    /// From the least to the most, both included.
    Whole { least: u32, most: u32 },
    /// One more with each request.
    Counter,
}

/// `n % 10 == 0`
pub(super) struct Condition<'t> {
    /// What is drawn, as it stands in the script.
    drawn: &'t str,
    draw: Draw,
    modulus: Option<u32>,
    comparison: &'static str,
    bound: f64,
    /// How many digits the bound has behind its point.
    digits: u32,
}

/// Values of a draw that are tried, at most.
const MOST_VALUES: u32 = 100_000;

impl HowOften {
    /// That of the requests of a script: as many as it has calls of `wrk.format`.
    pub(super) fn in_text(text: &str, requests: usize) -> HowOften {
        let Some(body) = body_of_request(text) else { return HowOften::Listed };
        let is_format = |text: &str| {
            words(text).iter().any(|it| ["wrk.format", "wrk.request"].contains(&it.word))
        };
        if !is_format(body) {
            return HowOften::Listed;
        }
        let arms = arms(body).filter(|arms| arms.len() == requests);
        let plain = arms.and_then(|arms| {
            let (last, conditions) = arms.split_last()?;
            let conditions = conditions.iter().map(|arm| Condition::of(text, body, arm.condition?));
            let conditions: Option<Vec<Condition<'_>>> = conditions.collect();
            weights(&conditions.filter(|_| last.condition.is_none())?)
        });
        plain.unwrap_or(HowOften::Unknown)
    }
}

/// What a body returns, in the order in which it decides; `None` if it does more than that.
fn arms(body: &str) -> Option<Vec<Arm<'_>>> {
    let mut arms: Vec<Arm<'_>> = Vec::new();
    // Whether an `if` is open, what holds in this part of it, and whether it has returned.
    let mut is_open = false;
    let mut condition = None;
    let mut has_returned = false;
    for it in words(body) {
        match it.word {
            "if" if is_open => return None,
            "if" | "elseif" | "else" => {
                if is_open && !has_returned {
                    return None;
                }
                condition = match it.word {
                    "else" => None,
                    _ => Some(text_before(it.behind, "then")?),
                };
                is_open = true;
                has_returned = false;
            }
            "end" if is_open && has_returned => {
                is_open = false;
                condition = None;
                has_returned = false;
            }
            "return" => {
                let value = it.behind.trim_start();
                if behind_format(value).is_some_and(|behind| !goes_on(behind)) {
                    arms.push(Arm { condition });
                } else {
                    let chosen = chosen(value).filter(|_| !is_open)?;
                    arms.extend([Arm { condition: Some(chosen) }, Arm { condition: None }]);
                }
                has_returned = true;
                // Nothing is behind it that counts.
                if condition.is_none() {
                    return Some(arms);
                }
            }
            "end" | "for" | "while" | "repeat" | "do" | "function" | "goto" => return None,
            _ => {}
        }
    }
    None
}

/// What is behind the call of `wrk.format`, or of `wrk.request`, that begins here.
fn behind_format(value: &str) -> Option<&str> {
    let call = value.strip_prefix("wrk.format").or_else(|| value.strip_prefix("wrk.request"));
    let call = call?.trim_start().strip_prefix('(')?;
    parts_and_rest(call).map(|(_, behind)| behind)
}

/// The condition of `(CONDITION) and wrk.format(…) or wrk.format(…)`.
fn chosen(value: &str) -> Option<&str> {
    let condition = text_before(value, "and")?;
    let behind = value[condition.len()..].trim_start().strip_prefix("and")?;
    let behind = behind_format(behind.trim_start())?.trim_start().strip_prefix("or")?;
    (!goes_on(behind_format(behind.trim_start())?)).then_some(condition)
}

/// What stands before the first word of that name.
fn text_before<'t>(text: &'t str, word: &str) -> Option<&'t str> {
    let end = words(text).into_iter().find(|it| it.word == word)?;
    Some(&text[..text.len() - end.behind.len() - word.len()])
}

impl<'t> Condition<'t> {
    /// `None` if it is not plain.
    fn of(text: &'t str, body: &'t str, written: &'t str) -> Option<Condition<'t>> {
        let mut written = written.trim();
        while let Some(inside) = written.strip_prefix('(')
            && let Some((_, "")) = parts_and_rest(inside)
        {
            written = inside[..inside.len() - 1].trim();
        }
        let comparisons = ["<=", ">=", "==", "~=", "<", ">"];
        let found = comparisons.into_iter().find_map(|it| Some((it, written.split_once(it)?)));
        let (comparison, (drawn, bound)) = found?;
        let (drawn, bound) = (drawn.trim(), bound.trim());
        let (drawn, modulus) = match drawn.rsplit_once('%') {
            None => (drawn, None),
            Some((drawn, modulus)) => {
                let modulus = modulus.trim().parse().ok().filter(|modulus| *modulus > 0);
                (drawn.trim(), Some(modulus?))
            }
        };
        let draw = Draw::of(text, body, drawn)?;
        Condition::with(drawn, draw, modulus, comparison, bound)
    }

    /// One with a bound as it is written; `None` if that is no plain number.
    pub(super) fn with(
        drawn: &'t str,
        draw: Draw,
        modulus: Option<u32>,
        comparison: &'static str,
        bound: &str,
    ) -> Option<Condition<'t>> {
        let is_plain = bound.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
        let number: f64 = bound.parse().ok().filter(|_| is_plain)?;
        let digits = bound.split_once('.').map_or(0, |(_, behind)| behind.len() as u32);
        Some(Condition { drawn, draw, modulus, comparison, bound: number, digits })
    }

    /// Whether it draws itself, whatever was drawn before.
    pub(super) fn draws_anew(&self) -> bool {
        self.drawn.contains('(')
    }

    /// Whether it holds for a value of what is drawn.
    fn holds_for(&self, value: f64) -> bool {
        let value = match self.modulus {
            Some(modulus) => value % f64::from(modulus),
            None => value,
        };
        match self.comparison {
            "<=" => value <= self.bound,
            ">=" => value >= self.bound,
            "==" => (value - self.bound).abs() < f64::EPSILON,
            "~=" => (value - self.bound).abs() >= f64::EPSILON,
            "<" => value < self.bound,
            _ => value > self.bound,
        }
    }
}

impl Draw {
    /// `math.random()`, `math.random(9)`, `math.random(0, 9)`, a variable that `request()` gives such
    /// a value, or one that it counts up before it decides.
    fn of(text: &str, body: &str, drawn: &str) -> Option<Draw> {
        if let Some(call) = drawn.strip_prefix("math.random") {
            let call_ends = call.trim_end().ends_with(')') && call.matches(')').count() == 1;
            return Draw::of_ends(&arguments(call)?).filter(|_| call_ends);
        }
        if let Some(value) = value_in_request(text, drawn) {
            let call = value.strip_prefix("math.random")?.trim_start().strip_prefix('(')?;
            let (ends, behind) = parts_and_rest(call)?;
            return Draw::of_ends(&ends).filter(|_| !goes_on(behind));
        }
        let times =
            words(text).iter().filter(|it| it.word == drawn && it.value().is_some()).count();
        let mut steps =
            words(body).into_iter().take_while(|it| !["if", "return"].contains(&it.word));
        let is_counted = steps.any(|it| {
            let added = it
                .value()
                .and_then(|value| value.strip_prefix(drawn)?.trim_start().strip_prefix('+'));
            let behind = added.and_then(|added| added.trim_start().strip_prefix('1'));
            it.word == drawn && behind.is_some_and(|it| it.starts_with([' ', '\n', ';']))
        });
        // Beside that it has its first value.
        (is_counted && times <= 2).then_some(Draw::Counter)
    }

    fn of_ends(ends: &[&str]) -> Option<Draw> {
        let ends: Option<Vec<u32>> = ends.iter().map(|end| end.parse().ok()).collect();
        match ends?[..] {
            [] => Some(Draw::Fraction { of: 1 }),
            [most] => Some(Draw::Whole { least: 1, most }),
            [least, most] => Some(Draw::Whole { least, most }),
            _ => None,
        }
    }
}

/// How many of the values of what is drawn meet each condition and none before it, and how many
/// meet none; `None` if several things are drawn, or one of these is 0.
pub(super) fn weights(conditions: &[Condition<'_>]) -> Option<HowOften> {
    let first = conditions.first()?;
    let is_one = conditions.iter().all(|it| it.drawn == first.drawn);
    // A call draws anew in each condition.
    let is_new = conditions.len() > 1 && first.draws_anew();
    if !is_one || is_new {
        return None;
    }
    let values: Vec<f64> = match first.draw {
        Draw::Fraction { of } => {
            // In the middle of parts that no bound divides.
            let digits = conditions.iter().map(|it| it.digits).max()?;
            let parts = 10_u32.checked_pow(digits)?;
            let all = parts.checked_mul(of).filter(|all| *all <= MOST_VALUES)?;
            if conditions
                .iter()
                .any(|it| ["==", "~="].contains(&it.comparison) || it.modulus.is_some())
            {
                return None;
            }
            (0..all).map(|part| (f64::from(part) + 0.5) / f64::from(parts)).collect()
        }
        Draw::Whole { least, most } => {
            let count = most.checked_sub(least)?.checked_add(1)?;
            (count <= MOST_VALUES).then(|| (least..=most).map(f64::from).collect())?
        }
        Draw::Counter => {
            // After so many it begins again.
            let mut round = 1_u32;
            for condition in conditions {
                let modulus = condition.modulus?;
                round = round.checked_mul(modulus / common_divisor(round, modulus))?;
            }
            (round <= MOST_VALUES).then(|| (0..round).map(f64::from).collect())?
        }
    };
    let mut weights = vec![0_u32; conditions.len() + 1];
    for value in values {
        let met = conditions.iter().position(|condition| condition.holds_for(value));
        weights[met.unwrap_or(conditions.len())] += 1;
    }
    let is_counted = first.draw == Draw::Counter;
    (!weights.contains(&0)).then_some(HowOften::Weights { weights, is_counted })
}

pub(super) fn common_divisor(one: u32, other: u32) -> u32 {
    if other == 0 { one } else { common_divisor(other, one % other) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_conditions_are_weights_and_others_are_not_known() {
        let (a, b, c) = ("wrk.format('GET', '/a')", "wrk.format('GET', '/b')", "wrk.format()");
        let two = |condition: &str| format!("if {condition} then return {a} else return {b} end");
        for (body, expected) in [
            (two("math.random() < 0.8"), &[8, 2][..]),
            (two("(math.random() >= 0.25)"), &[75, 25]),
            (two("math.random(10) <= 9"), &[9, 1]),
            (two("math.random(0, 99) == 7"), &[1, 99]),
            (format!("n = n + 1\nif n % 10 == 0 then return {a} end\nreturn {b}"), &[1, 9]),
            (format!("n = n + 1; return (n % 10 ~= 0) and {a} or {b}"), &[9, 1]),
            (
                format!(
                    "n = n + 1\nif n % 2 == 0 then return {a} elseif n % 3 == 0 then return {b} end -- end\nreturn {c}"
                ),
                &[3, 1, 2],
            ),
            (
                format!(
                    "local x = math.random()\nif x < 0.5 then return {a} elseif x < 0.9 then return {b} else return {c} end"
                ),
                &[5, 4, 1],
            ),
            (
                format!(
                    "local x = math.random(100)\nif x > 90 then return {a} end\nif x > 50 then wrk.body = 'end'; return {b} end\nreturn {c}"
                ),
                &[10, 40, 50],
            ),
        ] {
            let script = format!("local n = 0\nrequest = function()\n  {body}\nend\n");
            let found = HowOften::in_text(&script, script.matches("wrk.format").count());
            let is_counted = body.starts_with("n =");
            let weights = expected.to_vec();
            assert_eq!(found, HowOften::Weights { weights, is_counted }, "{script}");
        }
        for body in [
            two("math.random() < share"),
            two("math.random() < 0.5 and x"),
            two("math.random() < 0"),
            two("math.random() * 2 < 1"),
            two("math.random(3) + math.random(3) < 3"),
            two("n % 10 == 0"),
            two("n < 10"),
            format!("n = n + 1\nif n == 10 then n = 0; return {a} end\nreturn {b}"),
            format!("n = n + 10\n{}", two("n % 10 == 0")),
            format!("if x then {} end return {c}", two("math.random() < 0.5")),
            format!(
                "if math.random() < 0.5 then return {a} elseif math.random() < 0.5 then return {b} end return {c}"
            ),
            format!("for i = 1, 3 do {} end", two("math.random() < 0.5")),
            format!("if math.random() < 0.5 then print('x') end return {a} or {b}"),
            format!("if math.random() < 0.5 then return {a} .. {b} end return {c}"),
            format!("local r = {{ {a}, {b} }} return r[i]"),
        ] {
            let script = format!("local n = 0\nfunction request()\n  {body}\nend\n");
            let found = HowOften::in_text(&script, script.matches("wrk.format").count());
            assert_eq!(found, HowOften::Unknown, "{script}");
        }
        let listed = format!("local r = {{ {a}, {b} }}\nfunction request() return r[i] end");
        assert_eq!(HowOften::in_text(&listed, 2), HowOften::Listed);
    }
}
