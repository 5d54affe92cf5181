//! The help: `-h` fits on a screen, `--help` lists every flag.

use std::fmt::Write as _;
use std::path::PathBuf;

use clap::Command;
use report::Width;

use super::all_commands;
use crate::args::ADVANCED;
use crate::exit::Exit;
use crate::ui;

/// Columns of the widest help.
pub(crate) const WIDTH: usize = 100;

/// What stands before an example's explanation if there is no room beside the example.
pub(crate) const BELOW: &str = "      ";

/// The commands as `longtail --help` lists them.
const GROUPS: [(&str, &[&str]); 3] = [
    ("Measure", &["sweep", "load", "capacity", "signals", "compare", "watch", "report"]),
    ("Plan and check", &["predict", "doctor", "audit"]),
    ("More machines, an app of your own, a test server", &["fleet", "init", "sink"]),
];

const START_HERE: &str =
    "  longtail sweep                                  Puma with 5 threads, 1 minute
  longtail sweep -r config.ru --path /posts       your own app
  longtail load --rate 200 --for 30s http://127.0.0.1:3000/";

/// All commands and flags, as their help lays them out where there is room for it.
pub(crate) fn whole() -> Command {
    whole_for(Width::ANY, |_| true)
}

/// The same for a terminal, where only the help of the commands that are asked for is laid out: a
/// command line names one of sixteen.
pub(crate) fn whole_for(width: Width, is_asked: impl Fn(&str) -> bool) -> Command {
    let width = width.at_most(WIDTH);
    let mut whole = all_commands().disable_help_flag(true).mut_args(laid_out_flag).arg(help_flag());
    let names: Vec<String> =
        whole.get_subcommands().map(|command| command.get_name().to_owned()).collect();
    for name in names.into_iter().filter(|name| is_asked(name)) {
        whole = whole.mut_subcommand(name, |command| laid_out(command, width));
    }
    let overview = overview_here(&whole, width);
    whole.override_help(overview)
}

/// `-h` and `--help`, which every help would list otherwise.
fn help_flag() -> clap::Arg {
    clap::Arg::new("help")
        .short('h')
        .long("help")
        .action(clap::ArgAction::Help)
        .hide(true)
        .global(true)
}

/// How many examples `-h` shows of a command that has a long list of them.
const FEW_EXAMPLES: usize = 3;

/// One command with its rare flags hidden from `-h`, and its examples laid out.
fn laid_out(command: Command, width: Width) -> Command {
    let command = command.mut_args(laid_out_flag);
    let few = command.get_after_help().map(|text| examples(&text.to_string(), width));
    let all = command.get_after_long_help().map(|text| examples(&text.to_string(), width));
    let first = |text: &String| {
        let ends =
            text.match_indices("\n  longtail ").nth(FEW_EXAMPLES).map_or(text.len(), |(at, _)| at);
        text[..ends].to_owned()
    };
    let Some(short) = few.or(all.as_ref().map(first)) else { return command };
    let title = format!("Examples (all flags: longtail {} --help):", command.get_name());
    let long = all.unwrap_or_else(|| short.clone());
    command.after_help(short.replacen("Examples:", &title, 1)).after_long_help(long)
}

fn laid_out_flag(arg: clap::Arg) -> clap::Arg {
    let is_rare = arg.get_help_heading() == Some(ADVANCED);
    // A flag's help text names its possible values where they matter.
    let takes_value = arg.get_action().takes_values();
    arg.hide_short_help(is_rare).hide_possible_values(takes_value)
}

/// The help of all flags of a command, each with its line; of longtail itself where `name` is no
/// command.
pub(crate) fn long_help(mut whole: Command, name: Option<&str>) -> String {
    whole.build();
    let Some(command) = name.and_then(|name| whole.find_subcommand(name)) else {
        return whole.render_help().to_string();
    };
    let mut command = command.clone().mut_args(|arg| arg.hide_short_help(false));
    if let Some(text) = command.get_after_long_help().cloned() {
        command = command.after_help(text);
    }
    advanced_last(&command.render_help().to_string())
}

/// A help whose rare flags come after all others: clap lists groups in the order of their first flags.
fn advanced_last(help: &str) -> String {
    let parts: Vec<&str> = help.trim_end().split("\n\n").collect();
    moved_down(parts, &format!("{ADVANCED}:\n"), &["Examples"]).join("\n\n") + "\n"
}

/// The parts of a text, with the one that begins with `title` moved to before the first of `ends`.
pub(super) fn moved_down<'t>(mut parts: Vec<&'t str>, title: &str, ends: &[&str]) -> Vec<&'t str> {
    if let Some(at) = parts.iter().position(|part| part.starts_with(title)) {
        let moved = parts.remove(at);
        let is_end = |part: &&str| ends.iter().any(|end| part.starts_with(end));
        let end = parts.iter().position(is_end).unwrap_or(parts.len());
        parts.insert(end, moved);
    }
    parts
}

