//! What the commands print, byte for byte: how a study is printed is fixed in `crates/report/tests/golden`, and must be the
//! same here. The help is fixed in docs/commands.md (`args/help.rs`).

use std::path::Path;
use std::process::Command;

use testkit::study;

use crate::lab::Lab;

const HERE: &str = env!("CARGO_MANIFEST_DIR");

#[test]
fn the_version_is_that_of_the_package() {
    let printed = Lab::new().run("--version").with_code(0);
    assert_eq!(printed.stdout, format!("longtail {}\n", env!("CARGO_PKG_VERSION")));
}

/// What `make install` puts beside the program.
#[test]
fn man_pages_and_completions_have_every_command_of_the_help() {
    let lab = Lab::new();
    lab.run("generate-docs share").with_code(0);
    let read = |file: &str| std::fs::read_to_string(lab.path("share").join(file)).unwrap();
    let page = read("man/man1/longtail-load.1");
    assert!(page.contains("500/s") && page.contains("has outstanding at once"), "{page}");
    for file in [
        "bash-completion/completions/longtail.bash",
        "zsh/site-functions/_longtail",
        "fish/vendor_completions.d/longtail.fish",
        "man/man1/longtail.1",
    ] {
        let text = read(file);
        for command in ["sweep", "load", "watch", "report", "predict", "doctor", "audit", "sink"] {
            assert!(text.contains(command), "{file}: {command}");
        }
        assert!(!text.contains("selftest") && !text.contains("builtin-server"), "{file}");
    }
}

#[test]
fn shells_and_man_have_nothing_to_say_against_what_is_generated() {
    let bash = "source bash-completion/completions/longtail.bash; COMP_WORDS=(longtail sweep --generator-); COMP_CWORD=2; \
                _longtail longtail --generator- sweep; echo \"${COMPREPLY[@]}\"";
    let zsh = "fpath=($PWD/zsh/site-functions $fpath); autoload -Uz compinit; compinit -u -D; autoload -Uz +X _longtail; \
               print $_comps[longtail]";
    let fish = "source fish/vendor_completions.d/longtail.fish; complete -C 'longtail wat'; complete -C 'longtail sweep --generator-'";
    let man = "for page in longtail longtail-sweep longtail-load longtail-watch; do \
               man --warnings -E UTF-8 -l man/man1/$page.1 | grep -ow EXAMPLES; done";
    for (program, shell, script, said) in [
        ("bash", "bash --norc", bash, "--generator-threads"),
        ("zsh", "zsh -f", zsh, "_longtail"),
        ("fish", "fish --no-config", fish, "watch --generator-threads"),
        ("man", "sh", man, "EXAMPLES EXAMPLES EXAMPLES EXAMPLES"),
    ] {
        let Some(lab) = Lab::with(program) else { continue };
        lab.run("generate-docs share").with_code(0);
        let mut words = shell.split(' ');
        let mut command = Command::new(words.next().unwrap());
        let read = command.args(words).args(["-c", script]).current_dir(lab.path("share")).output().unwrap();
        assert!(read.status.success() && read.stderr.is_empty(), "{program}: {read:?}");
        // Fish explains each behind a tabulator.
        let text = String::from_utf8(read.stdout).unwrap();
        let words: Vec<&str> = text.lines().filter_map(|line| line.trim().split('\t').next()).collect();
        assert_eq!(words.join(" "), said, "{program}");
    }
}

#[test]
fn a_kept_study_is_printed_in_every_layout() {
    let sweep =
        [("", "canonical.txt"), ("--style puma", "canonical.puma.txt"), ("--format markdown", "canonical.answer.md")];
    let bodies = [
        ("", "bodies/canonical.txt"),
        ("--style puma", "bodies/canonical.puma.txt"),
        ("--format csv", "bodies/canonical.csv"),
    ];
    for (study, layouts) in [(study::canonical().into(), sweep), (testkit::bodies::canonical().into(), bodies)] {
        let lab = Lab::new();
        let file = report::json::write(&study);
        lab.write("study.json", &file);
        for (words, golden) in layouts {
            let golden = Path::new(HERE).join("../report/tests/golden").join(golden);
            let printed = lab.run(&format!("report study.json {words}")).with_code(0);
            assert_eq!(printed.stdout, std::fs::read_to_string(&golden).unwrap(), "{}", golden.display());
            assert_eq!(printed.stderr, "");
        }
        assert_eq!(lab.run("report study.json --format study").with_code(0).stdout, file);
    }
}
