//! Where the results of one study go: its file in the data folder, the files that the user named,
//! and stdout.

use std::io::{self, IsTerminal as _};
use std::path::{Path, PathBuf};

use model::Study;
use report::answer::AnswerRoom;
use report::summary::{HeadlineResult, Summary};

use crate::args::output::{OutputArgs, OutputFile, OutputFormat, StudyKind, TextStyle};
use crate::exit::{Exit, Mistake};
use crate::ui;
use crate::{files, study_files};

/// The places of one study's results.
pub(crate) struct Results<'a> {
    output: &'a OutputArgs,
    /// The study's file in the data folder; `None` if that cannot be written.
    own: Option<PathBuf>,
    /// Study files that the user named. Like the study's own they are written after each run.
    studies: Vec<PathBuf>,
    /// Files that are written when all is measured.
    files: Vec<OutputFile>,
    /// The log of a load's requests, written while it goes on.
    pub(crate) log: Option<PathBuf>,
}

impl<'a> Results<'a> {
    /// The places for a new study of `command`. Checks that each can be written, before any load. If
    /// the data folder cannot, as in a container without a home, the study is measured all the same,
    /// and the user is told that it is not kept.
    ///
    /// # Errors
    /// If a file that the user named cannot be written.
    pub(crate) fn open(
        command: &str,
        started_at: &str,
        output: &'a OutputArgs,
    ) -> Result<Results<'a>, Mistake> {
        output.files().try_for_each(|file| study_files::check_writable(&file.path))?;
        let (named, files): (Vec<_>, Vec<_>) = output.files().partition(|file| {
            // A pipe or a device gets only the finished study.
            file.format == OutputFormat::Study && !files::is_stream(&file.path)
        });
        let own = study_files::new_study(command, started_at);
        let own = own.inspect_err(|why| ui::note(&format!("this will not be kept: {why}"))).ok();
        let studies = named.into_iter().map(|file| file.path).collect();
        Ok(Results { output, own, studies, files, log: None })
    }

    /// The files that the user named.
    fn named(&self) -> impl Iterator<Item = &Path> {
        self.studies.iter().map(PathBuf::as_path).chain(self.files.iter().map(|it| &*it.path))
    }

    /// Says why nothing was measured, and which files are not written.
    pub(crate) fn nothing_to_report(&self, why: &str) {
        nothing_to_report(why, self.named());
    }

    /// A file that has the whole study: its own, or one that the user named.
    pub(crate) fn path(&self) -> Option<&Path> {
        self.own.iter().chain(&self.studies).next().map(PathBuf::as_path)
    }

    /// Writes the study so far to each of its files, even if one of them fails.
    ///
    /// # Errors
    /// The first file that cannot be written.
    pub(crate) fn keep(&self, study: &Study) -> Result<(), Mistake> {
        let text = report::json::write(study);
        let kept = self.own.iter().map(|path| study_files::keep(path, &text));
        let written = self.studies.iter().map(|path| study_files::write(path, &text));
        // Collected first, so that each is tried.
        kept.chain(written).collect::<Vec<_>>().into_iter().collect()
    }

    /// Writes the finished study and all other files, prints the answer, and says where the study
    /// is. Files come first, because printing may block. Each part is tried even if another fails;
    /// failures are reported and decide the exit code.
    pub(crate) fn publish(&self, study: &Study) -> Exit {
        let kept = self.keep(study);
        let saved = self.path().filter(|_| kept.is_ok());
        let (written, failed): (Vec<_>, Vec<_>) = self
            .files
            .iter()
            .map(|file| (file, write_one(file, study, saved, self.output)))
            .partition(|(_, result)| result.is_ok());
        let has_files = self.named().chain(self.log.as_deref()).next().is_some();
        let below = LINES_OF_SAVED + usize::from(has_files);
        let printed = print(study, saved, self.output, below);
        // Some formats, such as CSV, do not mention what was demanded.
        if !(self.output.is_prose() && self.output.tells_verdict()) {
            for headline in Summary::of(study, None).headlines() {
                if headline.result != HeadlineResult::Met {
                    ui::note(headline.sentence);
                }
            }
        }
        let studies = self.studies.iter().filter(|_| kept.is_ok()).map(PathBuf::as_path);
        let written = studies.chain(written.iter().map(|(file, _)| &*file.path));
        if judge::is_cut_short(study) {
            tell_partial(written.chain(self.log.as_deref()));
        } else {
            tell_written(written);
        }
        match (saved, &self.own) {
            (Some(path), _) => ui::note(&format!("saved as {}", for_terminal(path))),
            (None, None) => ui::note("not kept; -o x.study.json keeps it for longtail report"),
            // Why it could not be saved is told below.
            (None, Some(_)) => {}
        }
        let failed = failed.into_iter().map(|(_, result)| result);
        let parts = [kept, printed].into_iter().chain(failed);
        parts.map(ui::exit_of_part).fold(Exit::Fine, Exit::and)
    }

    /// Says which of the files that the user named a study that broke off has not written.
    pub(crate) fn tell_unwritten(&self) {
        if let [_, ..] = &self.files[..] {
            let files = self.files.iter().map(|file| &*file.path);
            ui::note(&not_written(files));
        }
    }
}

