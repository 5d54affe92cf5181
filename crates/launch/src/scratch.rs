//! A private directory for a server's control socket and the app that we bring.
//!
//! It goes with its last owner. Where longtail is killed and no owner can act, the guard removes it.

use std::fs::{self, DirBuilder};
use std::hash::BuildHasher as _;
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

/// A fresh directory that only this user can enter; removed, with all in it, when dropped.
#[derive(Debug)]
pub struct Scratch(PathBuf);

impl Scratch {
    /// Makes it within `within`.
    ///
    /// # Errors
    /// What the kernel says where it cannot be made.
    pub fn new(within: &Path) -> io::Result<Scratch> {
        let path = within.join(format!("longtail-{}", random_hex(8)));
        // `create` fails where the name exists, so nobody can have put a link there before us.
        DirBuilder::new().mode(0o700).create(&path)?;
        Ok(Scratch(path))
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // Nobody is left to tell, and a directory in /tmp that stays does no harm.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// `digits` (at most 32) hexadecimal digits that others cannot guess.
///
/// The standard library's hasher is keyed with the kernel's randomness and is a pseudo-random function under that key.
pub(crate) fn random_hex(digits: usize) -> String {
    let keyed = std::hash::RandomState::new();
    let mut hex = format!("{:016x}{:016x}", keyed.hash_one(0u8), keyed.hash_one(1u8));
    hex.truncate(digits);
    hex
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    #[test]
    fn the_directory_is_private_and_goes_with_its_owner() {
        let scratch = Scratch::new(&std::env::temp_dir()).unwrap();
        let path = scratch.path().to_owned();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o700);
        fs::write(path.join("file"), "x").unwrap();
        drop(scratch);
        assert!(!path.exists());
    }

    #[test]
    fn no_two_tokens_are_the_same() {
        assert_eq!(random_hex(32).len(), 32);
        assert_ne!(random_hex(32), random_hex(32));
    }
}
