//! `longtail report`: saved studies, printed again.

mod asked_anew;
mod repro;

use std::path::{Path, PathBuf};
use std::{fs, io};

use judge::words::first_sentence;
use model::Study;
use proctree::ProcessStat;
use report::summary::Summary;
use report::{Width, number};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{FileType, fstat};
use rustix::io::ioctl_fionread;

use crate::args::ReportArgs;
use crate::args::compare::names_of_pumas;
use crate::args::output::StudyKind;
use crate::exit::{Exit, Mistake, wrong};
use crate::results::{print, write_all};
use crate::{study_files, ui};

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
    if args.studies.is_empty() && is_fed_by_pipe() {
        return Err(wrong(
            "report reads nothing from a pipe: longtail audit - reads what wrk, hey, ab, oha, vegeta and others print; longtail report </dev/null shows the last run",
        ));
    }
    let named =
        args.studies.iter().map(|word| study_files::named(word)).collect::<Result<Vec<_>, _>>()?;
    check_no_file_to_write(&named)?;
    let last = if named.is_empty() { Some(study_files::last()?) } else { None };
    let paths: Vec<&PathBuf> = named.iter().chain(&last).collect();
    let files: Vec<_> = args.output.files().collect();
    if paths.len() > 1 && !files.is_empty() {
        return Err(wrong("-o and --html write a file of one study: name only that study"));
    }
    for file in &files {
        study_files::check_writable(&file.path)?;
    }
    let mut kinds = Vec::new();
    let mut exit = Exit::Fine;
    for (at, path) in paths.into_iter().enumerate() {
        let study = asked_anew::asked_anew(study_files::read(path)?, args)?;
        if args.repro {
            ui::print(&::report::repro::block(&study, &repro::of(&study)));
            continue;
        }
        if at > 0 && args.output.is_prose() {
            ui::print("\n");
        }
        note_which(args.studies.get(at), &study);
        if named.is_empty() {
            note_unread_pipe(&study);
        }
        // Which study it is stands above it on as many lines as a long command line takes.
        let is_named = names_by_number(args.studies.get(at)).is_some();
        let has_files = args.output.files().next().is_some();
        let lines = 2 * usize::from(is_named) + usize::from(has_files);
        print(&study, Some(path), &args.output, lines)?;
        if is_being_measured(path) {
            ui::note(&still_running(&study));
        }
        if !args.thresholds.all().is_empty() {
            exit = exit.and(Exit::of_expected(&study));
        }
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

/// `vegeta attack | longtail report`: whether something comes in on stdin. A pipe in which nothing is,
/// as ssh and CI runners give, does not count, unless it belongs to the same shell pipeline.
fn is_fed_by_pipe() -> bool {
    let Some(pipe) = pipe_at_stdin() else { return false };
    let stdin = io::stdin();
    // A program that has ended already has left its output, or nothing.
    let wait = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };
    let mut polled = [PollFd::new(&stdin, PollFlags::IN)];
    let _ = poll(&mut polled, Some(&wait));
    ioctl_fionread(&stdin).is_ok_and(|bytes| bytes > 0) || is_written_by_neighbor(pipe)
}

/// The inode of the pipe at stdin; `None` if that is no pipe.
fn pipe_at_stdin() -> Option<u64> {
    let about = fstat(io::stdin()).ok()?;
    (FileType::from_raw_mode(about.st_mode) == FileType::Fifo).then_some(about.st_ino)
}

/// Whether a process of this one's group, as those of a shell's pipeline are, has this pipe for its
/// stdout.
fn is_written_by_neighbor(pipe: u64) -> bool {
    let Some(this) = ProcessStat::of(std::process::id()) else { return false };
    let name = format!("pipe:[{pipe}]");
    proctree::all().iter().any(|other| {
        other.group == this.group
            && fs::read_link(format!("/proc/{}/fd/1", other.pid))
                .is_ok_and(|stdout| stdout.as_os_str() == name.as_str())
    })
}

/// Says which study a number means: a number means another one after each new study.
fn note_which(word: Option<&PathBuf>, study: &Study) {
    if let Some(text) = names_by_number(word) {
        let summary = Summary::of(study, None);
        let line = judge::next::edited(&summary.command_line, "", &[]);
        ui::note(&format!("study {text} is of {}: {line}", minute_of(&summary)));
    }
}

/// The number, if the word is one and no file's name.
fn names_by_number(word: Option<&PathBuf>) -> Option<&str> {
    let text = word?.to_str()?;
    (text.parse::<usize>().is_ok() && !Path::new(text).is_file()).then_some(text)
}

/// A pipe into `longtail report` in which nothing is: says what is shown.
fn note_unread_pipe(study: &Study) {
    if pipe_at_stdin().is_some() {
        let summary = Summary::of(study, None);
        let minute = minute_of(&summary);
        ui::note(&format!(
            "report reads nothing from a pipe; this is the last study, {} of {minute}",
            summary.command
        ));
    }
}

