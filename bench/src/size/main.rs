//! The size of the workspace, and whether it keeps its own rules: `make size`.
//!
//! Prints the lines of each crate, without comments, blanks and tests. The exit code is 1 if two
//! types have the same name, files of a crate import each other in a circle, or a parameter is a
//! tuple; a test checks the same.

mod source;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::path::Path;
use std::process::ExitCode;
use std::{env, fs};

use source::{ModulePath, SourceFile};

fn main() -> ExitCode {
    let root = env::args_os().nth(1).unwrap_or_else(|| ".".into());
    let mut files = Vec::new();
    if let Err(mistake) = read(Path::new(&root), Path::new(""), &mut files) {
        let _ = writeln!(io::stderr(), "size: {mistake}");
        return ExitCode::from(2);
    }
    let house = House::new(files);
    let broken = house.broken();
    let listed: String = broken.iter().flat_map(|line| ["  ", line, "\n"]).collect();
    let _ = write!(io::stdout(), "{}{listed}", house.table());
    ExitCode::from(u8::from(!broken.is_empty()))
}

/// All Rust files in `folder` below `root`, except those made by cargo and git.
fn read(root: &Path, folder: &Path, files: &mut Vec<SourceFile>) -> Result<(), String> {
    let fault = |error: io::Error| format!("{}: {error}", root.join(folder).display());
    let mut entries: Vec<_> =
        fs::read_dir(root.join(folder)).map_err(fault)?.collect::<Result<_, _>>().map_err(fault)?;
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let name = entry.file_name();
        let path = folder.join(&name);
        if entry.file_type().map_err(fault)?.is_dir() {
            if name != "target" && name != ".git" {
                read(root, &path, files)?;
            }
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(SourceFile::read(
                &path,
                &fs::read_to_string(root.join(&path)).map_err(fault)?,
            )?);
        }
    }
    Ok(())
}

/// Folders that are not shipped; their names and lines don't count.
const ASIDE: [&str; 3] = ["bench", "testkit", "fuzz"];
/// The mean length of type names to aim for (ripgrep, oha, hyperfine: 10 to 12).
const NAME_GOAL: f64 = 10.0;

/// A parsed workspace.
struct House {
    files: Vec<SourceFile>,
}

impl House {
    fn new(files: Vec<SourceFile>) -> House {
        House { files }
    }

    fn shipped(&self) -> impl Iterator<Item = &SourceFile> {
        self.files.iter().filter(|file| !ASIDE.contains(&file.crate_name.as_str()))
    }

    fn crates(&self) -> BTreeMap<&str, Vec<&SourceFile>> {
        let mut crates: BTreeMap<&str, Vec<&SourceFile>> = BTreeMap::new();
        for file in &self.files {
            crates.entry(&file.crate_name).or_default().push(file);
        }
        crates
    }

    /// Lines of each crate, largest first, those that are not shipped at the end; then the totals.
    fn table(&self) -> String {
        let mut text = format!("{:10} files  shipped   tests comments  median largest\n", "crate");
        let mut crates: Vec<_> = self.crates().into_iter().collect();
        crates.sort_by_key(|(name, files)| {
            (ASIDE.contains(name), usize::MAX - sum(files, |file| file.shipped))
        });
        let mut is_aside = false;
        for (name, files) in crates {
            if ASIDE.contains(&name) && !is_aside {
                is_aside = true;
                text.push_str("not shipped\n");
            }
            let mut own: Vec<usize> =
                files.iter().map(|file| file.shipped).filter(|lines| *lines > 0).collect();
            own.sort_unstable();
            let _ = writeln!(
                text,
                "{name:10} {:5} {:8} {:7} {:8} {:7} {:7}",
                own.len(),
                sum(&files, |file| file.shipped),
                sum(&files, |file| file.tests),
                sum(&files, |file| file.comments),
                own.get(own.len() / 2).copied().unwrap_or_default(),
                own.last().copied().unwrap_or_default(),
            );
        }
        let shipped: usize = self.shipped().map(|file| file.shipped).sum();
        let tests: usize = self.files.iter().map(|file| file.tests).sum();
        let names: Vec<usize> =
            self.shipped().flat_map(|file| &file.type_names).map(String::len).collect();
        let mean = names.iter().sum::<usize>() as f64 / names.len().max(1) as f64;
        let _ = write!(
            text,
            "\nshipped {shipped} lines, tests {tests}\n\
             {} type names of {mean:.2} letters on average (goal: {NAME_GOAL})\n",
            names.len(),
        );
        text
    }

