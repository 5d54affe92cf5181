//! How results are printed: the same flags for every command that prints a study.

use clap::{Args, ValueEnum};
use model::{BodiesStudy, Judgement, Study, SweepStudy, Verdict};
use report::{Layout, Width};

use crate::mistake::{Mistake, wrong};
use crate::ui;

/// The layouts of text.
#[derive(Clone, Copy, Debug, PartialEq, ValueEnum)]
pub(crate) enum StyleWord {
    /// All that longtail knows (the default)
    Longtail,
    /// Of a sweep: exactly the columns of Puma's `long_tail_hey`; of bodies: those of its `response_time_wrk`
    Puma,
    /// Of a load: hey's layout
    Hey,
    /// Of a load: wrk's layout
    Wrk,
}

/// What is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, ValueEnum)]
enum FormatWord {
    /// For a terminal; a sweep's rows appear as they are done
    #[default]
    Text,
    /// For a pull request
    Markdown,
    /// The whole study
    Json,
    /// Of a load: an `HdrHistogram` log of response and service times
    Hdr,
    /// Of a load: a line a request, in order of completion, and no report; of a sweep and of bodies: a line a run
    Csv,
}

/// How results are printed.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct OutputArgs {
    /// Layout of the text [default: longtail]
    #[arg(long, alias = "columns", value_enum, help_heading = "Output")]
    style: Option<StyleWord>,
    /// What to write
    #[arg(long, value_enum, default_value_t, help_heading = "Output")]
    format: FormatWord,
    /// Fit the text to so many columns: sentences are broken, a table of runs leaves columns out and names them (Puma's never
    /// does); 0: all of it, however wide [default: the terminal's width; 0 in a pipe]
    #[arg(long, value_name = "COLUMNS", value_parser = columns_to_fit, help_heading = "Output")]
    width: Option<usize>,
    /// Print the figures of an invalid run all the same; its verdict stays
    #[arg(long, help_heading = "Output")]
    force: bool,
}

/// Reads `--width`.
fn columns_to_fit(word: &str) -> Result<usize, String> {
    match word.parse() {
        Ok(columns) if columns == 0 || columns >= Width::LEAST => Ok(columns),
        _ => Err(format!("{} columns or more, or 0 for all of it, however wide", Width::LEAST)),
    }
}

impl OutputArgs {
    /// The same with a layout where none was asked for.
    pub(crate) fn or_style(self, style: StyleWord) -> OutputArgs {
        OutputArgs { style: self.style.or(Some(style)), ..self }
    }

    /// Whether single requests are printed instead of a report.
    pub(crate) fn is_csv(self) -> bool {
        self.format == FormatWord::Csv
    }

    /// Whether a person reads it, so that other lines may stand before it.
    pub(crate) fn is_prose(self) -> bool {
        matches!(self.format, FormatWord::Text | FormatWord::Markdown)
    }

    /// Whether what is printed of a load has its verdict: other tools' layouts and single requests have no place for it.
    pub(crate) fn tells_verdict(self) -> bool {
        match self.format {
            FormatWord::Text => !matches!(self.style, Some(StyleWord::Hey | StyleWord::Wrk)),
            FormatWord::Markdown | FormatWord::Json => true,
            FormatWord::Hdr | FormatWord::Csv => false,
        }
    }

    /// A run's judgement as it is printed.
    pub(crate) fn forced(self, judgement: &mut Option<Judgement>) {
        if let Some(judgement) = judgement {
            judgement.forced = self.force;
        }
    }

    /// Whether a sweep's rows can be printed as they are done.
    pub(crate) fn streams(self) -> bool {
        self.format == FormatWord::Text
    }

    /// What the lines of the text keep to: what was asked, or what the terminal has now.
    pub(crate) fn width(self) -> Width {
        match self.width {
            Some(0) => Width::ANY,
            Some(columns) => Width::of(columns),
            None => ui::terminal_width(),
        }
    }

    /// Columns of a sweep's table.
    ///
    /// # Errors
    /// Where they are those of a load.
    pub(crate) fn sweep_columns(self) -> Result<report::Columns, Mistake> {
        match (self.format, self.style) {
            (FormatWord::Hdr, _) => Err(wrong("--format hdr is of a load: a sweep has text, markdown, json and csv")),
            (_, None | Some(StyleWord::Longtail)) => Ok(report::Columns::Longtail),
            (_, Some(StyleWord::Puma)) => Ok(report::Columns::Puma),
            (_, Some(_)) => Err(wrong("--style hey and wrk are of a load: a sweep has longtail and puma")),
        }
    }

