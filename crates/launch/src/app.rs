//! The apps that longtail brings, inside its executable: a user who has only that has no `servers/` folder.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use model::App;

const SLEEP: &str = include_str!("../../../servers/sleep.ru");
const BODIES: &str = include_str!("../../../servers/bodies.ru");

/// Where `bodies.ru` makes its files, below the directory that it is written into: they go with that.
const BODIES_FOLDER: (&str, &str) = ("LONGTAIL_BODIES_FOLDER", "bodies");

/// The files of `servers/rails` that the app consists of. Rails finds each by its place below `config.ru`.
const RAILS: [(&str, &str); 4] = [
    ("config.ru", include_str!("../../../servers/rails/config.ru")),
    ("config/application.rb", include_str!("../../../servers/rails/config/application.rb")),
    ("config/routes.rb", include_str!("../../../servers/rails/config/routes.rb")),
    ("app/controllers/sleep_controller.rb", include_str!("../../../servers/rails/app/controllers/sleep_controller.rb")),
];

/// How the Rails app begins its last words where there is no Rails; what is missing follows in parentheses.
const NO_RAILS: &str = "Rails is not installed (";

/// Writes the app into `dir` and returns its rackup file.
pub(crate) fn write(app: App, dir: &Path) -> io::Result<PathBuf> {
    match app {
        App::Sleep => {
            let rackup = dir.join("sleep.ru");
            fs::write(&rackup, SLEEP)?;
            Ok(rackup)
        }
        App::Bodies => {
            let rackup = dir.join("bodies.ru");
            fs::write(&rackup, BODIES)?;
            Ok(rackup)
        }
        App::Rails => {
            let root = dir.join("rails");
            for (name, text) in RAILS {
                let file = root.join(name);
                fs::create_dir_all(file.parent().expect("every file is below the root"))?;
                fs::write(file, text)?;
            }
            Ok(root.join("config.ru"))
        }
    }
}

/// What the app that was written into `dir` wants in its environment.
pub(crate) fn environment(app: App, dir: &Path) -> Option<(OsString, OsString)> {
    match app {
        App::Sleep => None,
        App::Rails => Some(("RAILS_ENV".into(), "production".into())),
        App::Bodies => {
            let (name, folder) = BODIES_FOLDER;
            Some((name.into(), dir.join(folder).into()))
        }
    }
}

/// What the Rails app says is missing, where it has said so in this line.
pub(crate) fn missing_rails(line: &str) -> Option<&str> {
    let (_, rest) = line.split_once(NO_RAILS)?;
    Some(rest.split_once("): ").map_or(rest, |(what, _)| what))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_file_of_the_rails_app_is_left_behind() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../servers/rails");
        let mut folders = vec![root.clone()];
        let mut files = Vec::new();
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    folders.push(path);
                } else if path.extension().is_some_and(|kind| kind == "rb" || kind == "ru") {
                    files.push(path.strip_prefix(&root).unwrap().to_str().unwrap().to_owned());
                }
            }
        }
        files.sort_unstable();
        let mut brought = RAILS.map(|(name, _)| name.to_owned());
        brought.sort_unstable();
        assert_eq!(files, brought);
    }

    #[test]
    fn the_app_of_bodies_reads_the_folder_that_it_is_given() {
        assert!(BODIES.contains(&format!("ENV['{}']", BODIES_FOLDER.0)));
    }

    #[test]
    fn the_rails_app_says_what_is_missing_as_it_is_expected_to() {
        assert!(RAILS.iter().any(|(_, text)| text.contains(&format!("abort \"{NO_RAILS}#{{error.message}}): "))));
        let line = "Rails is not installed (cannot load such file -- rails): apt-get install ruby-railties";
        assert_eq!(missing_rails(line), Some("cannot load such file -- rails"));
        assert_eq!(missing_rails("* Listening on http://127.0.0.1:1"), None);
    }
}
