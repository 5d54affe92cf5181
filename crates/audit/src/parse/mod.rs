//! The text of a load generator into claims; one file a tool. Whatever is not understood is absent: nothing here fails.

mod ab;
mod attack;
mod bombardier;
mod command;
mod h2load;
mod hey;
mod long_tail;
mod oha;
mod scan;
mod vegeta;
mod workload;
mod wrk;
mod wrk2;
mod wrk_rows;

use crate::claim::{Claim, Server};

/// Every claim in the text, in its order, whosever it is.
pub fn claims(text: &str) -> Vec<Claim> {
    let lines = cleaned(text);
    let each = [
        wrk::claims,
        wrk2::claims,
        hey::claims,
        oha::claims,
        ab::claims,
        bombardier::claims,
        h2load::claims,
        vegeta::claims,
        attack::claims,
        long_tail::claims,
        wrk_rows::claims,
        workload::claims,
    ];
    let mut claims: Vec<Claim> = each.iter().flat_map(|parse| parse(&lines)).filter(Claim::says_something).collect();
    claims.sort_by_key(|claim| claim.line);
    claims
}

/// Lines without what only a terminal, a mail or another system adds: colours, quotation marks, carriage returns.
fn cleaned(text: &str) -> Vec<String> {
    // A progress bar ends its frames with a bare carriage return: each is a line.
    text.replace("\r\n", "\n").split(['\n', '\r']).map(|line| without_colours(quoted(line))).collect()
}

/// What a quoted line (`> text`) quotes.
fn quoted(line: &str) -> &str {
    let mut line = line;
    while let Some(rest) = line.trim_start().strip_prefix("> ") {
        line = rest;
    }
    line
}

fn without_colours(line: &str) -> String {
    let mut plain = String::with_capacity(line.len());
    let mut chars = line.chars();
    while let Some(c) = chars.next() {
        if c != '\u{1b}' {
            plain.push(if c == '\u{a0}' { ' ' } else { c });
        } else if chars.next() == Some('[') {
            // Parameters, then one letter.
            for c in chars.by_ref() {
                if c.is_ascii_alphabetic() {
                    break;
                }
            }
        }
    }
    plain
}

/// Where each block starts that `opens` recognises, and where the next one does.
fn blocks(lines: &[String], opens: impl Fn(&str) -> bool) -> Vec<(usize, usize)> {
    let starts: Vec<usize> =
        lines.iter().enumerate().filter(|(_, line)| opens(line.trim())).map(|(at, _)| at).collect();
    let ends = starts.iter().skip(1).copied().chain([lines.len()]);
    starts.iter().copied().zip(ends).collect()
}

/// Puma's workers and threads, from a line with its options: `-w4  -t5:5`. Without `-w` it is one process.
fn server(line: &str) -> Option<Server> {
    let threads = command::option(line, &["-t"], |word| word.trim_end_matches(',').split_once(':')?.1.parse().ok())?;
    let workers = command::option(line, &["-w"], |word| word.parse().ok()).unwrap_or(1).max(1);
    (threads > 0).then_some(Server { workers, threads })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_quotes_and_carriage_returns_are_no_part_of_a_line() {
        assert_eq!(cleaned("> > \u{1b}[31;1mred\u{1b}[0m\r\n10%\r20%"), ["red", "10%", "20%"]);
    }

    #[test]
    fn pumas_options_tell_its_slots() {
        let slots = |line| server(line).map(|server| server.slots());
        assert_eq!(slots("Puma: -w4  -t5:5  dly 0.2   ───"), Some(20));
        assert_eq!(slots("Server cluster mode -w2 -t5:5, bind: tcp6"), Some(10));
        assert_eq!(slots("x.sh -t5:5 -R100"), Some(5));
        assert_eq!(slots("wrk -t8 -c16"), None);
    }
}
