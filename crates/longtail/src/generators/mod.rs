//! Other load generators, as `longtail calibrate` and `--generator` run them: which there are (here), what one is asked to do
//! and whether it can (`order`), its command line (`command`), its process (`process`), and what it claims (`driver`).

mod command;
mod driver;
mod order;
mod process;

use std::ffi::{OsStr, OsString};
use std::path::Path;

use audit::LoadTool;
use clap::ValueEnum;
use launch::find_program;
use serde::Serialize;

pub(crate) use driver::{GeneratorDriver, KnownServer};
pub(crate) use order::{LoadEnd, LoadOrder};
pub(crate) use process::{GeneratorRunner, ProcessReport};

use crate::mistake::{Mistake, wrong};
use crate::this_program;

/// What can make load, in the order of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Generator {
    #[value(hide = true)]
    Longtail,
    Wrk,
    Hey,
    Oha,
    Ab,
    H2load,
    Bombardier,
    Wrk2,
    Vegeta,
}

/// What is known of a generator without running it.
struct GeneratorTraits {
    /// Its program, and what people call it.
    name: &'static str,
    /// Whose output it prints; `None` of our own, which is read as a study.
    prints: Option<LoadTool>,
    /// What makes it print its version; `None` of one that does not.
    version_flag: Option<&'static str>,
    /// The percentiles that it prints, rising; without the longest.
    percentiles: &'static [f64],
}

impl Generator {
    fn traits(self) -> GeneratorTraits {
        let (name, prints, version_flag, percentiles): (_, _, _, &[f64]) = match self {
            Generator::Longtail => ("longtail", None, None, &[]),
            Generator::Wrk => ("wrk", Some(LoadTool::Wrk), Some("-v"), &[0.50, 0.75, 0.90, 0.99]),
            Generator::Hey => ("hey", Some(LoadTool::Hey), None, &[0.10, 0.25, 0.50, 0.75, 0.90, 0.95, 0.99]),
            Generator::Oha => {
                let percentiles = &[0.10, 0.25, 0.50, 0.75, 0.90, 0.95, 0.99, 0.999, 0.9999];
                ("oha", Some(LoadTool::Oha), Some("--version"), percentiles)
            }
            Generator::Ab => ("ab", Some(LoadTool::Ab), Some("-V"), &[0.50, 0.66, 0.75, 0.80, 0.90, 0.95, 0.98, 0.99]),
            Generator::H2load => ("h2load", Some(LoadTool::H2load), Some("--version"), &[]),
            Generator::Bombardier => {
                ("bombardier", Some(LoadTool::Bombardier), Some("--version"), &[0.50, 0.75, 0.90, 0.95, 0.99])
            }
            Generator::Wrk2 => {
                ("wrk2", Some(LoadTool::Wrk2), Some("-v"), &[0.50, 0.75, 0.90, 0.99, 0.999, 0.9999, 0.99999])
            }
            Generator::Vegeta => ("vegeta", Some(LoadTool::Vegeta), Some("-version"), &[0.50, 0.90, 0.95, 0.99]),
        };
        GeneratorTraits { name, prints, version_flag, percentiles }
    }

    /// Its program's name.
    pub(crate) fn name(self) -> &'static str {
        self.traits().name
    }

    /// Whose output it prints; `None` of our own, which is read as a study.
    pub(crate) fn prints(self) -> Option<LoadTool> {
        self.traits().prints
    }

    /// Its program in `path`, the value of PATH; `this_program` is our own.
    pub(crate) fn program(self, path: &OsStr, this_program: &OsStr) -> Option<OsString> {
        if self == Generator::Longtail {
            return Some(this_program.to_owned());
        }
        find_program(OsStr::new(self.name()), Path::new(""), path).map(Into::into)
    }
}

/// A generator that was found on PATH.
#[derive(Clone, Debug)]
pub(crate) struct InstalledGenerator {
    pub(crate) generator: Generator,
    pub(crate) program: OsString,
}

impl InstalledGenerator {
    /// Looks for it.
    ///
    /// # Errors
    /// Where it is not on PATH.
    pub(crate) fn on_path(generator: Generator) -> Result<InstalledGenerator, Mistake> {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let name = generator.name();
        let missing =
            || wrong(format!("--generator {name}: {name} is not on PATH; install it, or leave out --generator"));
        let program = generator.program(&path, &this_program()).ok_or_else(missing)?;
        Ok(InstalledGenerator { generator, program })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_is_not_on_path_is_missing() {
        let found = |one: Generator| one.program(OsStr::new("/nowhere:/proc/self"), OsStr::new("/bin/us"));
        assert_eq!((found(Generator::Wrk), found(Generator::Longtail)), (None, Some("/bin/us".into())));
    }
}