/// What `longtail help words` says: the glossary, without the marks of its tables.
pub(crate) fn words() -> String {
    let line = |line: &str| match line.trim_matches('|').split_once('|') {
        // A table's head, and the line below it.
        Some((word, _)) if matches!(word.trim(), "word" | "---") => String::new(),
        Some((word, meaning)) => format!("{}: {}\n", word.trim(), meaning.trim()),
        None => format!("{}\n", line.trim_start_matches('#').trim()),
    };
    let text: String = include_str!("../../../../docs/GLOSSARY.md").lines().map(line).collect();
    let plain = text.replace("**", "").replace(['`', '*'], "");
    let width = ui::terminal_width().at_most(WIDTH);
    plain.lines().map(|line| report::broken(line, width)).collect()
}

/// What man pages and completions are made from: the commands that the help lists.
pub(crate) fn documented() -> Command {
    let whole = whole();
    let all_flags = |command: &Command| command.clone().mut_args(|arg| arg.hide_short_help(false));
    let visible = whole.get_subcommands().filter(|command| !command.is_hide_set()).map(all_flags);
    Command::new("longtail")
        .disable_help_flag(true)
        .disable_help_subcommand(true)
        .version(env!("CARGO_PKG_VERSION"))
        .about(about(&whole))
        .after_help(format!(
            "{START_HERE}\n\nExit codes, the first that applies:\n{}",
            exit_codes()
        ))
        .args(whole.get_arguments().map(|arg| arg.clone().hide_short_help(false)))
        .subcommands(visible)
}

fn exit_codes() -> String {
    let line = |(exit, meaning): &(Exit, &str)| format!("  {:<4} {meaning}\n", exit.code());
    Exit::ALL.iter().map(line).collect::<Vec<_>>().concat()
}

/// What `longtail --help` says.
fn overview(whole: &Command, width: Width) -> String {
    let mut text = report::broken(&about(whole), width);
    text += "\nUsage: longtail <command> [options]\n";
    for (title, names) in GROUPS {
        _ = writeln!(text, "\n{title}");
        for command in names.iter().filter_map(|name| whole.find_subcommand(name)) {
            let name = format!("  {:<10} ", command.get_name());
            report::wrap(&mut text, width, &name, &about(command));
        }
    }
    _ = write!(
        text,
        "\nStart here\n{}\n\nExit codes, the first that applies\n",
        examples(START_HERE, width)
    );
    for (exit, meaning) in Exit::ALL {
        report::wrap(&mut text, width, &format!("  {:<4} ", exit.code()), meaning);
    }
    text.push('\n');
    let options = "-h, --help   -V, --version   --color auto|always|never";
    report::wrap(&mut text, width, "Options: ", options);
    report::wrap(&mut text, width, "More:    ", "longtail <command> --help | longtail help words");
    text
}

/// The overview, and where a package installed it the man page.
fn overview_here(whole: &Command, width: Width) -> String {
    let overview = overview(whole, width);
    if is_man_page_there() {
        overview.trim_end().to_owned() + " | man longtail\n"
    } else {
        overview
    }
}

/// Whether `man` finds our page: in a folder of `MANPATH`, or beside one of the `PATH`, as in
/// manpath(5).
fn is_man_page_there() -> bool {
    let folders = |name: &str| {
        let list = std::env::var_os(name).unwrap_or_default();
        std::env::split_paths(&list).collect::<Vec<PathBuf>>()
    };
    let beside =
        folders("PATH").into_iter().filter_map(|dir| Some(dir.parent()?.join("share/man")));
    let mut places = folders("MANPATH").into_iter().chain(beside);
    places.any(|dir| {
        let pages = ["longtail.1", "longtail.1.gz"];
        pages.iter().any(|page| dir.join("man1").join(page).exists())
    })
}

fn about(command: &Command) -> String {
    command.get_about().map(ToString::to_string).unwrap_or_default()
}

/// What is said where no command was given.
pub(crate) fn in_short() -> String {
    let names =
        GROUPS.iter().flat_map(|(_, names)| names.iter()).copied().collect::<Vec<_>>().join(" ");
    format!(
        "{}\n\nUsage: longtail <command> [options]\nCommands: {names}\n\n{START_HERE}\n\nlongtail --help says what each command does.",
        about(&all_commands())
    )
}

/// Lays `text` out: an explanation for which an example's line has no room goes below it, and lines
/// of prose that follow each other become one, which is wrapped to the terminal. What is indented
/// stays as it is.
fn examples(text: &str, width: Width) -> String {
    let mut lines: Vec<String> = Vec::new();
    let mut goes_on = false;
    for line in text.lines() {
        let is_prose = !line.is_empty() && !line.starts_with(' ');
        match lines.last_mut() {
            Some(before) if is_prose && goes_on => {
                before.push(' ');
                before.push_str(line);
            }
            _ if !width.fits(line.chars().count()) && !is_prose => {
                lines.extend(in_two(line, width));
            }
            _ => lines.push(line.to_owned()),
        }
        // A title ends with a colon, and a sentence with a full stop is a paragraph's end.
        goes_on = is_prose && !line.ends_with([':', '.']);
    }
    lines.join("\n")
}

