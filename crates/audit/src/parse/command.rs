//! The command line that stands above an output, where one does, and what it asked for.

use super::scan;

/// How far above its output a command line is looked for.
const NEAR: usize = 40;

/// What stands behind a shell's prompt, or the line itself.
pub(super) fn bare(line: &str) -> &str {
    let behind = ["$ ", "% ", "# "].iter().filter_map(|prompt| line.rfind(prompt).map(|at| at + 2)).max();
    let line = behind.map_or(line, |at| &line[at..]);
    line.trim().trim_matches('`').trim()
}

/// The nearest command line of `program` above line `at`, but not above `floor`.
pub(super) fn above<'a>(lines: &'a [String], at: usize, floor: usize, program: &str) -> Option<&'a str> {
    lines[floor.max(at.saturating_sub(NEAR)).min(at)..at].iter().rev().map(|line| bare(line)).find(|line| {
        let mut words = line.split_whitespace();
        words.next().is_some_and(|first| first.rsplit('/').next() == Some(program))
            && (line.contains("://") || words.next().is_some_and(|second| second.starts_with('-')))
    })
}

/// The line below the last one above line `at` that has `end` in it: where the output before this one ends.
pub(super) fn below(lines: &[String], at: usize, end: &str) -> usize {
    lines[..at].iter().rposition(|line| line.contains(end)).map_or(0, |last| last + 1)
}

/// The value of the first of `names` that is given and that `read` makes sense of: `-c 20`, `-c20`, `-c=20`,
/// `--connections=20`.
pub(super) fn option<T>(command: &str, names: &[&str], read: impl Fn(&str) -> Option<T>) -> Option<T> {
    let words: Vec<&str> = command.split_whitespace().collect();
    words.iter().enumerate().find_map(|(at, word)| {
        names.iter().find_map(|name| {
            let rest = word.strip_prefix(name)?;
            let long = name.len() > 2;
            match rest.strip_prefix('=') {
                Some(value) => read(value),
                None if rest.is_empty() => read(words.get(at + 1)?),
                None if long => None,
                None => read(rest),
            }
        })
    })
}

/// The value of an option that is a count.
pub(super) fn count(command: &str, names: &[&str]) -> Option<u64> {
    option(command, names, scan::option_count)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_found_however_they_are_joined() {
        for text in ["hey -c 20 -n 5", "wrk -t2 -c20", "hey -cpus 16 -c 20", "x --connections=20 -t8", "x -c=20"] {
            assert_eq!(count(text, &["-c", "--connections"]), Some(20), "{text}");
        }
        assert_eq!(count("hey -cpus 16 http://x", &["-c"]), None);
    }

    #[test]
    fn a_command_is_found_behind_its_prompt_and_prose_is_none() {
        let lines = ["me@box:~$ hey -z 20s http://x/", "`hey` is a load tester, see https://x", "", "Summary:"];
        let lines = lines.map(str::to_owned);
        assert_eq!(above(&lines, 3, 0, "hey"), Some("hey -z 20s http://x/"));
        assert_eq!(above(&lines, 3, 1, "hey"), None);
    }
}
