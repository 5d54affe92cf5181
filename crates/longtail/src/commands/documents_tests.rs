//! Tests of the documents: every `longtail` command in them parses, every link and source file
//! exists, and the README begins with a command and its output.
//!
//! A command is parsed and not run. A block whose command cannot be parsed here has `<!-- not run:
//! why -->` above it.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use clap::error::ErrorKind;

use super::parse;

/// A page of the documents.
struct Page {
    path: PathBuf,
    text: String,
}

fn root() -> PathBuf {
    fs::canonicalize(Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")).unwrap()
}

/// All pages that this repository has, but for the CHANGELOG, which is history.
fn pages() -> Vec<Page> {
    let mut paths: Vec<PathBuf> =
        ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "SECURITY.md", "STABILITY.md"]
            .map(|name| root().join(name))
            .into();
    for folder in ["docs", "bench", "servers"] {
        let entries = fs::read_dir(root().join(folder)).unwrap().map(|entry| entry.unwrap().path());
        paths.extend(entries.filter(|path| path.extension().is_some_and(|ending| ending == "md")));
    }
    paths.into_iter().map(|path| Page { text: fs::read_to_string(&path).unwrap(), path }).collect()
}

impl Page {
    /// The commands in code blocks, lines that a backslash continues joined.
    fn commands_in_blocks(&self) -> Vec<String> {
        let mut commands = vec![];
        let mut in_block = false;
        let mut skipped = false;
        let mut before = "";
        let joined = self.text.replace("\\\n", " ");
        for line in joined.lines() {
            if line.starts_with("```") {
                in_block = !in_block;
                skipped = in_block && before.starts_with("<!-- not run: ");
            } else if in_block && !skipped {
                // At a shell's prompt, or a step of a workflow; all other lines are output.
                let typed = ["$ ", "$ sudo ", "- run: ", "run: "]
                    .iter()
                    .find_map(|start| line.trim_start().strip_prefix(start));
                commands.extend(
                    typed.filter(|typed| typed.starts_with("longtail ")).map(str::to_owned),
                );
            }
            before = line;
        }
        commands
    }

    /// The text outside code blocks.
    fn prose(&self) -> String {
        self.text.split("\n```").step_by(2).collect::<Vec<_>>().join("\n")
    }

    /// The commands in the prose, but for those that leave something out, or offer a choice.
    fn commands_in_prose(&self) -> Vec<String> {
        let prose = self.prose().replace("\\|", "|");
        let quoted = prose.split('`').skip(1).step_by(2);
        quoted
            .filter(|code| code.starts_with("longtail ") && !code.contains(['…', '|', '<']))
            .map(str::to_owned)
            .collect()
    }

    /// Where its links lead.
    fn links(&self) -> Vec<String> {
        let prose = self.prose();
        let targets = prose.split("](").skip(1).filter_map(|rest| rest.split(')').next());
        targets.filter(|target| !target.contains("://")).map(str::to_owned).collect()
    }

    /// What a link into this page may name: its headings as GitHub spells them, and explicit
    /// anchors.
    fn anchors(&self) -> Vec<String> {
        let headings = self.text.lines().filter(|line| line.starts_with('#'));
        let spelled = headings.map(|line| {
            let title = line.trim_start_matches('#').trim().to_lowercase();
            let kept = title
                .chars()
                .filter(|char| char.is_alphanumeric() || matches!(char, ' ' | '-' | '_'));
            kept.collect::<String>().replace(' ', "-")
        });
        let explicit =
            self.text.split("<a id=\"").skip(1).filter_map(|rest| rest.split('"').next());
        spelled.chain(explicit.map(str::to_owned)).collect()
    }
}

/// The words of a command line, as a shell has them, up to a remark, a pipe or an ampersand.
fn words(line: &str) -> Vec<OsString> {
    let command = line.split("    ").next().unwrap_or_default();
    let words = shlex::split(command).unwrap_or_else(|| panic!("a quote has no end: {line}"));
    words
        .into_iter()
        .take_while(|word| !word.starts_with(['|', '&', '>']))
        .map(OsString::from)
        .collect()
}