/// Says why nothing was measured, and which of the files that the user named are not written: an
/// older one that stays would be taken for the result.
pub(crate) fn nothing_to_report<'p>(why: &str, named: impl Iterator<Item = &'p Path>) {
    let mut named = named.peekable();
    let left = match named.peek() {
        None => String::new(),
        Some(_) => format!("; {}", not_written(named)),
    };
    ui::note(&format!("{why}: there is nothing to report{left}"));
}

/// `a.html and a.csv are not written`
fn not_written<'p>(files: impl Iterator<Item = &'p Path>) -> String {
    let (names, count) = names_of(files);
    format!("{names} {} not written", if count == 1 { "is" } else { "are" })
}

/// Says of a study that was cut short which of the files that the user named are written all the
/// same. A pipe or a device is read already.
fn tell_partial<'p>(files: impl Iterator<Item = &'p Path>) {
    let (names, count) = names_of(files.filter(|path| !files::is_stream(path)));
    if count > 0 {
        let has = if count == 1 { "has" } else { "have" };
        ui::note(&format!("{names} {has} what was measured until then"));
    }
}

/// Says which files that the user named have the result.
fn tell_written<'p>(files: impl Iterator<Item = &'p Path>) {
    let (names, count) = names_of(files.filter(|path| !files::is_stream(path)));
    if count > 0 {
        ui::note(&format!("wrote {names}"));
    }
}

/// The names of files in a sentence, and how many they are.
fn names_of<'p>(files: impl Iterator<Item = &'p Path>) -> (String, usize) {
    let names: Vec<String> = files.map(|path| path.display().to_string()).collect();
    let text = match &names[..] {
        [first @ .., before_last, last] => {
            let first: String = first.iter().flat_map(|name| [name.as_str(), ", "]).collect();
            format!("{first}{before_last} and {last}")
        }
        names => names.concat(),
    };
    (text, names.len())
}

/// A path as a terminal shows it: from the home folder on, so that most fit on a line of 80 columns.
fn for_terminal(path: &Path) -> String {
    let home = std::env::var_os("HOME").filter(|home| !home.is_empty());
    match home.and_then(|home| path.strip_prefix(home).ok()) {
        Some(below) if io::stderr().is_terminal() => format!("~/{}", below.display()),
        _ => path.display().to_string(),
    }
}

/// Where a study is saved takes two lines of 80 columns.
const LINES_OF_SAVED: usize = 2;

/// Prints the study in the format that was chosen; the answer in colour, if the terminal has it.
/// `below`: how many lines will follow before the prompt.
///
/// # Errors
/// As [`render`].
pub(crate) fn print(
    study: &Study,
    saved: Option<&Path>,
    output: &OutputArgs,
    below: usize,
) -> Result<(), Mistake> {
    if output.printed() != OutputFormat::Answer {
        ui::print(&render(study, saved, output, output.printed())?);
        return Ok(());
    }
    let study: &Study = &output.forced(study);
    output.check(StudyKind::from(study))?;
    let saved = saved.map(|path| path.display().to_string());
    let room = AnswerRoom { width: output.width(), rows: ui::rows_for_answer(below) };
    ui::print_painted(&report::answer::whole(study, saved.as_deref(), room), |paint| {
        report::answer::painted(study, saved.as_deref(), room, paint)
    });
    Ok(())
}

/// Writes all files, even if one of them fails.
///
/// # Errors
/// The first file that cannot be written.
pub(crate) fn write_all(
    files: &[OutputFile],
    study: &Study,
    saved: Option<&Path>,
    output: &OutputArgs,
) -> Result<(), Mistake> {
    let write = |file: &OutputFile| write_one(file, study, saved, output);
    // Collected first, so that each is tried.
    files.iter().map(write).collect::<Vec<_>>().into_iter().collect()
}

/// Writes one file.
fn write_one(
    file: &OutputFile,
    study: &Study,
    saved: Option<&Path>,
    output: &OutputArgs,
) -> Result<(), Mistake> {
    study_files::write(&file.path, &render(study, saved, output, file.format)?)
}

/// The study in one of the formats; `saved` is its file.
///
/// # Errors
/// If this kind of study does not have the format.
pub(crate) fn render(
    study: &Study,
    saved: Option<&Path>,
    output: &OutputArgs,
    format: OutputFormat,
) -> Result<String, Mistake> {
    let study: &Study = &output.forced(study);
    output.check(StudyKind::from(study))?;
    let saved = saved.map(|path| path.display().to_string());
    Ok(match format {
        OutputFormat::Study => report::json::write(study),
        OutputFormat::Summary => Summary::of(study, saved).json(),
        OutputFormat::Html => report::html::whole(study, &Summary::of(study, saved)),
        OutputFormat::Markdown => report::answer::markdown(study, saved.as_deref()),
        OutputFormat::Csv => report::csv(study),
        OutputFormat::Answer => report::answer::whole(study, saved.as_deref(), output.width()),
        OutputFormat::Hdr | OutputFormat::Full => match (study, output.style()) {
            (Study::Load(load), _) if format == OutputFormat::Hdr => {
                report::with_valid_figures(load, report::request_logs::hdr)
            }
            (Study::Load(load), TextStyle::Hey) => {
                report::with_verdict_first(load, report::hey::LAYOUT)
            }
            (Study::Load(load), TextStyle::Wrk) => {
                report::with_verdict_first(load, report::wrk::LAYOUT)
            }
            (_, TextStyle::Puma) => report::puma(study, saved.as_deref(), output.width()),
            _ => report::full(study, saved.as_deref(), output.width()),
        },
    })
}
