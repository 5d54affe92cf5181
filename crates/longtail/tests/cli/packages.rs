//! The packages that are released, made of this very build (`bin/dist --binary`): each is
//! installed into a folder of its own, measures, and leaves nothing behind (`bin/try-packages`).
//! `make dist` builds them with static binaries, and `make dist-test` installs them into clean
//! systems.

use std::path::Path;
use std::process::Command;

use crate::lab::{LONGTAIL, Lab, can, end, has};

#[test]
fn each_package_can_be_installed_measures_and_leaves_nothing() {
    if !has("strip") || !has("cargo") {
        return;
    }
    let lab = Lab::new();
    let small = lab.path("longtail-stripped");
    end(Command::new("strip").arg("-o").arg(&small).arg(LONGTAIL)).with_code(0);
    let repository = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let folder = lab.path("target");
    let mut dist = Command::new(repository.join("bin/dist"));
    dist.arg("--binary").arg(&small).env("CARGO_TARGET_DIR", &folder);
    end(&mut dist).with_code(0);
    let mut tried = Command::new(repository.join("bin/try-packages"));
    tried.arg("--private").arg(folder.join("dist"));
    let tried = end(&mut tried).with_code(0).stdout;
    for line in tried.lines().filter(|line| line.starts_with("skipped")) {
        can(false, line);
    }
    assert!(tried.contains("ok       tarball"), "{tried}");
}
