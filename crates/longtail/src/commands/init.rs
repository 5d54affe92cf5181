//! `longtail init`: `bin/longtail` for a Ruby app whose bundle has the gem, and the lines to add to
//! its files, which are not changed.

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use crate::exit::{Exit, Mistake, unwritable, wrong};
use crate::ui;

/// What `bundle binstubs` writes, without the check of its own version.
const BINSTUB: &str = r#"#!/usr/bin/env ruby
require "rubygems"
require "bundler/setup"

load Gem.bin_path("longtail", "longtail")
"#;
const BINSTUB_PATH: &str = "bin/longtail";
const GEM_LINE: &str = "gem \"longtail\", group: :development, require: false";
/// A load that any app can take: a connection for each thread.
const CHECK: &str =
    "bin/longtail sweep -r config.ru --path /up --multiples 1 --for 20s --expect 'p99 < 200ms'";

/// Writes the binstub into the app's folder, which is the current one.
///
/// # Errors
/// Where this is no folder of an app, or `bin` cannot be written.
pub(crate) fn run() -> Result<Exit, Mistake> {
    let gemfile = ["Gemfile", "gems.rb"].into_iter().find(|name| Path::new(name).exists());
    let Some(gemfile) = gemfile else {
        return Err(wrong(
            "there is no Gemfile here: go to your app's folder (without a bundle, longtail needs no init)",
        ));
    };
    let is_new = write_binstub(Path::new(BINSTUB_PATH))
        .map_err(|why| unwritable(Path::new(BINSTUB_PATH), &why, "let this user write there"))?;
    let has_gem = fs::read_to_string(gemfile).is_ok_and(|text| text.lines().any(names_this_gem));
    ui::print(&advice(is_new, gemfile, has_gem, Path::new("config/ci.rb").exists()));
    Ok(Exit::Fine)
}

/// Whether it was written: a file that is there stays as it is.
fn write_binstub(path: &Path) -> io::Result<bool> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    match OpenOptions::new().write(true).create_new(true).mode(0o777).open(path) {
        Ok(mut file) => file.write_all(BINSTUB.as_bytes()).map(|()| true),
        Err(why) if why.kind() == io::ErrorKind::AlreadyExists => Ok(false),
        Err(why) => Err(why),
    }
}

/// Whether this line of a Gemfile asks for longtail.
fn names_this_gem(line: &str) -> bool {
    let line = line.trim_start();
    line.strip_prefix("gem").is_some_and(|rest| {
        let name = rest.trim_start_matches([' ', '(']);
        name.starts_with("\"longtail\"") || name.starts_with("'longtail'")
    })
}

/// What was done, and what is left to do by hand.
fn advice(is_new: bool, gemfile: &str, has_gem: bool, has_ci: bool) -> String {
    let what = if is_new { "is written" } else { "is there already, and stays as it is" };
    let mut parts = vec![format!("{BINSTUB_PATH} {what}.\n")];
    if !has_gem {
        parts.push(format!("Add to {gemfile}, and run bundle install:\n\n  {GEM_LINE}\n"));
    }
    parts.push(format!(
        "Measure your app, on the Puma of its bundle:\n\n  {BINSTUB_PATH} sweep -r config.ru --path /up\n"
    ));
    let step = if has_ci {
        format!(
            "As a step of config/ci.rb, with your own path and limit:\n\n  step \"Response time\", \"{CHECK}\"\n"
        )
    } else {
        format!(
            "As a step of a GitHub workflow, with your own path and limit:\n\n  - run: {CHECK}\n"
        )
    };
    parts.push(step);
    parts.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gemfile_names_the_gem_only_where_it_asks_for_it() {
        for line in [GEM_LINE, "  gem 'longtail'", "gem(\"longtail\", \"~> 0.2\")"] {
            assert!(names_this_gem(line), "{line}");
        }
        for line in
            ["# gem \"longtail\"", "gem \"longtailed\"", "gem \"puma\" # longtail", "longtail"]
        {
            assert!(!names_this_gem(line), "{line}");
        }
    }

    #[test]
    fn what_is_there_already_is_not_advised() {
        let complete = advice(false, "Gemfile", true, true);
        assert!(complete.contains("stays as it is") && !complete.contains("Add to"), "{complete}");
        assert!(complete.contains("step \"Response time\", \"bin/longtail sweep"), "{complete}");
        let new = advice(true, "gems.rb", false, false);
        assert!(new.contains("Add to gems.rb") && new.contains(GEM_LINE), "{new}");
        assert!(
            new.contains("- run: bin/longtail sweep") && !new.contains("config/ci.rb"),
            "{new}"
        );
    }
}
