//! What tests of every crate share: a clock that a test steps, studies that are the same on every
//! machine, golden files, and what other generators print.
//!
//! A dev-dependency only: no product code may know it. It knows `model`, and `queueing` for theory
//! beside a study, so whatever it builds went through the real types.

pub mod bodies;
pub mod claimed;
pub mod clock;
pub mod comparison;
pub mod hostile;
pub mod http;
pub mod load;
pub mod machine;
pub mod network;
pub mod study;

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

pub mod golden {
    //! Files that say, byte for byte, what is to come out.

    use std::fmt::Debug;
    use std::fs;
    use std::path::Path;

    /// Compares what `shown` makes of each row with what stands behind its ` => `; a row that
    /// begins with # is a comment.
    ///
    /// # Panics
    /// Where they differ, or the file cannot be read or written.
    #[track_caller]
    pub fn expect_rows<T: Debug>(path: &str, shown: impl Fn(&str) -> T) {
        let file = fs::read_to_string(path).unwrap_or_else(|error| panic!("{path}: {error}"));
        assert!(file.contains(" => "), "{path} has no row");
        let row = |row: &str| match row.split_once(" => ") {
            Some((given, _)) if !row.starts_with('#') => format!("{given} => {:?}\n", shown(given)),
            _ => format!("{row}\n"),
        };
        expect(Path::new(path), &file.lines().map(row).collect::<String>());
    }

    /// Compares `text` with the file; where `UPDATE_GOLDEN` is set, the file is written first.
    ///
    /// # Panics
    /// Where they differ, or the file cannot be written.
    #[track_caller]
    pub fn expect(path: &Path, text: &str) {
        if std::env::var_os("UPDATE_GOLDEN").is_some() {
            fs::create_dir_all(path.parent().expect("a file is in a folder"))
                .expect("the folder is ours");
            fs::write(path, text).expect("the file is ours");
        }
        let golden = fs::read_to_string(path).unwrap_or_default();
        if text != golden {
            let mut pairs = text
                .lines()
                .map(Some)
                .chain([None])
                .zip(golden.lines().map(Some).chain([None]))
                .zip(1..);
            let ((new, old), line) =
                pairs.find(|((new, old), _)| new != old).unwrap_or(((None, None), 0));
            panic!(
                "{}:{line}: {new:?}, was {old:?}: UPDATE_GOLDEN=1 writes it anew",
                path.display()
            );
        }
    }
}

pub mod output {
    //! What other generators print, for those who read it.

    /// What wrk printed of ten connections and a server of a millisecond.
    pub const WRK: &str = include_str!("../data/wrk_of_a_millisecond.txt");
}

/// One of each: every sweep, comparison of bodies and load, and what other generators measured.
pub fn every_study() -> Vec<model::Study> {
    let sweeps = study::every().into_iter().chain([claimed::hey_sweep()]).map(model::Study::from);
    let loads = load::every().into_iter().chain([claimed::wrk_load()]).map(model::Study::from);
    sweeps.chain(bodies::every().into_iter().map(model::Study::from)).chain(loads).collect()
}

/// What was made before, by its name: a study is made once in a process, since tests ask for the
/// same ones by the hundred.
pub(crate) type Made<S> = Mutex<BTreeMap<String, S>>;

/// What has this name, made where nobody has asked for it before.
pub(crate) fn once<S: Clone>(made: &Made<S>, name: &str, make: impl FnOnce() -> S) -> S {
    let known = made.lock().unwrap_or_else(PoisonError::into_inner).get(name).cloned();
    known.unwrap_or_else(|| {
        let new = make();
        made.lock().unwrap_or_else(PoisonError::into_inner).insert(name.to_owned(), new.clone());
        new
    })
}
