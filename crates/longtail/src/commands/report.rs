//! `longtail report`: saved studies, printed again; and `longtail audit`: is what another tool
//! printed even possible?

use std::path::{Path, PathBuf};

use clap::Args;
use judge::words::first_sentence;
use model::Study;
use report::Width;
use report::summary::Summary;
use serde::Deserialize;
use serde::de::IgnoredAny;

use super::repro;
use crate::args::output::{FormatArgs, OutputArgs, StudyKind};
use crate::exit::{Exit, Mistake, wrong};
use crate::results::{print, write_all};
use crate::{store, ui};

/// Prints the studies that were asked for, or the last.
///
/// # Errors
/// If there is none, a file is no study, or a file cannot be written.
pub(crate) fn run(args: &ReportArgs) -> Result<Exit, Mistake> {
    if let Some(number) = args.keep {
        return keep(number);
    }
    if let Some(most) = args.list {
        return list(most, args.output.width());
    }
    let named =
        args.studies.iter().map(|word| store::named(word)).collect::<Result<Vec<_>, _>>()?;
    check_no_file_to_write(&named)?;
    let last = if named.is_empty() { Some(store::last()?) } else { None };
    let paths: Vec<&PathBuf> = named.iter().chain(&last).collect();
    let files: Vec<_> = args.output.files().collect();
    if paths.len() > 1 && !files.is_empty() {
        return Err(wrong(
            "a file is written of one study: name one, and the file that -o or --html writes",
        ));
    }
    for file in &files {
        store::check_writable(&file.path)?;
    }
    let mut kinds = Vec::new();
    let mut exit = Exit::Fine;
    for (at, path) in paths.into_iter().enumerate() {
        let study = store::read(path)?;
        if args.repro {
            ui::print(&::report::repro::block(&study, &repro::of(&study)));
            continue;
        }
        if at > 0 && args.output.is_prose() {
            ui::print("\n");
        }
        if named.is_empty() {
            note_unread_pipe(&study);
        }
        print(&study, Some(path), &args.output)?;
        exit = exit.and(ui::exit_of_part(write_all(&files, &study, Some(path), &args.output)));
        kinds.push(StudyKind::from(&study));
    }
    if let ([a, b], [kind, other]) = (named.as_slice(), kinds.as_slice())
        && kind == other
    {
        ui::note(&format!(
            "longtail compare {} {} sets the two side by side",
            a.display(),
            b.display()
        ));
    }
    Ok(exit)
}

/// `vegeta attack | longtail report`: says that what was piped in is not what is shown.
fn note_unread_pipe(study: &Study) {
    use std::os::unix::fs::FileTypeExt as _;
    let is_pipe = std::fs::metadata("/dev/stdin").is_ok_and(|stdin| stdin.file_type().is_fifo());
    if is_pipe {
        let summary = Summary::of(study, None);
        let minute = minute_of(&summary);
        ui::note(&format!(
            "report reads nothing from a pipe; this is the last study, {} of {minute}",
            summary.command
        ));
    }
}

/// When it was made, to the minute.
fn minute_of(summary: &Summary<'_>) -> String {
    summary.started_at.get(..16).unwrap_or(&summary.started_at).replace('T', " ")
}

/// `report --csv out.csv` would read that file; what it should write has a flag.
fn check_no_file_to_write(named: &[PathBuf]) -> Result<(), Mistake> {
    const WRITTEN: [&str; 4] = ["csv", "html", "md", "txt"];
    let is_written = |path: &&PathBuf| {
        let extension = path.extension().and_then(|extension| extension.to_str());
        extension.is_some_and(|extension| WRITTEN.contains(&extension)) && !path.exists()
    };
    named.iter().find(is_written).map_or(Ok(()), |path| {
        let path = path.display();
        Err(wrong(format!(
            "there is no file '{path}'; to write it, type longtail report -o {path}"
        )))
    })
}

/// Prints a line for each of the newest studies that are kept: its number, when it was made, by which
/// command, and the first sentence of what it found.
fn list(most: usize, width: Width) -> Result<Exit, Mistake> {
    let kept = store::kept()?;
    for (at, path) in kept.iter().take(most).enumerate() {
        let found = match store::read(path) {
            Ok(study) => in_a_line(&study),
            Err(why) => why.to_string(),
        };
        let line = format!("{:>3}  {found}", at + 1);
        let columns = width.columns().unwrap_or(usize::MAX);
        let line = if line.chars().count() > columns {
            line.chars().take(columns - 1).chain(['…']).collect()
        } else {
            line
        };
        ui::print(&(line + "\n"));
    }
    let older = kept.len().saturating_sub(most);
    if older > 0 {
        ui::note(&format!(
            "{older} older: longtail report --list={} shows all; --keep 20 removes all but the newest 20",
            kept.len()
        ));
    }
    Ok(Exit::Fine)
}

