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

/// A flag of the other tool, under its names, and ours for it. Behind `=` it takes a value, which stands where ours has `{}`;
/// `{flag}` is the name that was typed. Empty: it is taken and changes nothing. `None`: it cannot be done.
type OthersFlag = (&'static str, Option<&'static [&'static str]>);

const HEY: &[OthersFlag] = &[
    ("n c q m H A d D T a=", Some(&["-{flag}", "{}"])),
    ("z=", Some(&["--for", "{}"])),
    ("t=", Some(&["--timeout", "{}"])),
    ("U=", Some(&["-H", "User-Agent: {}"])),
    ("host=", Some(&["--host", "{}"])),
    ("disable-keepalive", Some(&["--disable-keepalive"])),
    ("disable-compression disable-redirects more", Some(&[])),
    ("cpus=", Some(&["--generator-threads", "{}"])),
    ("o=", Some(&["--log=-.{}"])),
    ("x=", None),
    ("h2", None),
];

const WRK: &[OthersFlag] = &[
    ("t threads=", Some(&["--generator-threads", "{}"])),
    ("c connections=", Some(&["-c", "{}"])),
    ("d duration=", Some(&["--for", "{}"])),
    ("H header=", Some(&["-H", "{}"])),
    ("L latency", Some(&[])),
    ("T timeout=", Some(&["--timeout", "{}"])),
    ("s script=", None),
];

/// Our words for the other tool's, its defaults among them.
///
/// # Errors
/// One line, where a flag is not that tool's or cannot be done.
pub(crate) fn translate(tool: Tool, words: &[String]) -> Result<Vec<String>, String> {
    // Neither verifies certificates. hey sends 200 requests over 50 connections where nothing else is said.
    let (name, flags, defaults): (_, _, &[[&str; 2]]) = match tool {
        Tool::Hey => ("hey", HEY, &[["-c", "50"], ["--timeout", "20s"]]),
        Tool::Wrk => ("wrk", WRK, &[["-c", "10"], ["--for", "10s"], ["--generator-threads", "2"], ["--timeout", "2s"]]),
    };
    let mut ours: Vec<String> = Vec::new();
    let mut words = words.iter();
    while let Some(word) = words.next() {
        if !word.starts_with('-') || word == "-" {
            ours.push(word.clone());
            continue;
        }
        let ((names, template), glued) =
            find(tool, flags, word).ok_or_else(|| format!("{word} is no flag of {name} that is known here"))?;
        let template = template.ok_or_else(|| format!("{name}'s {word} cannot be done here: leave it out"))?;
        let value = match (names.ends_with('='), glued) {
            (false, _) => String::new(),
            (true, Some(value)) => value,
            (true, None) => words.next().cloned().ok_or_else(|| format!("{name}'s {word} wants a value"))?,
        };
        let value = match tool {
            Tool::Wrk => without_unit(&value),
            // Its -t 0 waits for ever; a day is as good.
            Tool::Hey if *names == "t=" && value == "0" => "24h".to_owned(),
            Tool::Hey => value,
        };
        let flag = word.trim_start_matches('-').split('=').next().unwrap_or_default();
        ours.extend(template.iter().map(|part| part.replace("{flag}", flag).replace("{}", &value)));
    }
    for words in defaults.iter().filter(|[flag, _]| !ours.iter().any(|word| word == flag)).collect::<Vec<_>>() {
        ours.extend(words.map(str::to_owned));
    }
    ours.push("--insecure".to_owned());
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
fn find<'a>(tool: Tool, flags: &'a [OthersFlag], word: &str) -> Option<(&'a OthersFlag, Option<String>)> {
    let bare = word.trim_start_matches('-');
    let called =
        |name: &str| flags.iter().find(|(names, _)| names.trim_end_matches('=').split(' ').any(|it| it == name));
    let (name, glued) = bare.split_once('=').map_or((bare, None), |(name, value)| (name, Some(value.to_owned())));
    if let Some(flag) = called(name) {
        return Some((flag, glued));
    }
    let (letter, rest) = bare.split_at_checked(1).filter(|_| tool == Tool::Wrk && !word.starts_with("--"))?;
    called(letter).filter(|(names, _)| names.ends_with('=')).map(|flag| (flag, Some(rest.to_owned())))
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
}
