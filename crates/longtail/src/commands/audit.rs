//! `longtail audit`: is what another tool printed even possible?

use std::path::Path;

use serde::Deserialize;
use serde::de::IgnoredAny;

use crate::args::AuditArgs;
use crate::exit::{Exit, Mistake, wrong};
use crate::{study_files, ui};

/// Audits a file, or what comes in on stdin. A claim that cannot be true counts as a missed
/// threshold: exit 1.
///
/// # Errors
/// If the file cannot be read, or holds no output that is known.
pub(crate) fn run(args: &AuditArgs) -> Result<Exit, Mistake> {
    let text = read(&args.file)?;
    if is_study(&text) {
        let file = args.file.display();
        return Err(wrong(format!(
            "'{file}' is a longtail study, which carries its verdict: longtail report {file} shows it"
        )));
    }
    let audited = audit::audit(&text)
        .map_err(|why| Mistake::Read { path: args.file.clone(), why: why.to_string() })?;
    if audited.is_empty() {
        let known = "no output of wrk, wrk2, hey, oha, ab, h2load, bombardier, vegeta or Puma's scripts is in it";
        return Err(Mistake::Read { path: args.file.clone(), why: known.to_owned() });
    }
    if args.output.is_json() {
        ui::print_json(&audited);
    } else {
        ui::print(&audit::text(&audited, ui::terminal_width()));
    }
    let impossible = audited.iter().any(|one| one.verdict.is == model::Believable::Impossible);
    Ok(Exit::Missed.if_so(impossible))
}

/// What tells a study file from any other.
#[derive(Deserialize)]
struct StudyKeys {
    #[serde(rename = "schema")]
    _schema: IgnoredAny,
    #[serde(rename = "command")]
    _command: IgnoredAny,
}

/// Whether the text is one of longtail's own study files.
fn is_study(text: &str) -> bool {
    serde_json::from_str::<StudyKeys>(text).is_ok()
}

/// The text, whatever its encoding was.
fn read(path: &Path) -> Result<String, Mistake> {
    let bytes = if path == Path::new("-") {
        study_files::at_most(std::io::stdin())
            .map_err(|error| Mistake::Read { path: path.to_owned(), why: error.to_string() })?
    } else {
        study_files::read_bytes(path)?
    };
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
