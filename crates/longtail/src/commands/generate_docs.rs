//! `longtail generate-docs DIR`: man pages and completions, from the same definition as the help.
//! `DIR` is a prefix's `share`.

use std::path::Path;

use clap::Command;
use clap::builder::Resettable;
use clap_complete::Shell;
use clap_mangen::Man;

use super::help::{documented, moved_down};
use crate::args::{ADVANCED, GenerateDocsArgs};
use crate::exit::{Exit, Mistake, unwritable};
use crate::ui;

/// Where each shell finds its file of completions.
const COMPLETIONS: [(Shell, &str); 3] = [
    (Shell::Bash, "bash-completion/completions"),
    (Shell::Zsh, "zsh/site-functions"),
    (Shell::Fish, "fish/vendor_completions.d"),
];

/// Writes all of them.
///
/// # Errors
/// If a folder cannot be written.
pub(crate) fn run(args: &GenerateDocsArgs) -> Result<Exit, Mistake> {
    let mut command = documented();
    command.build();
    write_into(&args.into.join("man/man1"), |dir| {
        std::iter::once(&command)
            .chain(command.get_subcommands())
            .try_for_each(|command| write_page(command, dir))
    })?;
    for (shell, folder) in COMPLETIONS {
        let dir = args.into.join(folder);
        write_into(&dir, |dir| {
            clap_complete::generate_to(shell, &mut command.clone(), "longtail", dir).map(|_| ())
        })?;
    }
    ui::note(&format!(
        "man pages, and completions for bash, zsh and fish, are in {}",
        args.into.display()
    ));
    Ok(Exit::Fine)
}

/// The man page of one command. Its examples keep their lines.
fn write_page(command: &Command, dir: &Path) -> std::io::Result<()> {
    let examples =
        command.get_after_long_help().or(command.get_after_help()).map(ToString::to_string);
    let page =
        Man::new(command.clone().after_help(Resettable::Reset).after_long_help(Resettable::Reset));
    let mut text = Vec::new();
    page.render(&mut text)?;
    let rendered = String::from_utf8_lossy(&text).into_owned();
    let parts = rendered.trim_end().split("\n.SH ").collect();
    let title = ADVANCED.to_uppercase();
    let parts = moved_down(parts, &title, &["SUBCOMMANDS", "EXTRA", "VERSION", "AUTHORS"]);
    let mut text = (parts.join("\n.SH ") + "\n").into_bytes();
    text.extend_from_slice(b".SH EXAMPLES\n.nf\n");
    for line in examples.unwrap_or_default().lines().filter(|line| *line != "Examples:") {
        // Nothing in it is a request to the formatter.
        text.extend_from_slice(
            format!("\\&{}\n", line.replace('\\', "\\e").replace('-', "\\-")).as_bytes(),
        );
    }
    text.extend_from_slice(b".fi\n");
    crate::files::write(&dir.join(page.get_filename()), &text)
}

fn write_into(dir: &Path, write: impl FnOnce(&Path) -> std::io::Result<()>) -> Result<(), Mistake> {
    let written = std::fs::create_dir_all(dir).and_then(|()| write(dir));
    written.map_err(|why| unwritable(dir, &why, "name a folder of your own"))
}
