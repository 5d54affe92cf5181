//! What surrounds this process and decides which Puma is started, and how: the current directory and
//! environment variables.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use crate::LaunchError;

/// The surroundings of this process that decide which Puma is started, and how.
#[derive(Clone, Debug)]
pub struct Surroundings {
    /// The current directory: where Puma runs.
    pub dir: PathBuf,
    /// `PATH`.
    pub path: OsString,
    /// `RUBYOPT`, which `-Y` appends to.
    pub rubyopt: Option<OsString>,
    /// `BUNDLE_GEMFILE`: the bundle to use instead of the one that is found.
    pub gemfile: Option<PathBuf>,
    /// `TMPDIR`: where the private directory is made.
    pub temporary: PathBuf,
    /// The data folder, where the private directory is noted.
    pub data: Option<PathBuf>,
}

impl Surroundings {
    /// The surroundings of this process.
    ///
    /// # Errors
    /// If the current directory was removed.
    pub fn here() -> Result<Surroundings, LaunchError> {
        Ok(Surroundings {
            dir: std::env::current_dir().map_err(|_| {
                LaunchError::Unusable(
                    "the directory '.' does not exist: start longtail in one that does".to_owned(),
                )
            })?,
            path: std::env::var_os("PATH").unwrap_or_default(),
            rubyopt: std::env::var_os("RUBYOPT").filter(|value| !value.is_empty()),
            gemfile: std::env::var_os("BUNDLE_GEMFILE")
                .filter(|value| !value.is_empty())
                .map(PathBuf::from),
            temporary: std::env::temp_dir(),
            data: crate::data_folder(),
        })
    }

    /// The surroundings of a server that runs in another folder, or with other environment
    /// variables.
    #[must_use]
    pub fn of(mut self, dir: Option<&Path>, env: &BTreeMap<OsString, OsString>) -> Surroundings {
        self.dir = dir.map_or(self.dir, Path::to_owned);
        for (name, value) in env {
            match name.to_str() {
                Some("PATH") => self.path.clone_from(value),
                Some("RUBYOPT") => self.rubyopt = Some(value.clone()),
                Some("BUNDLE_GEMFILE") => self.gemfile = Some(value.into()),
                _ => {}
            }
        }
        self
    }
}
