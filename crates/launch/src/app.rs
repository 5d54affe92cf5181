//! The apps that longtail brings, inside its executable: a user who has only that has no `servers/` folder.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use model::App;

/// The files of an app, by their places below the directory that it is written into; the first is its rackup file. Rails finds each of
/// its own by that place.
const fn files(app: App) -> &'static [(&'static str, &'static str)] {
    match app {
        App::Sleep => &[("sleep.ru", include_str!("../../../servers/sleep.ru"))],
        App::Bodies => &[("bodies.ru", include_str!("../../../servers/bodies.ru"))],
        App::Rails => &[
            ("rails/config.ru", include_str!("../../../servers/rails/config.ru")),
            ("rails/config/application.rb", include_str!("../../../servers/rails/config/application.rb")),
            ("rails/config/routes.rb", include_str!("../../../servers/rails/config/routes.rb")),
            (
                "rails/app/controllers/sleep_controller.rb",
                include_str!("../../../servers/rails/app/controllers/sleep_controller.rb"),
            ),
        ],
    }
}

/// How the Rails app begins its last words where there is no Rails; what is missing follows in parentheses.
const NO_RAILS: &str = "Rails is not installed (";

/// Writes the app into `dir` and returns its rackup file.
pub(crate) fn write(app: App, dir: &Path) -> io::Result<PathBuf> {
    for (name, text) in files(app) {
        let file = dir.join(name);
        fs::create_dir_all(file.parent().expect("every file is below the directory"))?;
        fs::write(file, text)?;
    }
    Ok(dir.join(files(app)[0].0))
}

/// What the app that was written into `dir` wants in its environment.
pub(crate) fn environment(app: App, dir: &Path) -> Option<(OsString, OsString)> {
    match app {
        App::Sleep => None,
        App::Rails => Some(("RAILS_ENV".into(), "production".into())),
        // Where `bodies.ru` makes its files: they go with the directory.
        App::Bodies => Some(("LONGTAIL_BODIES_FOLDER".into(), dir.join("bodies").into())),
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
    fn the_app_of_bodies_reads_the_folder_that_it_is_given() {
        let (name, _) = environment(App::Bodies, Path::new("/tmp")).unwrap();
        assert!(files(App::Bodies)[0].1.contains(&format!("ENV['{}']", name.display())));
    }

    #[test]
    fn the_rails_app_says_what_is_missing_as_it_is_expected_to() {
        assert!(
            files(App::Rails)
                .iter()
                .any(|(_, text)| text.contains(&format!("abort \"{NO_RAILS}#{{error.message}}): ")))
        );
        let line = "Rails is not installed (cannot load such file -- rails): apt-get install ruby-railties";
        assert_eq!(missing_rails(line), Some("cannot load such file -- rails"));
        assert_eq!(missing_rails("* Listening on http://127.0.0.1:1"), None);
    }
}
