//! Files that say, byte for byte, what is to come out.

use std::fs;
use std::path::Path;

/// Compares `text` with the file; where `UPDATE_GOLDEN` is set, the file is written first.
///
/// # Panics
/// Where they differ, or the file cannot be written.
#[track_caller]
pub fn expect(path: &Path, text: &str) {
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        fs::create_dir_all(path.parent().expect("a file is in a folder")).expect("the folder is ours");
        fs::write(path, text).expect("the file is ours");
    }
    let golden = fs::read_to_string(path).unwrap_or_default();
    assert_eq!(text, golden, "{} differs: UPDATE_GOLDEN=1 writes it anew", path.display());
}
