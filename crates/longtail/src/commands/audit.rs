//! `longtail audit`: is what another tool printed even possible?

use std::path::Path;

use crate::args::AuditArgs;
use crate::exit::Exit;
use crate::mistake::{Mistake, wrong};
use crate::{store, ui};

/// Audits a file, or what comes in on stdin. A claim that cannot be is a missed objective: exit 1.
///
/// # Errors
/// Where the file cannot be read, or holds no output that is known.
pub(crate) fn run(args: &AuditArgs) -> Result<Exit, Mistake> {
    let text = read(&args.file)?;
    if is_study(&text) {
        let file = args.file.display();
        return Err(wrong(format!(
            "'{file}' is a longtail study, which carries its verdict: longtail report {file} shows it"
        )));
    }
    let audited = audit::audit(&text);
    if audited.is_empty() {
        let known = "no output of wrk, wrk2, hey, oha, ab, h2load, bombardier, vegeta or Puma's scripts is in it";
        return Err(Mistake::Read { path: args.file.clone(), why: known.to_owned() });
    }
    if args.output.is_json() {
        ui::print_json(&audited);
    } else {
        ui::print(&audit::text(&audited));
    }
    let impossible = audited.iter().any(|one| matches!(one.verdict, audit::ClaimVerdict::Impossible { .. }));
    Ok(if impossible { Exit::Missed } else { Exit::Fine })
}

/// Whether the text is one of longtail's own study files.
fn is_study(text: &str) -> bool {
    let keys = serde_json::from_str::<serde_json::Map<String, serde_json::Value>>(text);
    keys.is_ok_and(|keys| keys.contains_key("schema") && keys.contains_key("command"))
}

/// The text, whatever its encoding was.
fn read(path: &Path) -> Result<String, Mistake> {
    let unreadable = |why: std::io::Error| Mistake::Read { path: path.to_owned(), why: why.to_string() };
    let bytes = if path == Path::new("-") {
        store::at_most(std::io::stdin())
    } else {
        std::fs::File::open(path).and_then(store::at_most)
    };
    Ok(String::from_utf8_lossy(&bytes.map_err(unreadable)?).into_owned())
}
