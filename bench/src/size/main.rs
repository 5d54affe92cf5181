//! The size of the workspace, and whether it keeps its own rules: `make size`.
//!
//! Prints the lines of each crate, without comments, blanks and tests. Exit code 1 when a type name stands twice, files of a
//! crate import each other in a circle, a file has more than 600 lines, or a parameter is a tuple; a test asks the same.

mod house;
mod source;

use std::io::{self, Write as _};
use std::path::Path;
use std::process::ExitCode;
use std::{env, fs};

use house::House;
use source::SourceFile;

fn main() -> ExitCode {
    let root = env::args_os().nth(1).unwrap_or_else(|| ".".into());
    let mut files = Vec::new();
    if let Err(mistake) = read(Path::new(&root), Path::new(""), &mut files) {
        let _ = writeln!(io::stderr(), "size: {mistake}");
        return ExitCode::from(2);
    }
    let house = House::new(files);
    let broken = house.broken();
    let listed: String = broken.iter().flat_map(|line| ["  ", line, "\n"]).collect();
    let _ = write!(io::stdout(), "{}{listed}", house.table());
    ExitCode::from(u8::from(!broken.is_empty()))
}

/// All Rust files in `folder` below `root`, but what cargo and git made.
fn read(root: &Path, folder: &Path, files: &mut Vec<SourceFile>) -> Result<(), String> {
    let fault = |error: io::Error| format!("{}: {error}", root.join(folder).display());
    let mut entries: Vec<_> =
        fs::read_dir(root.join(folder)).map_err(fault)?.collect::<Result<_, _>>().map_err(fault)?;
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let name = entry.file_name();
        let path = folder.join(&name);
        if entry.file_type().map_err(fault)?.is_dir() {
            if name != "target" && name != ".git" {
                read(root, &path, files)?;
            }
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(SourceFile::read(&path, &fs::read_to_string(root.join(&path)).map_err(fault)?)?);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_workspace_keeps_its_rules() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        let mut files = Vec::new();
        read(root, Path::new(""), &mut files).unwrap();
        assert!(files.len() > 100, "{}", files.len());
        let broken = House::new(files).broken();
        assert!(broken.is_empty(), "{}", broken.join("\n"));
    }
}
