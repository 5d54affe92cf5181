//! `longtail generate DIR`: man pages and completions, made from the definition of commands and flags, where the systems that
//! read them look: `DIR` is a prefix's `share`.

use std::path::Path;

use clap_complete::Shell;

use crate::args::GenerateArgs;
use crate::args::help;
use crate::exit::Exit;
use crate::mistake::Mistake;
use crate::ui;

/// Which file of completions is looked for where.
const COMPLETIONS: [(Shell, &str); 3] = [
    (Shell::Bash, "bash-completion/completions"),
    (Shell::Zsh, "zsh/site-functions"),
    (Shell::Fish, "fish/vendor_completions.d"),
];

/// Writes all of them.
///
/// # Errors
/// Where a folder cannot be written.
pub(crate) fn run(args: &GenerateArgs) -> Result<Exit, Mistake> {
    let command = help::documented();
    let pages = args.into.join("man/man1");
    write_into(&pages, |dir| clap_mangen::generate_to(command.clone(), dir))?;
    for (shell, folder) in COMPLETIONS {
        let dir = args.into.join(folder);
        write_into(&dir, |dir| clap_complete::generate_to(shell, &mut command.clone(), "longtail", dir).map(|_| ()))?;
    }
    ui::note(&format!("man pages, and completions for bash, zsh and fish, are in {}", args.into.display()));
    Ok(Exit::Fine)
}

fn write_into(dir: &Path, write: impl FnOnce(&Path) -> std::io::Result<()>) -> Result<(), Mistake> {
    let written = std::fs::create_dir_all(dir).and_then(|()| write(dir));
    written.map_err(|why| Mistake::Write { path: dir.to_owned(), why, hint: "name a folder of your own" })
}
