//! The help: `-h` fits on a screen, `--help` lists every flag. Man pages and completions (`longtail
//! generate-docs DIR`) come from the same definition; `DIR` is a prefix's `share`.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use clap::builder::Resettable;
use clap::{Args, Command, CommandFactory as _};
use clap_complete::Shell;
use clap_mangen::Man;
use report::Width;

use super::Cli;
use crate::args::ADVANCED;
use crate::exit::{Exit, Mistake, unwritable};
use crate::ui;

/// Columns of the widest help.
pub(crate) const WIDTH: usize = 100;

/// What stands before an example's explanation if there is no room beside the example.
pub(crate) const BELOW: &str = "      ";

/// The commands as `longtail --help` lists them.
const GROUPS: [(&str, &[&str]); 4] = [
    ("Measure", &["sweep", "load", "compare", "watch", "report"]),
    ("Plan and check", &["predict", "doctor", "audit"]),
    ("More than one machine", &["fleet"]),
    ("For testing load generators", &["sink"]),
];

const START_HERE: &str =
    "  longtail sweep                                  Puma with 5 threads, 1 minute
  longtail sweep -r config.ru --path /posts       your own app
  longtail load --rate 200 --for 30s http://127.0.0.1:3000/";

/// All commands and flags, as their help lays them out.
pub(crate) fn whole() -> Command {
    whole_for(|_| true)
}

/// The same, where only the help of the commands that are asked for is laid out: a command line
/// names one of sixteen.
pub(crate) fn whole_for(is_asked: impl Fn(&str) -> bool) -> Command {
    let mut whole = Cli::command().disable_help_flag(true).mut_args(laid_out_flag).arg(help_flag());
    whole = whole
        .mut_subcommand("attack", crate::args::load::as_attack)
        .mut_subcommand("bodies", super::sweep::as_bodies)
        .mut_subcommand("compare", super::compare::as_compare)
        .mut_subcommand("calibrate", |command| super::doctor::as_flag(command, "generators"))
        .mut_subcommand("selftest", |command| super::doctor::as_flag(command, "self_test"));
    let names: Vec<String> =
        whole.get_subcommands().map(|command| command.get_name().to_owned()).collect();
    for name in names.into_iter().filter(|name| is_asked(name)) {
        whole = whole.mut_subcommand(name, laid_out);
    }
    let overview = overview(&whole);
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

/// So many examples of a command with a long list of them fit on a screen.
const FEW_EXAMPLES: usize = 3;

/// One command with its rare flags hidden from `-h`, and its examples laid out.
fn laid_out(command: Command) -> Command {
    let command = command.mut_args(laid_out_flag);
    let few = command.get_after_help().map(|text| examples(&text.to_string()));
    let all = command.get_after_long_help().map(|text| examples(&text.to_string()));
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
    // Their help lists them where it matters.
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
    command.render_help().to_string()
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
    plain.lines().map(|line| report::broken(line, Width::of(WIDTH))).collect()
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
fn overview(whole: &Command) -> String {
    let mut text = format!("{}\n\nUsage: longtail <command> [options]\n", about(whole));
    for (title, names) in GROUPS {
        _ = writeln!(text, "\n{title}");
        for command in names.iter().filter_map(|name| whole.find_subcommand(name)) {
            _ = writeln!(text, "  {:<10} {}", command.get_name(), about(command));
        }
    }
    _ = write!(
        text,
        "\nStart here\n{START_HERE}\n\nExit codes, the first that applies\n{}",
        exit_codes()
    );
    text + "\nOptions: -h, --help   -V, --version   --color auto|always|never\nMore:    longtail <command> --help | longtail help words | man longtail\n"
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
        about(&Cli::command())
    )
}

/// Lays `text` out: an explanation for which an example's line has no room goes below it, and lines
/// of prose that follow each other become one, which is wrapped to the terminal. What is indented
/// stays as it is.
fn examples(text: &str) -> String {
    let mut lines: Vec<String> = Vec::new();
    let mut goes_on = false;
    for line in text.lines() {
        let is_prose = !line.is_empty() && !line.starts_with(' ');
        match lines.last_mut() {
            Some(before) if is_prose && goes_on => {
                before.push(' ');
                before.push_str(line);
            }
            _ if line.chars().count() > WIDTH && !is_prose => lines.extend(in_two(line)),
            _ => lines.push(line.to_owned()),
        }
        // A title ends with a colon, and a sentence with a full stop is a paragraph's end.
        goes_on = is_prose && !line.ends_with([':', '.']);
    }
    lines.join("\n")
}

/// An example, and below it what two spaces or more set apart.
fn in_two(line: &str) -> Vec<String> {
    let begins = line.len() - line.trim_start().len();
    match line[begins..].split_once("  ") {
        Some((example, words)) => {
            vec![format!("{}{example}", &line[..begins]), format!("{BELOW}{}", words.trim_start())]
        }
        None => vec![line.to_owned()],
    }
}

/// Flags of `longtail generate-docs`.
#[derive(Debug, Args)]
pub(crate) struct GenerateDocsArgs {
    /// Where man pages and completions belong, such as ~/.local/share
    #[arg(value_name = "DIR")]
    pub(crate) into: PathBuf,
}

/// Where each shell finds its file of completions.
const COMPLETIONS: [(Shell, &str); 3] = [
    (Shell::Bash, "bash-completion/completions"),
    (Shell::Zsh, "zsh/site-functions"),
    (Shell::Fish, "fish/vendor_completions.d"),
];

/// Writes all of them.
///
/// # Errors
/// If a folder cannot be written.
pub(crate) fn generate_docs(args: &GenerateDocsArgs) -> Result<Exit, Mistake> {
    let mut command = documented();
    command.build();
    write_into(&args.into.join("man/man1"), |dir| {
        std::iter::once(&command)
            .chain(command.get_subcommands())
            .try_for_each(|command| write_page(command, dir))
    })?;
    for (shell, folder) in COMPLETIONS {
        let dir = args.into.join(folder);
        write_into(&dir, |dir| {
            clap_complete::generate_to(shell, &mut command.clone(), "longtail", dir).map(|_| ())
        })?;
    }
    ui::note(&format!(
        "man pages, and completions for bash, zsh and fish, are in {}",
        args.into.display()
    ));
    Ok(Exit::Fine)
}

/// The man page of one command. Its examples keep their lines.
fn write_page(command: &Command, dir: &Path) -> std::io::Result<()> {
    let examples =
        command.get_after_long_help().or(command.get_after_help()).map(ToString::to_string);
    let page =
        Man::new(command.clone().after_help(Resettable::Reset).after_long_help(Resettable::Reset));
    let mut text = Vec::new();
    page.render(&mut text)?;
    text.extend_from_slice(b".SH EXAMPLES\n.nf\n");
    for line in examples.unwrap_or_default().lines().filter(|line| *line != "Examples:") {
        // Nothing in it is a request to the formatter.
        text.extend_from_slice(
            format!("\\&{}\n", line.replace('\\', "\\e").replace('-', "\\-")).as_bytes(),
        );
    }
    text.extend_from_slice(b".fi\n");
    crate::files::write(&dir.join(page.get_filename()), &text)
}

fn write_into(dir: &Path, write: impl FnOnce(&Path) -> std::io::Result<()>) -> Result<(), Mistake> {
    let written = std::fs::create_dir_all(dir).and_then(|()| write(dir));
    written.map_err(|why| unwritable(dir, &why, "name a folder of your own"))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    /// Of each command that the help lists.
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
            overview(&whole())
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
