//! Values of JSON by their paths, and conditions on them.

use serde_json::Value;

/// The values at a path such as `runs.*.tally`. A step is a key, an index, `*` for every element,
/// or `KEY=VALUE&KEY=VALUE` for the elements that have these values.
pub(crate) fn at<'v>(whole: &'v Value, path: &str) -> Vec<&'v Value> {
    path.split('.').fold(vec![whole], |found, step| {
        let is_so = |one: &&Value| {
            let mut wanted = step.split('&').filter_map(|pair| pair.split_once('='));
            wanted.all(|(key, value)| plain(&one[key]) == value)
        };
        let values = found.into_iter().flat_map(|value| match value {
            Value::Array(all) if step == "*" || step.contains('=') => {
                all.iter().filter(is_so).collect()
            }
            Value::Object(all) if step == "*" => all.values().collect(),
            Value::Array(all) => {
                vec![step.parse().ok().and_then(|at: usize| all.get(at)).unwrap_or(&Value::Null)]
            }
            _ => vec![value.get(step).unwrap_or(&Value::Null)],
        });
        values.collect()
    })
}

pub(super) fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// The value of a sum of numbers and paths, such as `2 * runs.*.connections + 1`: one number for
/// each element. `sum`, `count`, `median` or `max` before a path make one number of all. `None` if
/// a value is not a number.
fn amounts(whole: &Value, sum: &str) -> Option<Vec<f64>> {
    let mut total = vec![0.0];
    for term in sum.split(" + ") {
        let (factor, term) = term
            .split_once(" * ")
            .map_or((1.0, term), |(factor, term)| (factor.parse().unwrap(), term));
        let (function, path) = term.split_once(' ').unwrap_or(("", term));
        let found = || at(whole, path);
        let numbers = || found().into_iter().map(Value::as_f64).collect::<Option<Vec<f64>>>();
        let numbers = match (function, path.parse()) {
            (_, Ok(number)) => vec![number],
            ("count", _) => vec![found().len() as f64],
            ("sum", _) => {
                vec![
                    found()
                        .into_iter()
                        .filter(|value| !value.is_null())
                        .map(Value::as_f64)
                        .sum::<Option<f64>>()?,
                ]
            }
            ("max", _) => vec![numbers()?.into_iter().fold(f64::MIN, f64::max)],
            ("median", _) => {
                let mut sorted = numbers()?;
                sorted.sort_by(f64::total_cmp);
                vec![*sorted.get(sorted.len() / 2)?]
            }
            _ => numbers()?,
        };
        let length = if numbers.len() == 1 { total.len() } else { numbers.len() };
        // A single number is added to each of the others.
        if length == 0 || total.len() != 1 && total.len() != length {
            return None;
        }
        total = (0..length)
            .map(|n| total[n % total.len()] + factor * numbers[n % numbers.len()])
            .collect();
    }
    Some(total)
}

/// Why a condition such as `runs.*.connections = 4` doesn't hold; `None` if it does. The signs are
/// `=`, `!=`, `<`, `>`, `has` and `lacks` (text), and `~ VALUE OFF` (at most OFF apart). It must
/// hold for every value at the path. `||` joins alternatives.
pub(crate) fn unlike(whole: &Value, condition: &str) -> Option<String> {
    if let Some((one, other)) = condition.split_once(" || ") {
        return unlike(whole, one).and_then(|_| unlike(whole, other));
    }
    let is_sign = |word: &&str| ["=", "!=", "has", "lacks", "<", ">", "~"].contains(word);
    let sign =
        condition.split(' ').find(is_sign).unwrap_or_else(|| panic!("'{condition}' has no sign"));
    let (left, right) = condition.split_once(&format!(" {sign} ")).unwrap();
    let (right, off) = if sign == "~" { right.rsplit_once(' ').unwrap() } else { (right, "0") };
    let off: f64 = off.parse().unwrap();
    let json =
        serde_json::from_str::<Value>(right).ok().filter(|json| sign == "!=" || !json.is_number());
    let found = at(whole, left);
    let both = || amounts(whole, left).zip(amounts(whole, right));
    let of_numbers = |holds: fn(f64, f64, f64) -> bool| {
        both().is_some_and(|(left, right)| {
            let can_be_paired = right.len() == 1 || left.len() == right.len();
            can_be_paired
                && left
                    .iter()
                    .enumerate()
                    .all(|(n, left)| holds(*left, right[n % right.len()], off))
        })
    };
    let of_each = |holds: &dyn Fn(&Value) -> bool| {
        !found.is_empty() && found.iter().all(|value| holds(value))
    };
    let holds = match (sign, &json) {
        ("has", _) => of_each(&|value| plain(value).contains(right)),
        ("lacks", _) => of_each(&|value| !value.is_null() && !plain(value).contains(right)),
        ("=", Some(json)) => of_each(&|value| value == json),
        ("!=", Some(json)) => of_each(&|value| value != json),
        ("<", _) => of_numbers(|left, right, _| left < right),
        (">", _) => of_numbers(|left, right, _| left > right),
        _ => of_numbers(|left, right, off| {
            (left - right).abs() <= off.max(f64::EPSILON * left.abs())
        }),
    };
    (!holds).then(|| format!("{:?}, {found:?}", both()))
}

/// Whether a line only says how long a step has taken so far (`…, 0:10`). Such a line comes every
/// ten seconds, so a slow machine has more of them.
pub(super) fn is_so_far(line: &str) -> bool {
    let time = line.rsplit_once(", ").map_or("", |(_, time)| time);
    let is_number = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    time.split_once(':').is_some_and(|(minutes, seconds)| is_number(minutes) && is_number(seconds))
}

pub(super) fn number(word: &str) -> u64 {
    word.parse().unwrap_or_else(|_| panic!("{word} is not a number"))
}

pub(crate) fn unescaped(text: &str) -> String {
    let mut parts = text
        .replace("\\n", "\n")
        .replace("\\r", "\r")
        .replace("\\t", "\t")
        .split("\\x")
        .map(str::to_owned)
        .collect::<Vec<_>>();
    for part in &mut parts[1..] {
        let code = u8::from_str_radix(&part[..2], 16).unwrap();
        part.replace_range(..2, &char::from(code).to_string());
    }
    parts.concat()
}
