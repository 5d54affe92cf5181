//! Flags for results: what is printed, which files are written, and which thresholds must hold
//! (`--expect`, `--fail-if`).

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use clap::builder::{PathBufValueParser, TypedValueParser as _};
use clap::{Args, ValueEnum};
use model::secret::masked_word;
use model::{Run, Study, Threshold};
use report::Width;

use super::value_parsers::words;
use crate::args::ADVANCED;
use crate::exit::{Mistake, wrong};
use crate::ui;

/// The layouts of text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum TextStyle {
    /// The full report
    Longtail,
    /// Of a sweep: exactly the columns of Puma's `long_tail_hey`; of bodies: those of its
    /// `response_time_wrk`
    Puma,
    /// Of a load: hey's layout
    Hey,
    /// Of a load: wrk's layout
    Wrk,
}

/// What is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OutputFormat {
    /// The answer, in at most 30 lines.
    Answer,
    /// Everything that is known, as text.
    Full,
    /// For a pull request.
    Markdown,
    /// One page with plots.
    Html,
    /// The summary, as JSON.
    Summary,
    /// A line a run.
    Csv,
    /// Of a load: an `HdrHistogram` log of response and service times.
    Hdr,
    /// The whole study, as JSON.
    Study,
}

/// The words of `--format`, from before each format had a flag of its own.
const FORMATS: &[(&str, OutputFormat)] = &[
    ("text", OutputFormat::Answer),
    ("markdown", OutputFormat::Markdown),
    ("json", OutputFormat::Summary),
    ("csv", OutputFormat::Csv),
    ("hdr", OutputFormat::Hdr),
    ("study", OutputFormat::Study),
];

/// A file that is written too.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct OutputFile {
    pub(crate) path: PathBuf,
    /// As its ending says.
    pub(crate) format: OutputFormat,
}

/// The endings of `-o`, the longer ones first.
const ENDINGS: [(&str, OutputFormat); 8] = [
    (".study.json", OutputFormat::Study),
    (".json", OutputFormat::Summary),
    (".html", OutputFormat::Html),
    (".md", OutputFormat::Markdown),
    (".markdown", OutputFormat::Markdown),
    (".csv", OutputFormat::Csv),
    (".hdr", OutputFormat::Hdr),
    (".txt", OutputFormat::Answer),
];

impl OutputFile {
    /// The format of the file by its ending.
    fn of(path: PathBuf) -> Result<OutputFile, String> {
        if path == Path::new("-") {
            return Err("--json, --markdown, --csv and --full print it; a file has a name, such as out.html".to_owned());
        }
        let name = path
            .file_name()
            .map(|name| name.to_string_lossy().to_ascii_lowercase())
            .unwrap_or_default();
        match ENDINGS.iter().find(|(ending, _)| name.ends_with(ending)) {
            Some((_, format)) => Ok(OutputFile { path, format: *format }),
            // /dev/stdout, /dev/null, /dev/fd/63 of a shell: no name says more.
            None if path.starts_with("/dev") => {
                Ok(OutputFile { path, format: OutputFormat::Answer })
            }
            None => {
                Err("the ending says the format: .study.json (the study), .json (the summary), .html, .md, .csv, .txt"
                    .to_owned())
            }
        }
    }
}

