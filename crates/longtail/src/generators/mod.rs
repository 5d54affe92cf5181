//! Other load generators, as `longtail doctor --generators` and `--generator` run them: a table of what each can do and in which words
//! (here), what one is asked to do and whether it can (`order`), its process (`process`), and what it claims (`driver`).

mod driver;
mod order;
mod process;

use std::ffi::{OsStr, OsString};
use std::path::Path;

use audit::LoadTool;
use clap::ValueEnum;
use launch::find_program;
use serde::Serialize;

pub(crate) use driver::{GeneratorDriver, claimed_run};
pub(crate) use order::LoadOrder;
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
    /// What makes it print its version; empty of one that does not.
    version_flag: &'static str,
    /// The percentiles that it prints, rising; without the longest.
    percentiles: &'static [f64],
    /// How a load is put into its words: see [`LoadOrder::argument`] for what stands in braces. Brackets enclose what is left out where a
    /// load has no such thing. What has no place here it cannot do.
    words: &'static str,
}

impl Generator {
    fn traits(self) -> GeneratorTraits {
        let (name, prints, version_flag, percentiles, words): (_, _, _, &[f64], _) = match self {
            Generator::Longtail => (
                "longtail",
                None,
                "",
                &[],
                "load --format study --no-calibrate --generator-threads {t} -c {c} [--for {time}s] {url}",
            ),
            Generator::Wrk => (
                "wrk",
                Some(LoadTool::Wrk),
                "-v",
                &[0.50, 0.75, 0.90, 0.99],
                "-t{t} -c{c} --latency --timeout {s}s [-d {time}s] [-H {close}] [-H {header}] {url}",
            ),
            Generator::Hey => (
                "hey",
                Some(LoadTool::Hey),
                "",
                &[0.10, 0.25, 0.50, 0.75, 0.90, 0.95, 0.99],
                "-cpus {t} -c {c} -t {s} -disable-redirects [-z {time}s] [-n {n}] [-q {each}] [-m {m}] \
                 [-disable-keepalive{closes}] [-host {host}] [-H {header}] [-D {body}] {url}",
            ),
            Generator::Oha => (
                "oha",
                Some(LoadTool::Oha),
                "--version",
                &[0.10, 0.25, 0.50, 0.75, 0.90, 0.95, 0.99, 0.999, 0.9999],
                "--no-tui -c {c} -t {s}s --redirect 0 --insecure [-z {time}s] [-n {n}] [-q {rate}] [-m {m}] \
                 [--disable-keepalive{closes}] [-H {header}] [-D {body}] {url}",
            ),
            // Without -l an answer of another length than the first is a failed one. -t alone ends it after 50 000 requests.
            Generator::Ab => (
                "ab",
                Some(LoadTool::Ab),
                "-V",
                &[0.50, 0.66, 0.75, 0.80, 0.90, 0.95, 0.98, 0.99],
                "-q -l -c {c} -s {s} [-k{keeps}] [-t {time} -n {enough}] [-n {n}] [-m {bodiless}] [-H {header}] [-p {body}] {url}",
            ),
            Generator::H2load => (
                "h2load",
                Some(LoadTool::H2load),
                "--version",
                &[],
                "--h1 -t{t} -c{c} -N {s}s [-D {time}s] [-n {n}] [-H {header}] [-d {body}] {url}",
            ),
            Generator::Bombardier => (
                "bombardier",
                Some(LoadTool::Bombardier),
                "--version",
                &[0.50, 0.75, 0.90, 0.95, 0.99],
                "-l -p r -k -c {c} -t {s}s [-d {time}s] [-n {n}] [-r {rate}] [-m {m}] [-a{closes}] [-H {header}] [-f {body}] {url}",
            ),
            Generator::Wrk2 => (
                "wrk2",
                Some(LoadTool::Wrk2),
                "-v",
                &[0.50, 0.75, 0.90, 0.99, 0.999, 0.9999, 0.99999],
                "-t{t} -c{c} --latency --timeout {s}s [-d {time}s] [-R {rate}] [-R 10000000{floods}] [-H {close}] [-H {header}] {url}",
            ),
            // Method and URL are in its file of targets.
            Generator::Vegeta => (
                "vegeta",
                Some(LoadTool::Vegeta),
                "-version",
                &[0.50, 0.90, 0.95, 0.99],
                "-cpus={t} attack -max-workers={c} -connections={c} -max-connections={c} -redirects=-1 -insecure \
                 -timeout={s}s [-keepalive=false{closes}] [-rate={rate}/s] [-rate=0 -workers={c}{floods}] [-duration={time}s] \
                 -output={folder}/vegeta.bin -targets={folder}/targets [-header {header}] [-body {body}]",
            ),
        };
        GeneratorTraits { name, prints, version_flag, percentiles, words }
    }

    /// Whether its words have a place for one of these.
    fn takes(self, placeholders: &[&str]) -> bool {
        placeholders.iter().any(|one| self.traits().words.contains(one))
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