    /// Broken rules, one line each.
    fn broken(&self) -> Vec<String> {
        let mut broken = Vec::new();
        let mut names: BTreeMap<&str, Vec<&Path>> = BTreeMap::new();
        for file in self.shipped() {
            for name in &file.type_names {
                names.entry(name).or_default().push(&file.path);
            }
        }
        for (name, paths) in names.into_iter().filter(|(_, paths)| paths.len() > 1) {
            broken.push(format!("type name {name} is used more than once: {}", list(paths)));
        }
        for files in self.crates().values() {
            broken.extend(
                circles(files)
                    .into_iter()
                    .map(|paths| format!("files import each other: {}", list(paths))),
            );
        }
        for file in self.shipped() {
            let has_tuple =
                |place: &String| format!("{}:{place} takes a tuple", file.path.display());
            broken.extend(file.tuples.iter().map(has_tuple));
        }
        broken
    }
}

fn sum(files: &[&SourceFile], lines: impl Fn(&SourceFile) -> usize) -> usize {
    files.iter().map(|file| lines(file)).sum()
}

fn list(paths: Vec<&Path>) -> String {
    paths.into_iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", ")
}

/// Groups of files of one crate that all reach each other by imports.
fn circles<'a>(files: &[&'a SourceFile]) -> Vec<Vec<&'a Path>> {
    let modules: BTreeMap<&ModulePath, &SourceFile> =
        files.iter().filter_map(|file| Some((file.module.as_ref()?, *file))).collect();
    let reached: Vec<BTreeSet<&Path>> =
        files.iter().map(|file| reached_from(file, &modules)).collect();
    let mut circles = BTreeSet::new();
    for (file, reached_here) in files.iter().zip(&reached) {
        let mutual = |(other, back): (&&'a SourceFile, &BTreeSet<&Path>)| {
            (reached_here.contains(other.path.as_path()) && back.contains(file.path.as_path()))
                .then_some(other.path.as_path())
        };
        let circle: Vec<&Path> = files.iter().zip(&reached).filter_map(mutual).collect();
        if circle.len() > 1 {
            circles.insert(circle);
        }
    }
    circles.into_iter().collect()
}

/// All files that a file imports, directly or indirectly.
fn reached_from<'a>(
    file: &SourceFile,
    modules: &BTreeMap<&ModulePath, &'a SourceFile>,
) -> BTreeSet<&'a Path> {
    let mut reached = BTreeSet::new();
    let mut ahead = imported(file, modules);
    while let Some(next) = ahead.pop() {
        if reached.insert(next.path.as_path()) {
            ahead.extend(imported(next, modules));
        }
    }
    reached
}

/// The files that a file imports directly, except those below it: a module may use its own parts.
fn imported<'a>(
    file: &SourceFile,
    modules: &BTreeMap<&ModulePath, &'a SourceFile>,
) -> Vec<&'a SourceFile> {
    let Some(here) = &file.module else { return Vec::new() };
    let is_elsewhere =
        |other: &&SourceFile| other.module.as_ref().is_some_and(|module| !module.starts_with(here));
    file.imports
        .iter()
        .filter_map(|path| defined_in(path, modules, 0))
        .filter(is_elsewhere)
        .collect()
}

