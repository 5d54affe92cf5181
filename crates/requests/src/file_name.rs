//! A file that the user names, or stdin in its place.

use std::path::Path;

/// The name of stdin in place of a file's.
pub const STDIN: &str = "-";

/// A file's name in quotes, or stdin.
pub fn name_of(path: &Path) -> String {
    if path == Path::new(STDIN) { "stdin".to_owned() } else { format!("'{}'", path.display()) }
}