/// `2026-07-21 10:00  sweep   From 10 connections on …`
fn in_a_line(study: &Study) -> String {
    let summary = Summary::of(study, None);
    let minute = minute_of(&summary);
    let sentence = first_sentence(&summary.sentence).first;
    let sentence = if sentence.is_empty() { "nothing was measured" } else { sentence };
    format!("{minute}  {:<7}  {sentence}", summary.command)
}

/// Removes all kept studies but the newest `number`.
fn keep(number: usize) -> Result<Exit, Mistake> {
    let kept = store::kept()?;
    let old = kept.get(number..).unwrap_or_default();
    for path in old {
        store::remove(path)?;
    }
    let left = kept.len() - old.len();
    ui::note(&format!("{} of {} studies removed, {left} kept", old.len(), kept.len()));
    Ok(Exit::Fine)
}

/// Audits a file, or what comes in on stdin. A claim that cannot be is a missed objective: exit 1.
///
/// # Errors
/// If the file cannot be read, or holds no output that is known.
pub(crate) fn audit(args: &AuditArgs) -> Result<Exit, Mistake> {
    let text = read(&args.file)?;
    if is_study(&text) {
        let file = args.file.display();
        return Err(wrong(format!(
            "'{file}' is a longtail study, which carries its verdict: longtail report {file} shows it"
        )));
    }
    let audited = audit::audit(&text)
        .map_err(|why| Mistake::Read { path: args.file.clone(), why: why.to_string() })?;
    if audited.is_empty() {
        let known = "no output of wrk, wrk2, hey, oha, ab, h2load, bombardier, vegeta or Puma's scripts is in it";
        return Err(Mistake::Read { path: args.file.clone(), why: known.to_owned() });
    }
    if args.output.is_json() {
        ui::print_json(&audited);
    } else {
        ui::print(&audit::text(&audited, ui::terminal_width()));
    }
    let impossible = audited.iter().any(|one| one.verdict.is == model::Believable::Impossible);
    Ok(Exit::Missed.if_so(impossible))
}

/// What tells a study file from any other.
#[derive(Deserialize)]
struct StudyKeys {
    #[serde(rename = "schema")]
    _schema: IgnoredAny,
    #[serde(rename = "command")]
    _command: IgnoredAny,
}

/// Whether the text is one of longtail's own study files.
fn is_study(text: &str) -> bool {
    serde_json::from_str::<StudyKeys>(text).is_ok()
}

/// The text, whatever its encoding was.
fn read(path: &Path) -> Result<String, Mistake> {
    let bytes = if path == Path::new("-") {
        store::at_most(std::io::stdin())
            .map_err(|error| Mistake::Read { path: path.to_owned(), why: error.to_string() })?
    } else {
        store::read_bytes(path)?
    };
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

const REPORT_EXAMPLES: &str = "\
Examples:
  longtail report                              the last study
  longtail report --list                      what is kept: number, date, command, result
  longtail report 2                           the last but one; report sweep: the last sweep
  longtail report --full                      everything that is known of the last study
  longtail report --markdown                  the last study, for a pull request
  longtail report --repro                     the same for an issue, with app and command to run it
  longtail report x.study.json --style puma   a saved one, in Puma's own columns
  longtail report -o page.html -o table.csv   a page with plots, and a line a run

Studies are kept in $XDG_DATA_HOME/longtail/studies (~/.local/share/longtail/studies).";

/// Flags of `longtail report`.
#[derive(Debug, Args)]
#[command(after_help = REPORT_EXAMPLES)]
pub(crate) struct ReportArgs {
    /// Saved studies: files, numbers of --list, or a command for its last [default: the last one]
    #[arg(value_name = "STUDY")]
    pub(crate) studies: Vec<PathBuf>,
    /// List the newest N studies that are kept, a line each [default N: 20]
    #[arg(
        long,
        value_name = "N",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "20",
        conflicts_with_all = ["studies", "printed", "html", "files", "keep"]
    )]
    list: Option<usize>,
    /// Remove the kept studies but the newest N
    #[arg(long, value_name = "N", conflicts_with_all = ["studies", "printed", "html", "files"])]
    keep: Option<usize>,
    /// Print one block for an issue: what was seen, and the files and the command that show it again
    #[arg(long, conflicts_with_all = ["printed", "html", "files", "list", "keep"])]
    repro: bool,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

const AUDIT_EXAMPLES: &str = "\
Examples:
  longtail audit wrk.txt
  wrk -t2 -c64 -d10s --latency http://127.0.0.1:9292/ | longtail audit -
  longtail audit wrk.txt --json    claims and findings, for a script

Reads the output of wrk, wrk2, hey, oha, ab, h2load, bombardier, vegeta and Puma's scripts, and checks whether its
figures can all be true: Little's law, what the percentiles say about the mean, counts, bytes.
Exit code: 1 if a claim is impossible.";

/// Flags of `longtail audit`.
#[derive(Debug, Args)]
#[command(after_help = AUDIT_EXAMPLES)]
pub(crate) struct AuditArgs {
    /// A file with the tool's output; other text is ignored; - is stdin
    pub(crate) file: PathBuf,
    #[command(flatten)]
    pub(crate) output: FormatArgs,
}