/// The file that defines the item of a path, following each `pub use`.
fn defined_in<'a>(
    path: &ModulePath,
    modules: &BTreeMap<&ModulePath, &'a SourceFile>,
    through: usize,
) -> Option<&'a SourceFile> {
    let (at, file) =
        (0..=path.len()).rev().find_map(|at| Some((at, *modules.get(&path[..at].to_vec())?)))?;
    let Some(name) = path.get(at) else { return Some(file) };
    match file.exports.iter().find(|(here, _)| here == name) {
        // Two modules that re-export each other's names are in a circle anyway.
        Some((_, from)) if through < 8 && from != path => {
            defined_in(&[from, &path[at + 1..]].concat(), modules, through + 1)
        }
        _ => Some(file),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_workspace_keeps_its_rules() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        let mut files = Vec::new();
        read(root, Path::new(""), &mut files).unwrap();
        assert!(files.len() > 100, "{}", files.len());
        let broken = House::new(files).broken();
        assert!(broken.is_empty(), "{}", broken.join("\n"));
    }

    fn house(files: &[(&str, &str)]) -> House {
        House::new(
            files
                .iter()
                .map(|(path, text)| SourceFile::read(Path::new(path), text).unwrap())
                .collect(),
        )
    }

    #[test]
    fn a_type_name_used_twice_breaks_a_rule_except_in_tests() {
        let twice = house(&[
            ("crates/a/src/lib.rs", "pub struct Place;"),
            ("crates/b/src/lib.rs", "enum Place {}\n#[cfg(test)]\nmod tests { struct Other; }"),
            ("crates/b/tests/all.rs", "struct Place; struct Other;"),
            ("bench/src/main.rs", "struct Place;"),
        ]);
        assert_eq!(
            twice.broken(),
            ["type name Place is used more than once: crates/a/src/lib.rs, crates/b/src/lib.rs"]
        );
    }

    #[test]
    fn circles_are_found_through_re_exports() {
        let root = (
            "crates/a/src/lib.rs",
            "mod ink; mod pen; mod pot; pub use ink::Ink; pub use pen::Pen;",
        );
        let circle = house(&[
            root,
            ("crates/a/src/ink.rs", "use crate::Pen; pub struct Ink;"),
            (
                "crates/a/src/pen.rs",
                "use std::fmt; pub struct Pen; fn fill() { super::ink::dip() }",
            ),
            ("crates/a/src/pot.rs", "use crate::{Ink, Pen};"),
        ]);
        assert_eq!(
            circle.broken(),
            ["files import each other: crates/a/src/ink.rs, crates/a/src/pen.rs"]
        );
        let line = house(&[
            root,
            ("crates/a/src/ink.rs", "use crate::Pen; pub struct Ink;"),
            ("crates/a/src/pen.rs", "pub struct Pen; #[cfg(test)] mod tests { use crate::Ink; }"),
            ("crates/a/src/pot.rs", "use crate::{Ink, Pen};"),
        ]);
        assert_eq!(line.broken(), Vec::<String>::new());
    }

    #[test]
    fn a_module_and_its_own_parts_may_import_each_other() {
        let both = house(&[
            ("crates/a/src/lib.rs", "mod pen; mod pot;"),
            ("crates/a/src/pen.rs", "mod nib; use nib::Nib; pub struct Pen(Nib);"),
            ("crates/a/src/pen/nib.rs", "use super::Pen; pub struct Nib;"),
            ("crates/a/src/pot.rs", "use crate::pen::nib::Nib;"),
        ]);
        assert_eq!(both.broken(), Vec::<String>::new());
    }

    #[test]
    fn a_tuple_parameter_breaks_a_rule() {
        let tuple = house(&[
            (
                "crates/a/src/lib.rs",
                "fn f(a: u8) {}\nfn g(at: &[(u8, u8)]) {}\n#[cfg(test)]\nfn h(at: (u8, u8)) {}",
            ),
            ("bench/src/main.rs", "fn f(at: (u8, u8)) {}"),
        ]);
        assert_eq!(tuple.broken(), ["crates/a/src/lib.rs:2: g takes a tuple"]);
    }

    #[test]
    fn bench_and_testkit_are_not_shipped() {
        let text = house(&[
            ("crates/a/src/lib.rs", "struct Pencil;\n\n// Why.\nfn f() {}\n"),
            ("crates/testkit/src/lib.rs", "struct Pen;\n"),
        ])
        .table();
        assert!(
            text.contains(
                "a              1        2       0        1       2       2\nnot shipped\ntestkit "
            ),
            "{text}"
        );
        assert!(text.contains("shipped 2 lines"), "{text}");
        assert!(text.contains("1 type names of 6.00 letters"), "{text}");
    }
}
