//! How wide text may be, and lines broken to keep to it.
//!
//! Widths are of characters, each one column wide on a terminal. Nothing is cut: a word that has no space to break at
//! is wider where it must be.

/// Columns of a line at the most; the default is no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Width(Option<usize>);

impl Width {
    /// As wide as it takes.
    pub const ANY: Width = Width(None);
    /// The fewest columns that are kept to: on fewer, lines are as for so many.
    pub const LEAST: usize = 40;

    /// At most so many columns, and [`Width::LEAST`] where they are fewer.
    pub fn of(columns: usize) -> Width {
        Width(Some(columns.max(Width::LEAST)))
    }

    /// The columns, where there is a limit.
    pub fn columns(self) -> Option<usize> {
        self.0
    }

    /// Whether a line of so many columns fits.
    pub fn fits(self, columns: usize) -> bool {
        self.0.is_none_or(|most| columns <= most)
    }
}

/// Columns of a text on one line.
pub(crate) fn columns_of(text: &str) -> usize {
    text.chars().count()
}

/// A line that ends, broken at spaces where it is too wide; what follows is indented by two.
pub fn broken(line: &str, width: Width) -> String {
    let mut text = String::new();
    flow(&mut text, width, "", 2, line);
    text
}

/// `line` after `before`, broken at spaces; what follows is indented as far as `before` is long, and two more where the line
/// itself is indented.
pub fn wrap(text: &mut String, width: Width, before: &str, line: &str) {
    let own = line.len() - line.trim_start().len();
    let before = format!("{before}{}", &line[..own]);
    let hang = columns_of(&before) + if own > 0 { 2 } else { 0 };
    flow(text, width, &before, hang, line.trim_start());
}

/// `line` after `before`: as it is where it fits, on this line or on the next, else broken at spaces; what follows is indented by `hang`.
pub(crate) fn flow(text: &mut String, width: Width, before: &str, hang: usize, line: &str) {
    let gap = |before: &str| if before.is_empty() || before.ends_with(' ') { "" } else { " " };
    let fits = |before: &str, part: &str| width.fits(columns_of(before) + gap(before).len() + columns_of(part));
    let is_whole = width.fits(hang + columns_of(line)) || fits(before, line);
    let parts = if is_whole { vec![line] } else { unbroken(line).collect() };
    let mut current = before.to_owned();
    for part in parts {
        if !fits(&current, part) && columns_of(&current) > hang {
            text.push_str(current.trim_end());
            text.push('\n');
            current = " ".repeat(hang);
        }
        current.push_str(gap(&current));
        current.push_str(part);
    }
    text.push_str(current.trim_end());
    text.push('\n');
}

/// What of a piece stays on one line: a word, or a number and its unit as `3 %` and `3 ms,`.
fn unbroken(piece: &str) -> impl Iterator<Item = &str> {
    let mut rest = piece.trim();
    std::iter::from_fn(move || {
        let is_end = |at: &usize| {
            let unit = rest[at + 1..].split(' ').next().unwrap_or_default();
            let unit = unit.trim_end_matches(|it: char| it.is_ascii_punctuation() && it != '%');
            !(rest[..*at].ends_with(|it: char| it.is_ascii_digit()) && UNITS.contains(&unit))
        };
        let end = rest.match_indices(' ').map(|(at, _)| at).find(is_end).unwrap_or(rest.len());
        let (word, after) = rest.split_at(end);
        rest = after.trim_start();
        (!word.is_empty()).then_some(word)
    })
}

/// What stays on the line of its number.
const UNITS: [&str; 6] = ["%", "s", "ms", "µs", "kB", "MB"];

/// A command line broken between its words, so that a shell still takes it as one.
pub(crate) fn command(line: &str, width: Width) -> String {
    let mut lines: Vec<String> = Vec::new();
    for word in words(line) {
        match lines.last_mut() {
            // Each line but the last ends in ` \`.
            Some(line) if width.fits(columns_of(line) + 1 + columns_of(word) + 2) => line.extend([" ", word]),
            Some(_) => lines.push(format!("    {word}")),
            None => lines.push(word.to_owned()),
        }
    }
    lines.join(" \\\n") + "\n"
}

/// The words of a command line as a shell parts them, quotes and all.
pub(crate) fn words(line: &str) -> Vec<&str> {
    let (mut is_quoted, mut is_escaped) = (false, false);
    let parts = line.split(move |c| {
        let is_end = c == ' ' && !is_quoted && !is_escaped;
        // In single quotes, which are the only ones that `plan::quoted` makes, a backslash is itself.
        is_quoted ^= c == '\'' && !is_escaped;
        is_escaped = c == '\\' && !is_quoted && !is_escaped;
        is_end
    });
    parts.filter(|word| !word.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "0123456789 0123456789 0123456789 0123456789";

    fn wrapped(columns: usize, before: &str, line: &str) -> String {
        let mut text = String::new();
        wrap(&mut text, Width::of(columns), before, line);
        text
    }

    #[test]
    fn a_long_line_is_broken_at_spaces_and_hangs_under_its_beginning() {
        let text = wrapped(40, "load     ", TEXT);
        assert_eq!(text, "load     0123456789 0123456789\n         0123456789 0123456789\n");
        let text = wrapped(40, "", &format!("  {TEXT}"));
        assert_eq!(text, "  0123456789 0123456789 0123456789\n    0123456789\n");
    }

    #[test]
    fn what_fits_is_as_it_was() {
        assert_eq!(wrapped(40, "a  ", "b  c"), "a  b  c\n");
        let mut text = String::new();
        wrap(&mut text, Width::ANY, "  ", &format!("{TEXT}  {TEXT}"));
        assert_eq!(text, format!("  {TEXT}  {TEXT}\n"));
    }

    #[test]
    fn a_word_that_is_too_long_stays_whole() {
        let word = "x".repeat(200);
        assert_eq!(wrapped(110, "  ", &format!("at {word}")), format!("  at\n  {word}\n"));
        assert_eq!(wrapped(40, "  ", &word), format!("  {word}\n"), "a line with nothing on it has no more room");
    }

    #[test]
    fn fewer_columns_than_the_least_are_the_least() {
        assert_eq!(Width::of(1).columns(), Some(Width::LEAST));
    }

    #[test]
    fn a_number_keeps_its_unit() {
        let parts: Vec<&str> = unbroken("p99 3251 → 418 ms (-87 %), at 5 s each").collect();
        assert_eq!(parts, ["p99", "3251", "→", "418 ms", "(-87 %),", "at", "5 s", "each"]);
    }

    #[test]
    fn a_command_line_is_broken_where_a_shell_parts_its_words() {
        let line = r"longtail sweep -w2 -C 'a  very long name.rb' --url 'it'\''s one word of a shell' -- ruby x.rb";
        let text = command(line, Width::of(40));
        assert!(text.lines().all(|line| line.chars().count() <= 40), "{text}");
        assert_eq!(text.replace(" \\\n    ", " "), format!("{line}\n"));
        assert!(text.contains("'a  very long name.rb'") && text.contains(r"'it'\''s one word of a shell'"), "{text}");
        assert_eq!(command(line, Width::ANY), format!("{line}\n"));
    }
}