/// How results are printed, and which files are written.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Output")]
#[expect(clippy::struct_excessive_bools, reason = "a flag is a bool")]
pub(crate) struct OutputArgs {
    /// Print everything that is known, not only the answer
    #[arg(long, group = "printed")]
    full: bool,
    /// Print Markdown, for a pull request
    #[arg(long, group = "printed")]
    markdown: bool,
    /// Print a summary as JSON, for scripts
    #[arg(long, group = "printed")]
    json: bool,
    /// Print CSV, one line for each run
    #[arg(long, group = "printed")]
    csv: bool,
    /// Write a page with plots into this file
    #[arg(long, value_name = "FILE", value_parser = PathBufValueParser::new().try_map(page))]
    html: Option<PathBuf>,
    /// Also write .study.json (for report), .json, .html, .md, .csv or .txt
    #[arg(short = 'o', long = "output", value_name = "FILE", value_parser = PathBufValueParser::new().try_map(OutputFile::of))]
    files: Vec<OutputFile>,
    /// Print the table of Puma's scripts (puma), or the report of hey or wrk
    #[arg(long, alias = "columns", value_enum, value_name = "STYLE", help_heading = ADVANCED)]
    style: Option<TextStyle>,
    #[arg(long, hide = true, group = "printed", value_parser = words(FORMATS))]
    format: Option<OutputFormat>,
    /// Fit the text to this width; with --full, 0 shows all columns, however wide [default: the
    /// terminal's width; in a pipe 100, with --full 0]
    #[arg(long, value_name = "COLUMNS", value_parser = columns_to_fit, help_heading = ADVANCED)]
    width: Option<usize>,
    /// Print the figures of an invalid run all the same
    #[arg(long, help_heading = ADVANCED)]
    force: bool,
}

/// Reads `--html`: a page is for a browser, and is not printed.
fn page(path: PathBuf) -> Result<PathBuf, String> {
    if path == Path::new("-") {
        return Err("a page is written into a file: name it, such as page.html".to_owned());
    }
    Ok(path)
}

/// Reads `--width`.
pub(crate) fn columns_to_fit(word: &str) -> Result<usize, String> {
    match word.parse() {
        Ok(columns) if columns == 0 || columns >= Width::LEAST => Ok(columns),
        _ => Err(format!("{} columns or more, or 0 for all of it, however wide", Width::LEAST)),
    }
}

/// What `--width` asks for.
pub(crate) fn width_asked_for(columns: usize) -> Width {
    if columns == 0 { Width::ANY } else { Width::of(columns) }
}

/// Kinds of study, as far as they are printed differently.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StudyKind {
    Sweep,
    Bodies,
    Compare,
    Capacity,
    Load,
    /// A load that another generator made.
    ClaimedLoad,
}

impl From<&Study> for StudyKind {
    fn from(study: &Study) -> StudyKind {
        match study {
            Study::Sweep(_) => StudyKind::Sweep,
            Study::Bodies(_) => StudyKind::Bodies,
            Study::Compare(_) => StudyKind::Compare,
            Study::Capacity(_) => StudyKind::Capacity,
            Study::Load(load) if load.run.claim.is_some() => StudyKind::ClaimedLoad,
            Study::Load(_) => StudyKind::Load,
        }
    }
}

impl StudyKind {
    /// Its name in a sentence.
    pub(crate) fn name(self) -> &'static str {
        self.styles().0
    }

    /// Its name in a sentence, and the styles of text that it has.
    fn styles(self) -> (&'static str, &'static [TextStyle]) {
        match self {
            StudyKind::Sweep => ("a sweep", &[TextStyle::Longtail, TextStyle::Puma]),
            StudyKind::Bodies => ("a study of bodies", &[TextStyle::Longtail, TextStyle::Puma]),
            StudyKind::Compare => ("a comparison", &[TextStyle::Longtail]),
            StudyKind::Capacity => ("a search for a capacity", &[TextStyle::Longtail]),
            StudyKind::Load => ("a load", &[TextStyle::Longtail, TextStyle::Hey, TextStyle::Wrk]),
            StudyKind::ClaimedLoad => ("another generator's load", &[TextStyle::Longtail]),
        }
    }
}

impl TextStyle {
    fn name(self) -> String {
        self.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
    }
}

impl OutputArgs {
    /// What is printed.
    pub(crate) fn printed(&self) -> OutputFormat {
        match self.format {
            Some(format) if format != OutputFormat::Answer => format,
            // A style is one of text: Markdown has none.
            _ if self.markdown => OutputFormat::Markdown,
            _ if self.json => OutputFormat::Summary,
            _ if self.csv => OutputFormat::Csv,
            _ if self.full || self.style.is_some() => OutputFormat::Full,
            _ => OutputFormat::Answer,
        }
    }

