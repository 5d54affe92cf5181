//! The BPF object in the repository is what its source compiles to. The test compiles the source
//! again if Debian's clang 14 is installed.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::Path;
use std::process::Command;

use object::{File, Object as _, ObjectSection as _, SectionKind};

/// The sections that the kernel gets: programs, maps and constants. The type sections (BTF) are
/// left out, because they contain line numbers.
fn loaded(path: &Path) -> BTreeMap<String, Vec<u8>> {
    let bytes = std::fs::read(path).unwrap();
    let file = File::parse(bytes.as_slice()).unwrap();
    let is_loaded =
        |kind| matches!(kind, SectionKind::Text | SectionKind::Data | SectionKind::ReadOnlyData);
    let sections =
        file.sections().filter(|section| is_loaded(section.kind()) && section.size() > 0);
    sections
        .map(|section| (section.name().unwrap().to_owned(), section.data().unwrap().to_vec()))
        .collect()
}

fn has(program: &str) -> bool {
    std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default())
        .any(|folder| folder.join(program).is_file())
}

#[test]
fn the_object_is_what_its_source_compiles_to() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let kept = loaded(&root.join("src/bpf/path.bpf.o"));
    let programs = kept.keys().filter(|name| name.starts_with("tp_btf/")).count();
    assert_eq!(programs, 6, "{:?}", kept.keys());
    if !has("clang-14") || !has("llvm-strip-14") {
        let _ = writeln!(
            std::io::stderr(),
            "SKIPPED: no clang-14 and llvm-strip-14 to compile it anew with"
        );
        return;
    }
    let file = std::env::temp_dir().join(format!("path of {}.bpf.o", std::process::id()));
    let built = Command::new(root.join("../../bin/build-bpf")).arg(&file).output().unwrap();
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    let anew = loaded(&file);
    std::fs::remove_file(&file).unwrap();
    assert_eq!(kept.keys().collect::<Vec<_>>(), anew.keys().collect::<Vec<_>>());
    for (name, bytes) in &kept {
        assert!(anew[name] == *bytes, "{name} differs: bin/build-bpf makes it anew");
    }
}