/// An example, and below it its explanation, which two spaces or more set apart.
fn in_two(line: &str, width: Width) -> Vec<String> {
    let begins = line.len() - line.trim_start().len();
    let (example, words) = match line.strip_prefix(BELOW) {
        Some(words) => ("", words),
        None => line[begins..].split_once("  ").unwrap_or((&line[begins..], "")),
    };
    let mut text = String::new();
    if !example.is_empty() {
        text += &report::command_lines(&line[..begins], example, width);
    }
    if !words.is_empty() {
        report::wrap(&mut text, width, BELOW, words.trim_start());
    }
    text.lines().map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    /// The names of the commands that the help lists.
    fn visible() -> Vec<String> {
        whole()
            .get_subcommands()
            .filter(|it| !it.is_hide_set())
            .map(|it| it.get_name().to_owned())
            .collect()
    }

    #[test]
    fn the_overview_lists_every_command() {
        let mut listed: Vec<&str> =
            GROUPS.iter().flat_map(|(_, names)| names.iter().copied()).collect();
        let mut visible = visible();
        listed.sort_unstable();
        visible.sort_unstable();
        assert_eq!(listed, visible);
    }

    #[test]
    fn every_help_fits_a_narrow_terminal() {
        for columns in [60, 80] {
            let whole = || whole_for(Width::of(columns), |_| true).term_width(columns);
            let mut texts = vec![overview(&whole(), Width::of(columns))];
            texts.extend(visible().iter().map(|name| long_help(whole(), Some(name))));
            // The usage is clap's, whose parts in <> are not broken.
            let lines = texts.iter().flat_map(|text| text.lines());
            for line in lines.filter(|line| !line.starts_with("Usage: ")) {
                let longest = line.split(' ').map(|word| word.chars().count()).max().unwrap_or(0);
                let is_unbreakable = longest + 30 > columns;
                assert!(line.chars().count() <= columns || is_unbreakable, "{columns}: {line}");
            }
        }
    }

    #[test]
    fn rare_flags_come_last() {
        for name in visible() {
            let help = long_help(whole(), Some(&name));
            let titles: Vec<&str> = help
                .split("\n\n")
                .filter_map(|part| part.lines().next())
                .filter(|line| !line.starts_with(' ') && line.ends_with(':'))
                .collect();
            let groups: Vec<&&str> =
                titles.iter().take_while(|title| !title.starts_with("Examples")).collect();
            let advanced = groups.iter().position(|title| **title == "Advanced:");
            assert!(advanced.is_none_or(|at| at + 1 == groups.len()), "{name}: {titles:?}");
        }
    }

    #[test]
    fn every_short_help_fits_on_a_screen() {
        let mut all = whole().term_width(WIDTH);
        all.build();
        let mut texts = vec![("longtail".to_owned(), all.render_help().to_string())];
        for name in visible() {
            let help = all.find_subcommand_mut(&name).unwrap().render_help().to_string();
            texts.push((name, help));
        }
        for (name, help) in texts {
            let widest = help.lines().map(|line| line.chars().count()).max().unwrap_or(0);
            assert!(
                help.lines().count() <= 40 && widest <= WIDTH,
                "{name}: {} lines, {widest} columns\n{help}",
                help.lines().count()
            );
        }
    }

    /// `UPDATE_GOLDEN=1` writes the page anew.
    #[test]
    fn the_page_of_commands_is_current() {
        let mut page = format!(
            "# Commands and flags\n\nMade from the program's own definition of its flags; `longtail <command> --help` prints the \
             same.\n\n```text\n{}```\n",
            overview(&whole(), Width::of(WIDTH))
        );
        for (_, names) in GROUPS {
            for name in names {
                let help = long_help(whole().term_width(WIDTH), Some(name));
                _ = write!(page, "\n## {name}\n\n```text\n{}\n```\n", help.trim_end());
            }
        }
        testkit::golden::expect(
            &Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/commands.md"),
            &page,
        );
    }

    #[test]
    fn every_long_help_fits_the_width_and_has_an_example() {
        for name in visible() {
            let help = long_help(whole().term_width(WIDTH), Some(&name));
            let below =
                help.split_once("\nExamples:").unwrap_or_else(|| panic!("{name} has no example")).1;
            let examples: Vec<&str> =
                below.lines().skip(1).take_while(|line| line.starts_with("  ")).collect();
            assert!(!examples.is_empty(), "{name}");
            for line in examples {
                let is_command = line.starts_with("  longtail ") || line.contains("| longtail ");
                assert!(is_command || line.starts_with(BELOW), "{name}: torn: {line}");
            }
            for line in help.lines() {
                assert!(line.chars().count() <= WIDTH, "{name}: {line}");
            }
        }
    }
}