    /// The style of the full report.
    pub(crate) fn style(&self) -> TextStyle {
        self.style.unwrap_or(TextStyle::Longtail)
    }

    /// The files that are written too.
    pub(crate) fn files(&self) -> impl Iterator<Item = OutputFile> {
        // The text in a file is the text that is printed: the answer, or all of it.
        let text = if self.printed() == OutputFormat::Full {
            OutputFormat::Full
        } else {
            OutputFormat::Answer
        };
        let asked = self.files.iter().cloned().map(move |file| match file.format {
            OutputFormat::Answer => OutputFile { format: text, ..file },
            _ => file,
        });
        asked.chain(
            self.html
                .iter()
                .map(|path| OutputFile { path: path.clone(), format: OutputFormat::Html }),
        )
    }

    /// Whether this file is written by `-o` or `--html`.
    pub(crate) fn writes(&self, path: &Path) -> bool {
        self.files().any(|file| crate::study_files::are_one(&file.path, path))
    }

    /// Whether a person reads it, so that other lines may stand before it.
    pub(crate) fn is_prose(&self) -> bool {
        matches!(self.printed(), OutputFormat::Answer | OutputFormat::Full | OutputFormat::Markdown)
    }

    /// Whether what is printed has the verdict: other tools' layouts and a histogram have no place
    /// for it.
    pub(crate) fn tells_verdict(&self) -> bool {
        let is_others = matches!(self.style(), TextStyle::Hey | TextStyle::Wrk);
        self.printed() != OutputFormat::Hdr && !(is_others && self.printed() == OutputFormat::Full)
    }

    /// A study as it is printed: with `--force`, an invalid run shows its figures.
    pub(crate) fn forced<'s>(&self, study: &'s Study) -> Cow<'s, Study> {
        let is_unchanged = study.runs().iter().all(|run| {
            run.judgement.as_ref().is_none_or(|judgement| judgement.forced == self.force)
        });
        if is_unchanged {
            return Cow::Borrowed(study);
        }
        let mut study = study.clone();
        let runs: Vec<&mut Run> = match &mut study {
            Study::Sweep(sweep) => sweep.runs.iter_mut().collect(),
            Study::Bodies(bodies) => bodies.runs.iter_mut().map(|row| &mut row.run).collect(),
            Study::Compare(comparison) => {
                comparison.runs.iter_mut().map(|row| &mut row.run).collect()
            }
            Study::Load(load) => vec![&mut load.run],
            Study::Capacity(search) => {
                let of_sizes = search.sizes.iter_mut().flat_map(|size| &mut size.search.trials);
                search.trials.iter_mut().chain(of_sizes).map(|trial| &mut trial.run).collect()
            }
        };
        let judgements = runs.into_iter().filter_map(|run| run.judgement.as_mut());
        judgements.for_each(|judgement| judgement.forced = self.force);
        Cow::Owned(study)
    }

    /// The width of the text: what was asked for, or the terminal's.
    pub(crate) fn width(&self) -> Width {
        self.width.map_or_else(ui::terminal_width, width_asked_for)
    }

    /// Refuses styles and formats that such a study does not have, before any load.
    ///
    /// # Errors
    /// Where the style or the format is one of another kind of study, or two files are one.
    pub(crate) fn check(&self, kind: StudyKind) -> Result<(), Mistake> {
        let (whose, styles) = kind.styles();
        if let Some(style) = self.style.filter(|style| !styles.contains(style)) {
            let names = styles.iter().map(|style| style.name()).collect::<Vec<_>>().join(" or ");
            return Err(wrong(format!(
                "--style {} does not fit {whose}: --style {names} does",
                style.name()
            )));
        }
        let files: Vec<OutputFile> = self.files().collect();
        let mut formats = files.iter().map(|file| file.format).chain([self.printed()]);
        if kind != StudyKind::Load && formats.any(|format| format == OutputFormat::Hdr) {
            return Err(wrong(format!(
                "{whose} has no HDR log: a load that longtail itself makes has one"
            )));
        }
        let twice = files.iter().enumerate().find(|(at, file)| {
            files[..*at].iter().any(|other| crate::study_files::are_one(&other.path, &file.path))
        });
        match twice {
            Some((_, file)) => Err(wrong(format!(
                "'{}' is to be written twice: give each format a file of its own",
                file.path.display()
            ))),
            None => Ok(()),
        }
    }
}