    /// Layout of a study of bodies.
    ///
    /// # Errors
    /// Where it is that of a load.
    pub(crate) fn bodies_columns(self) -> Result<report::Columns, Mistake> {
        match (self.format, self.style) {
            (FormatWord::Hdr, _) => {
                Err(wrong("--format hdr is of a load: a study of bodies has text, markdown, json and csv"))
            }
            (_, None | Some(StyleWord::Longtail)) => Ok(report::Columns::Longtail),
            (_, Some(StyleWord::Puma)) => Ok(report::Columns::Puma),
            (_, Some(_)) => Err(wrong("--style hey and wrk are of a load: a study of bodies has longtail and puma")),
        }
    }

    /// Whether the rows of a study of bodies can be printed as they are done: Puma's tables are of all of them.
    pub(crate) fn streams_bodies(self) -> bool {
        self.streams() && self.style != Some(StyleWord::Puma)
    }

    /// Makes of a sweep what is printed of it.
    pub(crate) fn force_sweep(self, study: &mut SweepStudy) {
        study.runs.iter_mut().for_each(|run| self.forced(&mut run.judgement));
    }

    /// A study of bodies as it is printed.
    pub(crate) fn forced_bodies(self, mut study: BodiesStudy) -> BodiesStudy {
        study.runs.iter_mut().for_each(|run| self.forced(&mut run.run.judgement));
        study
    }

    /// Refuses what a load's report cannot be, before any load is sent.
    ///
    /// # Errors
    /// Where the layout is a sweep's.
    pub(crate) fn check_load(self) -> Result<(), Mistake> {
        if self.style == Some(StyleWord::Puma) {
            return Err(wrong("--style puma is of a sweep: a load has longtail, hey and wrk"));
        }
        Ok(())
    }

    /// Refuses what the report of another generator's load cannot be.
    ///
    /// # Errors
    /// Where it would need single requests, a histogram, or another layout.
    pub(crate) fn check_claimed_load(self) -> Result<(), Mistake> {
        if matches!(self.format, FormatWord::Hdr | FormatWord::Csv) {
            return Err(wrong(
                "--format hdr and csv are of our own runs: another generator's has text, markdown and json",
            ));
        }
        if self.style.is_some_and(|columns| columns != StyleWord::Longtail) {
            return Err(wrong("--style is of our own runs: another generator's report has one layout"));
        }
        Ok(())
    }

    /// The whole study as it was asked for.
    ///
    /// # Errors
    /// Where the layout is not one of that kind of study.
    pub(crate) fn whole(self, study: &Study) -> Result<String, Mistake> {
        let mut study = study.clone();
        let width = self.width();
        match &mut study {
            Study::Sweep(sweep) => self.force_sweep(sweep),
            Study::Load(load) => self.forced(&mut load.run.judgement),
            Study::Bodies(bodies) => bodies.runs.iter_mut().for_each(|run| self.forced(&mut run.run.judgement)),
            // No judgement of ours is on a claim.
            Study::LoadWith(_) => {}
        }
        let layout = |columns| Layout { columns, width };
        match &study {
            Study::Sweep(_) => self.sweep_columns().map(|_| ())?,
            Study::Bodies(_) => self.bodies_columns().map(|_| ())?,
            Study::LoadWith(_) => self.check_claimed_load()?,
            Study::Load(load) => {
                self.check_load()?;
                let is_hidden = load.run.judgement.as_ref().is_some_and(|j| j.verdict == Verdict::Invalid && !j.forced);
                // Those tools have no word for a run whose figures are worth nothing.
                if is_hidden && !self.tells_verdict() && self.format != FormatWord::Csv {
                    return Ok(
                        "INVALID: the run's figures are not shown; longtail report says why, --force shows them\n"
                            .to_owned(),
                    );
                }
            }
        }
        Ok(match (self.format, &study) {
            (FormatWord::Json, _) => report::json::write(&study),
            (FormatWord::Markdown, _) => report::markdown::whole(&report::report(&study)),
            (FormatWord::Csv, Study::Load(_)) => {
                return Err(wrong("a study keeps no single requests: give --log FILE.csv or --format csv to the run"));
            }
            (FormatWord::Csv, _) => report::csv::whole(&report::report(&study)),
            (FormatWord::Hdr, Study::Load(load)) => report::hdr_log::log(load),
            (FormatWord::Text | FormatWord::Hdr, Study::Sweep(sweep)) => {
                report::sweep::whole(sweep, layout(self.sweep_columns()?))
            }
            (FormatWord::Text | FormatWord::Hdr, Study::Bodies(bodies)) => {
                report::bodies::whole(bodies, layout(self.bodies_columns()?))
            }
            (FormatWord::Text, Study::Load(load)) if self.style == Some(StyleWord::Hey) => report::hey::whole(load),
            (FormatWord::Text, Study::Load(load)) if self.style == Some(StyleWord::Wrk) => report::wrk::whole(load),
            (FormatWord::Text | FormatWord::Hdr, _) => report::text::whole(&report::report(&study), width),
        })
    }
}
