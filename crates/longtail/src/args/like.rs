//! hey's and wrk's command lines, taken as they are: their words become ours.
//!
//! Where a word has no meaning here, that is said and nothing is sent; a flag that is silently ignored would make two
//! results look comparable that are not.

/// Whose command line it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Tool {
    /// rakyll/hey
    Hey,
    /// wg/wrk
    Wrk,
}

/// One flag of the other tool.
struct Flag {
    names: &'static [&'static str],
    /// What it becomes; `{}` is its value. Empty: it is taken and changes nothing. `None`: it cannot be done.
    ours: Option<&'static [&'static str]>,
    takes_value: bool,
}

const fn flag(names: &'static [&'static str], ours: Option<&'static [&'static str]>, takes_value: bool) -> Flag {
    Flag { names, ours, takes_value }
}

const HEY: &[Flag] = &[
    flag(&["n"], Some(&["-n", "{}"]), true),
    flag(&["c"], Some(&["-c", "{}"]), true),
    flag(&["q"], Some(&["-q", "{}"]), true),
    flag(&["z"], Some(&["--for", "{}"]), true),
    flag(&["m"], Some(&["-m", "{}"]), true),
    flag(&["H"], Some(&["-H", "{}"]), true),
    flag(&["t"], Some(&["--timeout", "{}"]), true),
    flag(&["A"], Some(&["-A", "{}"]), true),
    flag(&["d"], Some(&["-d", "{}"]), true),
    flag(&["D"], Some(&["-D", "{}"]), true),
    flag(&["T"], Some(&["-T", "{}"]), true),
    flag(&["U"], Some(&["-H", "User-Agent: {}"]), true),
    flag(&["a"], Some(&["-a", "{}"]), true),
    flag(&["host"], Some(&["--host", "{}"]), true),
    flag(&["disable-keepalive"], Some(&["--disable-keepalive"]), false),
    flag(&["disable-compression", "disable-redirects"], Some(&[]), false),
    flag(&["cpus"], Some(&["--generator-threads", "{}"]), true),
    flag(&["o"], Some(&["--log=-.{}"]), true),
    flag(&["x"], None, true),
    flag(&["h2"], None, false),
    flag(&["more"], Some(&[]), false),
];

const WRK: &[Flag] = &[
    flag(&["t", "threads"], Some(&["--generator-threads", "{}"]), true),
    flag(&["c", "connections"], Some(&["-c", "{}"]), true),
    flag(&["d", "duration"], Some(&["--for", "{}"]), true),
    flag(&["H", "header"], Some(&["-H", "{}"]), true),
    flag(&["L", "latency"], Some(&[]), false),
    flag(&["T", "timeout"], Some(&["--timeout", "{}"]), true),
    flag(&["s", "script"], None, true),
];

/// Our words for the other tool's, its defaults among them.
///
/// # Errors
/// One line, where a flag is not that tool's or cannot be done.
pub(crate) fn translate(tool: Tool, words: &[String]) -> Result<Vec<String>, String> {
    let (name, flags, defaults): (_, _, &[(&str, &[&str])]) = match tool {
        // hey does not verify certificates, and sends 200 requests over 50 connections where nothing else is said.
        Tool::Hey => (
            "hey",
            HEY,
            &[("-c", &["-c", "50"]), ("--timeout", &["--timeout", "20s"]), ("--insecure", &["--insecure"])],
        ),
        // wrk does not verify them either.
        Tool::Wrk => (
            "wrk",
            WRK,
            &[
                ("-c", &["-c", "10"]),
                ("--for", &["--for", "10s"]),
                ("--generator-threads", &["--generator-threads", "2"]),
                ("--timeout", &["--timeout", "2s"]),
                ("--insecure", &["--insecure"]),
            ],
        ),
    };
    let mut ours: Vec<String> = Vec::new();
    let mut words = words.iter();
    while let Some(word) = words.next() {
        if !word.starts_with('-') || word == "-" {
            ours.push(word.clone());
            continue;
        }
        let (flag, glued) =
            find(tool, flags, word).ok_or_else(|| format!("{word} is no flag of {name} that is known here"))?;
        let Some(template) = flag.ours else {
            return Err(format!("{name}'s {word} cannot be done here: leave it out"));
        };
        let value = match (flag.takes_value, glued) {
            (false, _) => String::new(),
            (true, Some(value)) => value,
            (true, None) => words.next().cloned().ok_or_else(|| format!("{name}'s {word} wants a value"))?,
        };
        let value = if tool == Tool::Wrk { without_unit(&value) } else { value };
        // hey's -t 0 waits for ever; a day is as good.
        let value = if tool == Tool::Hey && flag.names == ["t"] && value == "0" { "24h".to_owned() } else { value };
        ours.extend(template.iter().map(|part| part.replace("{}", &value)));
    }
    for (flag, words) in defaults {
        if !ours.iter().any(|word| word == flag) {
            ours.extend(words.iter().map(|word| (*word).to_owned()));
        }
    }
    if tool == Tool::Hey && !ours.iter().any(|word| word == "-n" || word == "--for") {
        ours.extend(["-n", "200"].map(str::to_owned));
    }
    // hey's -z ends the run, whatever -n says.
    if let (Tool::Hey, Some(at), true) = (tool, ours.iter().position(|w| w == "-n"), ours.iter().any(|w| w == "--for"))
    {
        ours.drain(at..at + 2);
    }
    Ok(ours)
}

