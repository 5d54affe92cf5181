//! What the tests of all crates share: a clock that a test steps, studies that are the same on
//! every machine, golden files, and the output of other generators.
//!
//! It is only a dev-dependency and depends on `model`, and on `queueing` for studies with theory,
//! so everything is built from the real types.

pub mod bodies;
pub mod capacity;
pub mod claimed;
pub mod clock;
pub mod comparison;
pub mod events;
pub mod hostile;
pub mod http;
pub mod load;
pub mod machine;
pub mod network;
pub mod study;

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

pub mod golden {
    //! Files with the expected output, byte for byte.

    use std::fmt::Debug;
    use std::fs;
    use std::path::Path;

    /// Compares `shown` of the left side of each row with the right side after ` => `. Rows that
    /// begin with # are comments.
    ///
    /// # Panics
    /// If they differ, or the file cannot be read or written.
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

    /// Compares `text` with the file. If `UPDATE_GOLDEN` is set, the file is written first.
    ///
    /// # Panics
    /// If they differ, or the file cannot be written.
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
                "{}:{line}: {new:?}, was {old:?}: set UPDATE_GOLDEN=1 to update it",
                path.display()
            );
        }
    }
}

pub mod output {
    //! The output of other generators, for the tests of their parsers.

    /// The output of wrk with ten connections and a server that takes a millisecond.
    pub const WRK: &str = include_str!("../data/wrk_of_a_millisecond.txt");
}

/// Every study of every kind, including those of other generators.
pub fn every_study() -> Vec<model::Study> {
    let sweeps = study::every().into_iter().chain([claimed::hey_sweep()]).map(model::Study::from);
    let loads = load::every().into_iter().chain([claimed::wrk_load()]).map(model::Study::from);
    let searches = capacity::every().into_iter().map(model::Study::from);
    let bodies = bodies::every().into_iter().map(model::Study::from);
    let comparisons = comparison::every().into_iter().map(model::Study::from);
    sweeps.chain(bodies).chain(loads).chain(searches).chain(comparisons).collect()
}

/// A cache of studies by name: each is made once in a process, because hundreds of tests use the
/// same ones.
pub(crate) type Made<S> = Mutex<BTreeMap<String, S>>;

/// The cached value with this name, which is made if it is missing.
pub(crate) fn once<S: Clone>(made: &Made<S>, name: &str, make: impl FnOnce() -> S) -> S {
    let known = made.lock().unwrap_or_else(PoisonError::into_inner).get(name).cloned();
    known.unwrap_or_else(|| {
        let new = make();
        made.lock().unwrap_or_else(PoisonError::into_inner).insert(name.to_owned(), new.clone());
        new
    })
}