/// How findings are printed.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct FormatArgs {
    /// Print it as JSON, for scripts
    #[arg(long, help_heading = "Output")]
    json: bool,
    /// The words of `--format`, from before there was `--json`.
    #[arg(long, hide = true, conflicts_with = "json", value_parser = words(&[("text", false), ("json", true)]))]
    format: Option<bool>,
}

impl FormatArgs {
    /// Whether a program reads it.
    pub(crate) fn is_json(self) -> bool {
        self.json || self.format == Some(true)
    }
}

/// What is expected of each run.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct ThresholdArgs {
    /// Exit with 1 where a run misses this: 'p99 < 200ms', '/search p99 < 1s'
    #[arg(long, value_name = "LIMIT", value_parser = expected, help_heading = "Output")]
    expect: Vec<Threshold>,
    /// The reverse of --expect: exit with 1 where this holds, 'p99 > 200ms'
    #[arg(long, value_name = "LIMIT", value_parser = failing, help_heading = ADVANCED)]
    fail_if: Vec<Threshold>,
}

/// Reads `--expect`.
fn expected(text: &str) -> Result<Threshold, String> {
    Threshold::on(text, true)
}

/// Reads `--fail-if`.
fn failing(text: &str) -> Result<Threshold, String> {
    Threshold::on(text, false)
}

/// The most names of classes in a mistake.
const MOST_NAMES: usize = 10;

impl ThresholdArgs {
    /// Both in one list.
    pub(crate) fn all(&self) -> Vec<Threshold> {
        [self.expect.as_slice(), &self.fail_if].concat()
    }

    /// Refuses thresholds of classes that the load does not send.
    ///
    /// # Errors
    /// If there is one.
    pub(crate) fn check_classes(&self, classes: &[String]) -> Result<(), Mistake> {
        let is_sent = |it: &Threshold| classes.iter().any(|class| it.is_about(class));
        let thresholds = self.expect.iter().chain(&self.fail_if);
        let unknown = thresholds.filter(|it| !is_sent(it)).find_map(|it| it.class.as_deref());
        let Some(unknown) = unknown else { return Ok(()) };
        let unknown = masked_word(unknown);
        if classes.is_empty() {
            return Err(wrong(format!(
                "no class of requests is called '{unknown}', for all requests of this load are alike: \
                 give --mix, or leave '{unknown}' out of the limit"
            )));
        }
        let shown = &classes[..classes.len().min(MOST_NAMES)];
        let more = match classes.len() - shown.len() {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        Err(wrong(format!(
            "no class of requests is called '{unknown}': this load sends '{}'{more}",
            shown.join("', '")
        )))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ending_of_a_file_is_its_format() {
        for (name, format) in [
            ("x.study.json", OutputFormat::Study),
            ("out/x.json", OutputFormat::Summary),
            ("X.HTML", OutputFormat::Html),
            ("a.study.md", OutputFormat::Markdown),
            ("x.csv", OutputFormat::Csv),
            ("x.txt", OutputFormat::Answer),
        ] {
            assert_eq!(OutputFile::of(name.into()).map(|file| file.format), Ok(format), "{name}");
        }
        assert!(OutputFile::of("-".into()).unwrap_err().contains("--json"));
        assert!(page("-".into()).unwrap_err().contains("page.html"));
        for name in ["x", "x.pdf", "json", "/", ""] {
            assert!(OutputFile::of(name.into()).unwrap_err().contains(".study.json"), "{name}");
        }
    }
}