/// wrk's numbers may end in k or M: thousands and millions.
fn without_unit(value: &str) -> String {
    let scaled = |digits: &str, by: f64| digits.parse::<f64>().ok().map(|n| format!("{:.0}", n * by));
    let number = match value.split_at_checked(value.len().saturating_sub(1)) {
        Some((digits, "k" | "K")) => scaled(digits, 1e3),
        Some((digits, "M")) => scaled(digits, 1e6),
        _ => None,
    };
    number.unwrap_or_else(|| value.to_owned())
}

/// The flag, and the value that is glued to it (`-c=50` of hey, `-c50` and `--timeout=2s` of wrk).
fn find<'a>(tool: Tool, flags: &'a [Flag], word: &str) -> Option<(&'a Flag, Option<String>)> {
    let bare = word.trim_start_matches('-');
    let (name, glued) = bare.split_once('=').map_or((bare, None), |(name, value)| (name, Some(value.to_owned())));
    if let Some(flag) = flags.iter().find(|flag| flag.names.contains(&name)) {
        return Some((flag, glued));
    }
    if tool == Tool::Wrk && !word.starts_with("--") {
        let (letter, rest) = bare.split_at_checked(1)?;
        let flag = flags.iter().find(|flag| flag.takes_value && flag.names.contains(&letter))?;
        return Some((flag, Some(rest.to_owned())));
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ours(tool: Tool, line: &str) -> Result<String, String> {
        let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
        translate(tool, &words).map(|words| words.join(" "))
    }

    #[test]
    fn heys_examples_work() {
        let line = ours(Tool::Hey, "-z 20s -m GET http://localhost:8080").unwrap();
        assert_eq!(line, "--for 20s -m GET http://localhost:8080 -c 50 --timeout 20s --insecure");
        let line =
            ours(Tool::Hey, "-c 20 -n 2000 -cpus 16 -disable-keepalive http://127.0.0.1:40001/sleep0.2").unwrap();
        assert!(line.starts_with("-c 20 -n 2000 --generator-threads 16 --disable-keepalive http://"), "{line}");
        assert!(ours(Tool::Hey, "http://h/").unwrap().contains("-n 200"));
        assert!(ours(Tool::Hey, "-o csv http://h/").unwrap().contains("--log=-.csv"));
    }

    #[test]
    fn wrks_examples_work() {
        let line = ours(Tool::Wrk, "-t12 -c400 -d30s --latency http://127.0.0.1:8080/index.html").unwrap();
        assert_eq!(
            line,
            "--generator-threads 12 -c 400 --for 30s http://127.0.0.1:8080/index.html --timeout 2s --insecure"
        );
        let line = ours(Tool::Wrk, "--timeout=5s --duration 3 -c 4 http://h/").unwrap();
        assert!(line.starts_with("--timeout 5s --for 3 -c 4 http://h/ --generator-threads 2"), "{line}");
    }

    #[test]
    fn what_cannot_be_done_is_said() {
        assert!(ours(Tool::Wrk, "-s report.lua http://h/").unwrap_err().contains("cannot be done"));
        assert!(ours(Tool::Hey, "-h2 http://h/").unwrap_err().contains("cannot be done"));
        assert!(ours(Tool::Hey, "-x proxy:1 http://h/").is_err());
        assert!(ours(Tool::Wrk, "-Z http://h/").unwrap_err().contains("no flag of wrk"));
    }
}