/// A study is saved after each run: says where more will follow.
fn still_running(study: &Study) -> String {
    let runs = number::count_of(study.runs().len() as u64, "run");
    format!("it is still running: this is what is known after {runs}")
}

/// Whether the longtail that writes this study still runs: the file's name ends with its process.
fn is_being_measured(path: &Path) -> bool {
    let stem = path.file_stem().and_then(|stem| stem.to_str());
    let pid = stem.and_then(|stem| stem.rsplit('-').next()).and_then(|pid| pid.parse().ok());
    pid.is_some_and(|pid: u32| {
        pid != std::process::id()
            // One that has ended and that nobody waited for has a name, but no program.
            && fs::read_link(format!("/proc/{pid}/exe")).is_ok()
            && fs::read_to_string(format!("/proc/{pid}/comm"))
                .is_ok_and(|name| name.trim_end() == "longtail")
    })
}

/// When it was made, to the minute.
fn minute_of(summary: &Summary<'_>) -> String {
    summary.started_at.get(..16).unwrap_or(&summary.started_at).replace('T', " ")
}

/// `report --csv out.csv` asks to read `out.csv`, since `--csv` takes no file. If there is none, it
/// was meant to be written: says that `-o` does that.
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

/// The most columns of a line of the list where no terminal says how many.
const LIST_COLUMNS: usize = 140;
/// With fewer, what a run found has lines of its own.
const ONE_LINE_COLUMNS: usize = 120;
/// Columns before the time, and before what was typed.
const INDENT: usize = 5;
const COLUMNS_BEFORE_TYPED: usize = 33;

