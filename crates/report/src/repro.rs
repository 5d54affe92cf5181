//! One block to paste into an issue: what was seen, on what machine, and the commands that show it
//! again in an empty folder.

use model::Study;
use model::plan::quoted;

use crate::answer;
use crate::markdown::fenced;
use crate::summary::Summary;
use crate::text::{self, Width, joined};

/// What shows the result of a study again.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Repro {
    /// The study's command line, with the names that its files have in the empty folder.
    pub command: String,
    /// The files that it needs.
    pub files: Vec<ReproFile>,
    /// What must be put there by hand, a line of Markdown each.
    pub needs: Vec<String>,
}

/// A text file that the command needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReproFile {
    /// Its path in the folder, such as `config/puma.rb`.
    pub name: String,
    /// All of its text.
    pub text: String,
}

/// The block, as GitHub's Markdown.
pub fn block(study: &Study, repro: &Repro) -> String {
    let mut parts = answer::unfolded_markdown(&Summary::of(study, None));
    let facts = text::facts(&crate::details(study).facts, Width::ANY);
    parts.push(fenced("text", facts.trim_end()));
    parts.push(if repro.needs.is_empty() {
        "To see it again, in an empty folder:\n".to_owned()
    } else {
        "To see it again, in an empty folder, where this must be put first:\n".to_owned()
    });
    let needs = repro.needs.iter().map(|need| format!("- {need}\n"));
    parts.push(needs.collect());
    parts.push(fenced("sh", &script(repro)));
    joined(parts)
}

/// The shell's lines that write the files and run the command.
fn script(repro: &Repro) -> String {
    let files: String = repro.files.iter().map(written).collect();
    files + &repro.command
}

/// The shell's lines that write a file.
fn written(file: &ReproFile) -> String {
    let folder = file.name.rsplit_once('/').map(|(folder, _)| quoted(folder));
    let make_folder = folder.map(|folder| format!("mkdir -p {folder}\n")).unwrap_or_default();
    let name = quoted(&file.name);
    let end = end_of(&file.text);
    let newline = if file.text.ends_with('\n') { "" } else { "\n" };
    format!("{make_folder}cat >{name} <<'{end}'\n{}{newline}{end}\n", file.text)
}

/// The end marker of a here-document: a word that is no line of the text.
fn end_of(text: &str) -> String {
    let mut end = "END".to_owned();
    while text.lines().any(|line| line == end) {
        end += "_OF_FILE";
    }
    end
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_written_whole_whatever_it_holds() {
        let text = "run ->(_) { [200, {}, [<<~END]] }\n  ```\nEND\nx".to_owned();
        let file = ReproFile { name: "config/app.ru".to_owned(), text };
        let repro =
            Repro { command: "longtail sweep".to_owned(), files: vec![file], needs: vec![] };
        let script = script(&repro);
        assert_eq!(
            script,
            "mkdir -p config\ncat >config/app.ru <<'END_OF_FILE'\n\
             run ->(_) { [200, {}, [<<~END]] }\n  ```\nEND\nx\nEND_OF_FILE\nlongtail sweep"
        );
        assert!(fenced("sh", &script).starts_with("````sh\n"));
    }
}
