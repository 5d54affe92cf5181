//! The apps that longtail brings for a Puma without one (`servers/`): their files, written into the
//! server's private directory, and their environment.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::{fs, io};

use model::App;

/// The files of an app with their paths below the app's directory, by which Rails finds them. The
/// first is the rackup file.
pub(super) const fn files(app: App) -> &'static [(&'static str, &'static str)] {
    match app {
        App::Sleep => &[("sleep.ru", include_str!("../../../../servers/sleep.ru"))],
        App::Bodies => &[("bodies.ru", include_str!("../../../../servers/bodies.ru"))],
        App::Rails => &[
            ("rails/config.ru", include_str!("../../../../servers/rails/config.ru")),
            (
                "rails/config/application.rb",
                include_str!("../../../../servers/rails/config/application.rb"),
            ),
            ("rails/config/routes.rb", include_str!("../../../../servers/rails/config/routes.rb")),
            (
                "rails/app/controllers/sleep_controller.rb",
                include_str!("../../../../servers/rails/app/controllers/sleep_controller.rb"),
            ),
        ],
    }
}

/// Writes the app into `dir` and returns its rackup file.
pub(super) fn write_app(app: App, dir: &Path) -> io::Result<PathBuf> {
    for (name, text) in files(app) {
        let file = dir.join(name);
        fs::create_dir_all(file.parent().expect("every file is below the directory"))?;
        fs::write(file, text)?;
    }
    Ok(dir.join(files(app)[0].0))
}

/// Environment variables of the app in `dir`.
pub(super) fn app_environment(app: App, dir: &Path) -> Option<(OsString, OsString)> {
    match app {
        App::Sleep => None,
        App::Rails => Some(("RAILS_ENV".into(), "production".into())),
        // `bodies.ru` writes its files there, so that they are removed with the directory.
        App::Bodies => Some(("LONGTAIL_BODIES_FOLDER".into(), dir.join("bodies").into())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bodies_app_reads_the_folder_that_it_is_given() {
        let (name, _) = app_environment(App::Bodies, Path::new("/tmp")).unwrap();
        assert!(files(App::Bodies)[0].1.contains(&format!("ENV['{}']", name.display())));
    }
}