#[test]
fn every_command_is_understood() {
    let mut refused = vec![];
    let mut understood = 0;
    for page in pages() {
        for command in page.commands_in_blocks() {
            match parse(words(&command)) {
                Ok(_) => understood += 1,
                Err(mistake) => {
                    refused.push(format!("{}: {command}\n  {mistake}", page.path.display()));
                }
            }
        }
        for command in page.commands_in_prose() {
            // Prose may leave out what a command needs, but names nothing that is not there.
            let unknown = [ErrorKind::UnknownArgument, ErrorKind::InvalidSubcommand];
            match super::help::whole().try_get_matches_from(words(&command)) {
                Err(error) if unknown.contains(&error.kind()) => {
                    refused.push(format!("{}: {command}\n  {error}", page.path.display()));
                }
                _ => understood += 1,
            }
        }
    }
    assert!(refused.is_empty(), "{}", refused.join("\n"));
    assert!(understood > 50, "{understood}: are the commands found?");
}

#[test]
fn every_link_leads_somewhere() {
    let pages = pages();
    let mut broken = vec![];
    for page in &pages {
        for link in page.links() {
            let (path, anchor) = link.split_once('#').unwrap_or((&link, ""));
            let target = if path.is_empty() {
                page.path.clone()
            } else {
                page.path.parent().unwrap().join(path)
            };
            let there = fs::canonicalize(&target).is_ok_and(|target| {
                let known = pages
                    .iter()
                    .find(|page| fs::canonicalize(&page.path).is_ok_and(|path| path == target));
                anchor.is_empty()
                    || known.is_some_and(|page| page.anchors().iter().any(|known| known == anchor))
            });
            if !there {
                broken.push(format!("{}: {link}", page.path.display()));
            }
        }
    }
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

#[test]
fn every_source_file_that_is_named_is_there() {
    let mut missing = vec![];
    for page in pages() {
        for code in page.prose().split('`').skip(1).step_by(2) {
            let is_source =
                [".rs", ".c"].iter().any(|ending| code.ends_with(ending)) && code.contains("/src/");
            let is_one = !code.contains(['{', '*', ' ', '…']);
            let there =
                || ["crates", "."].iter().any(|folder| root().join(folder).join(code).exists());
            if is_source && is_one && !there() {
                missing.push(format!("{}: {code}", page.path.display()));
            }
        }
    }
    assert!(missing.is_empty(), "{}", missing.join("\n"));
}

#[test]
fn the_readmes_first_screen_is_one() {
    let text = fs::read_to_string(root().join("README.md")).unwrap();
    let (_, rest) = text.split_once("<!-- begin: make readme -->\n").expect("where it begins");
    let (block, _) = rest.split_once("<!-- end: make readme -->\n").expect("where it ends");
    let block = block
        .strip_prefix("```console\n")
        .and_then(|block| block.strip_suffix("```\n"))
        .expect("a code block");
    let mut lines = block.lines();
    let command = lines.next().and_then(|line| line.strip_prefix("$ ")).expect("a command");
    assert!(parse(words(command)).is_ok(), "{command}");
    assert!(lines.clone().count() <= 30, "{block}");
    assert!(lines.all(|line| line.chars().count() <= 100), "{block}");
}

#[test]
fn every_make_target_that_is_named_is_there() {
    let makefile = fs::read_to_string(root().join("Makefile")).unwrap();
    let is_target = |name: &str| makefile.lines().any(|line| line.starts_with(&format!("{name}:")));
    let mut missing = vec![];
    for page in pages() {
        for (at, _) in page.text.match_indices("make ") {
            let is_command =
                page.text[..at].ends_with(['`', '$']) || page.text[..at].ends_with("$ ");
            let name = page.text[at + 5..]
                .split(|char: char| !char.is_ascii_lowercase() && char != '-')
                .next();
            let name = name.filter(|name| is_command && !name.is_empty() && !is_target(name));
            missing.extend(name.map(|name| format!("{}: make {name}", page.path.display())));
        }
    }
    assert!(missing.is_empty(), "{}", missing.join("\n"));
}

#[test]
fn the_pages_stay_short() {
    for (page, most) in [
        ("README.md", 150),
        ("ARCHITECTURE.md", 100),
        ("CONTRIBUTING.md", 60),
        ("docs/METHOD.md", 450),
        ("docs/GLOSSARY.md", 60),
    ] {
        let lines = fs::read_to_string(root().join(page)).unwrap().lines().count();
        assert!(lines <= most, "{page} has {lines} lines");
    }
}
