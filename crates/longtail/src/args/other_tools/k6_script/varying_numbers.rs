//! Numbers in a script of k6 that differ from request to request: random ones, and that of the
//! virtual user. They become ranges, as `--mix` has them.

use crate::args::other_tools::js_literals::{BEGIN, END, TEMPLATE_OF_URL};

/// Whether a random number is in this text.
pub(super) fn varies(text: &str) -> bool {
    text.contains(BEGIN)
}

/// A random number as `--mix` has it: `{0..99}`.
pub(crate) fn with_ends(text: &str) -> String {
    text.replace(BEGIN, "{").replace(END, "}")
}

/// A URL as it stands in the script, without quotes; random numbers are ranges.
pub(super) fn as_written(url: &str) -> String {
    let template = url.strip_prefix(TEMPLATE_OF_URL).unwrap_or(url);
    let (begin, end) = (format!("\"{BEGIN}"), format!("{END}\""));
    let mut pieces = template.trim_matches(['\'', '"', '`']).split(&*begin);
    let mut written = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        let behind = piece.split_once(&*end).map_or(piece, |(_, behind)| behind);
        written.extend([USER_NUMBER, behind]);
    }
    let only_user = format!("${{{ONLY_USER}}}");
    with_ends(&written.replace(&only_user, &format!("${{{USER_NUMBER}}}")))
}

/// The number of a virtual user in a script.
const USER_NUMBER: &str = "__VU";

/// What stands for it where there is one virtual user.
const ONLY_USER: &str = "'1'";

/// The script with a text for the number of each virtual user, `__VU`, which is 1 to `users`; `None`
/// if it has none.
pub(super) fn with_user_numbers(code: &str, users: u32) -> Option<String> {
    // The double quotes tell it from a random number.
    let text = match users {
        1 => ONLY_USER.to_owned(),
        _ => format!("\"{BEGIN}1..{users}{END}\""),
    };
    let is_of_name = |c: char| c.is_alphanumeric() || "_$".contains(c);
    let mut pieces = code.split(USER_NUMBER);
    let mut found = pieces.next().unwrap_or_default().to_owned();
    let mut is_found = false;
    for behind in pieces {
        let is_other = behind.starts_with(is_of_name) || found.ends_with(is_of_name);
        is_found |= !is_other;
        found.extend([if is_other { USER_NUMBER } else { &text }, behind]);
    }
    is_found.then_some(found)
}

/// The script with a text for each random whole number in it: `Math.floor(Math.random() * 100)` is
/// 0 to 99, with `+ 1` behind it 1 to 100, and `randomIntBetween(1, 9)` of k6's library 1 to 9.
pub(super) fn with_random_numbers(code: &str) -> String {
    const OF_LIBRARY: &str = "randomIntBetween(";
    let found = with_ranges(code, "Math.floor(Math.random()", random_number);
    // A script's own function of that name may do something else.
    if code.contains(&format!("function {OF_LIBRARY}")) {
        return found;
    }
    with_ranges(&found, OF_LIBRARY, random_between)
}

/// The script with a text in the place of each such call whose ends `read` knows.
fn with_ranges(code: &str, call: &str, read: impl Fn(&str) -> Option<RandomNumber<'_>>) -> String {
    let mut pieces = code.split(call);
    let mut found = pieces.next().unwrap_or_default().to_owned();
    for behind in pieces {
        let is_other = found.ends_with(|c: char| c.is_alphanumeric() || "_$.".contains(c));
        match read(behind).filter(|_| !is_other) {
            Some(RandomNumber { least, most, rest }) => {
                found.extend([&format!("'{BEGIN}{least}..{most}{END}'"), rest]);
            }
            None => found.extend([call, behind]),
        }
    }
    found
}

/// A random whole number of a script.
struct RandomNumber<'c> {
    least: u64,
    most: u64,
    /// What stands behind its call.
    rest: &'c str,
}

/// `1, 9)`: what stands behind the name of the call.
fn random_between(behind: &str) -> Option<RandomNumber<'_>> {
    let (ends, rest) = behind.split_once(')')?;
    let (least, most) = ends.split_once(',')?;
    let (least, most): (u64, u64) = (least.trim().parse().ok()?, most.trim().parse().ok()?);
    (least < most).then_some(RandomNumber { least, most, rest })
}

/// The mean of a random number that is all of this text.
pub(super) fn mean_of(written: &str) -> Option<f64> {
    let ends = written.trim().strip_prefix('\'')?.strip_prefix(BEGIN)?;
    let (least, most) = ends.strip_suffix('\'')?.strip_suffix(END)?.split_once("..")?;
    Some(f64::midpoint(least.parse().ok()?, most.parse().ok()?))
}

/// ` * 100) + 1`: what stands behind the call.
fn random_number(behind: &str) -> Option<RandomNumber<'_>> {
    let (count, rest) = behind.trim_start().strip_prefix('*')?.split_once(')')?;
    let count: u64 = count.trim().parse().ok().filter(|count| *count > 1)?;
    let Some(added) = rest.trim_start().strip_prefix('+').map(str::trim_start) else {
        return Some(RandomNumber { least: 0, most: count - 1, rest });
    };
    let digits = added.find(|c: char| !c.is_ascii_digit()).unwrap_or(added.len());
    let (least, after) = added.split_at(digits);
    // A text that is added is no number.
    match least.parse::<u64>() {
        Ok(least) => Some(RandomNumber { least, most: least + count - 1, rest: after }),
        Err(_) => Some(RandomNumber { least: 0, most: count - 1, rest }),
    }
}