/// Prints a line for each of the newest studies that are kept: its number, when it was made, by which
/// command with which flags, whether it was interrupted, and the first sentence of what it found. On
/// a narrow terminal what it found is below that, where it has room.
fn list(most: usize, width: Width) -> Result<Exit, Mistake> {
    let kept = study_files::kept()?;
    let columns = width.columns().unwrap_or(LIST_COLUMNS);
    for (at, path) in kept.iter().take(most).enumerate() {
        let found = match study_files::read(path) {
            Ok(study) => listed(&study, columns, width.columns().is_some()),
            Err(why) => cut(&why.to_string(), columns.saturating_sub(INDENT)),
        };
        ui::print(&format!("{:>3}  {found}\n", at + 1));
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

/// The text, or as much of it as fits, with a mark at its end.
fn cut(text: &str, columns: usize) -> String {
    if text.chars().count() <= columns {
        return text.to_owned();
    }
    let kept: String = text.chars().take(columns.saturating_sub(1)).collect();
    // Half a number would be read as another one.
    let is_between_words = text[kept.len()..].starts_with(' ');
    let whole = kept.rfind(' ').filter(|at| !is_between_words && at * 2 > kept.len());
    format!("{}…", kept[..whole.unwrap_or(kept.len())].trim_end())
}

/// `2026-07-21 10:00  load      127.0.0.1:9292/ --for 9s · interrupted · The server keeps up …`, or
/// with what it found below that, where a line of the terminal does not have room for both.
fn listed(study: &Study, columns: usize, is_terminal: bool) -> String {
    let summary = Summary::of(study, None);
    let minute = minute_of(&summary);
    // What was demanded and is missed comes before what was found.
    let decides = summary.headlines().into_iter().next();
    let is_empty = decides.is_none() && study.runs().is_empty();
    let sentence = decides.map_or(first_sentence(&summary.sentence).first, |it| it.sentence);
    // Runs are judged when all of them are done.
    let runs = number::count_of(study.runs().len() as u64, "run");
    let sentence = match sentence {
        _ if is_empty => "nothing was measured",
        "" => &runs,
        sentence => sentence,
    };
    // Without output flags, which do not tell studies apart; the URL, which does so best, comes first.
    let line = judge::next::edited(&summary.command_line, "", &[]);
    let typed = line.split_once("longtail").map_or("", |(_, typed)| typed);
    let mut words = typed.split_whitespace().peekable();
    // A comparison may be typed as another command, such as `sweep --try`.
    words.next_if_eq(&summary.command);
    let (urls, flags): (Vec<&str>, Vec<&str>) = words.partition(|word| word.starts_with("http"));
    let urls = urls.into_iter().map(|url| url.strip_prefix("http://").unwrap_or(url));
    let urls = urls.map(str::to_owned);
    let typed = urls.chain(with_names_of_pumas(&flags)).collect::<Vec<_>>().join(" ");
    let measured = || summary.measured.first().cloned();
    let typed = if typed.is_empty() { measured() } else { Some(typed) };
    let is_unfinished = matches!(study, Study::Sweep(sweep) if judge::is_unfinished(sweep));
    let ended_early = if is_unfinished {
        Some("not finished")
    } else {
        summary.interrupted.then_some("interrupted")
    };
    let found = ended_early.into_iter().chain([sentence]).collect::<Vec<_>>().join(" · ");
    let room = columns.saturating_sub(COLUMNS_BEFORE_TYPED);
    let before = format!("{minute}  {:<8}  ", summary.command);
    let typed = typed.unwrap_or_default();
    let separator = if typed.is_empty() { "" } else { " · " };
    let is_longer = (typed.clone() + separator + &found).chars().count() > room;
    if columns < ONE_LINE_COLUMNS || is_terminal && is_longer {
        // Flags at the end of a line may be all that tells it from another.
        let mut lines = String::new();
        let indent = " ".repeat(INDENT);
        let width = Width::of(columns);
        ::report::wrap(&mut lines, width, &format!("{indent}{before}"), &cut(&typed, 3 * room));
        ::report::wrap(&mut lines, width, &indent, &found);
        return lines.trim().to_owned();
    }
    // What it found ends with its figure, so it has as much room as it needs, and what was typed the
    // rest, if that is enough to tell studies apart.
    let rest = room.saturating_sub((separator.to_owned() + &found).chars().count());
    let typed = cut(&typed, rest.clamp(room / 4, room / 2));
    before + &cut(&format!("{typed}{separator}{found}"), room)
}

/// The words of a command line, with several values of `--puma` by what tells them apart, as their
/// arms are called: their paths would fill the line.
fn with_names_of_pumas(words: &[&str]) -> Vec<String> {
    let short = |at: usize, word: &str| {
        let is_of_puma = at > 0 && words[at - 1] == "--puma";
        let pumas: Vec<&str> = word.split(',').filter(|_| is_of_puma).collect();
        let names: Option<Vec<&str>> = names_of_pumas(&pumas).into_iter().collect();
        names.filter(|names| names.len() > 1).map_or_else(|| word.to_owned(), |it| it.join(","))
    };
    words.iter().enumerate().map(|(at, word)| short(at, word)).collect()
}

/// Removes all kept studies but the newest `number`.
fn keep(number: usize) -> Result<Exit, Mistake> {
    let kept = study_files::kept()?;
    let old = kept.get(number..).unwrap_or_default();
    for path in old {
        study_files::remove(path)?;
    }
    let left = kept.len() - old.len();
    ui::note(&format!("{} of {} studies removed, {left} kept", old.len(), kept.len()));
    Ok(Exit::Fine)
}

#[cfg(test)]
mod tests {
    use model::SweepStudy;

    use super::*;

    #[test]
    fn a_study_with_fewer_runs_than_planned_is_listed_as_not_finished() {
        let mut study = testkit::study::tiny();
        let run = study.runs[0].clone();
        study.runs = vec![run; study.plan.runs() - 1];
        let row = |study: &SweepStudy| listed(&study.clone().into(), LIST_COLUMNS, false);
        assert!(row(&study).contains(" · not finished · "), "{}", row(&study));
        study.interrupted = true;
        assert!(row(&study).contains(" · interrupted · "), "{}", row(&study));
        study.runs.clear();
        assert!(row(&study).contains("nothing was measured"), "{}", row(&study));
    }

    #[test]
    fn what_a_listed_run_found_has_room_on_a_narrow_terminal() {
        let study: Study = testkit::study::tiny().into();
        let sentence = first_sentence(&Summary::of(&study, None).sentence).first.to_owned();
        for columns in [80, 100, 120, 140] {
            let listed = listed(&study, columns, true);
            let lines: Vec<&str> = listed.lines().collect();
            assert!(lines.len() > 1 || columns >= ONE_LINE_COLUMNS, "{columns}: {listed}");
            // The number stands before the first.
            let widest = lines.iter().map(|line| line.chars().count()).max().unwrap();
            assert!(widest <= columns, "{columns}: {listed}");
            let words = listed.split_whitespace().collect::<Vec<_>>().join(" ");
            assert!(words.contains(&sentence), "{columns}: {listed}");
        }
    }

    #[test]
    fn a_listed_run_is_told_by_what_was_typed_or_else_by_what_was_measured() {
        let row = |command_line: &str| {
            let mut study = testkit::study::tiny();
            study.command_line = command_line.into();
            listed(&study.into(), LIST_COLUMNS, false)
        };
        let typed = row("longtail sweep -w2 -o x.html --path /a");
        assert!(typed.contains("  sweep     -w2 --path /a · "), "{typed}");
        let other = row("longtail compare --arm '' --arm -k");
        assert!(other.contains("  sweep     compare --arm '' --arm -k · "), "{other}");
        let paths = row("longtail sweep --puma /src/6.6.1/bin/puma,/src/8.0.2/bin/puma -k");
        assert!(paths.contains("  sweep     --puma 6.6.1,8.0.2 -k · "), "{paths}");
        let path = row("longtail sweep --puma /src/6.6.1/bin/puma");
        assert!(path.contains("  sweep     --puma /src/6.6.1/bin/puma · "), "{path}");
        let bare = row("longtail sweep");
        let measured = Summary::of(&testkit::study::tiny().into(), None).measured[0].clone();
        let begin: String = measured.chars().take(20).collect();
        assert!(bare.contains(&format!("  sweep     {begin}")), "{bare}");
    }
}
