//! Files that are compressed, as rotated logs are, or in UTF-16: what to type to read them.

use std::path::Path;

use crate::file_name::{STDIN, name_of};
use crate::{RequestError, excerpt};

/// How a compressed file begins, and the program that writes its text to stdout.
const COMPRESSED: [(&[u8], &str); 4] = [
    (b"\x1f\x8b", "zcat"),
    (b"\x28\xb5\x2f\xfd", "zstdcat"),
    (b"\xfd7zXZ\0", "xzcat"),
    (b"BZh", "bzcat"),
];
/// How text in UTF-16 begins.
const UTF_16: [&[u8]; 2] = [b"\xff\xfe", b"\xfe\xff"];

/// Refuses a file that has to be unpacked or converted first; `flag` is the one that names it.
///
/// # Errors
/// What to type.
pub(crate) fn refuse_compressed(bytes: &[u8], path: &Path, flag: &str) -> Result<(), RequestError> {
    let name = name_of(path);
    let shown = excerpt(path.as_os_str().as_encoded_bytes());
    if UTF_16.iter().any(|begin| bytes.starts_with(begin)) {
        return Err(RequestError::new(format!(
            "{name} is text in UTF-16: convert it, with iconv -f UTF-16 -t UTF-8"
        )));
    }
    let Some((_, unpack)) = COMPRESSED.iter().find(|(begin, _)| bytes.starts_with(begin)) else {
        return Ok(());
    };
    let what_to_do = if path == Path::new(STDIN) {
        format!("unpack it before the pipe, with {unpack}")
    } else {
        format!("pipe its text: {unpack} '{shown}' | longtail load {flag} - …")
    };
    Err(RequestError::new(format!("{name} is compressed: {what_to_do}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_to_type_for_a_compressed_file_is_said() {
        let refused = |bytes: &[u8], path: &str| {
            let result = refuse_compressed(bytes, Path::new(path), "--replay");
            result.map_err(|why| why.to_string())
        };
        assert_eq!(
            refused(b"\x1f\x8b\x08\0", "access.log.1.gz").unwrap_err(),
            "'access.log.1.gz' is compressed: pipe its text: \
             zcat 'access.log.1.gz' | longtail load --replay - …"
        );
        assert!(refused(b"\x28\xb5\x2f\xfd", "-").unwrap_err().ends_with("with zstdcat"));
        assert!(refused(b"\xff\xfeG\0", "mix.txt").unwrap_err().contains("UTF-16"));
        assert_eq!(refused(b"GET /posts 80\n", "mix.txt"), Ok(()));
    }
}
