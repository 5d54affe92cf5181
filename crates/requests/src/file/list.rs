//! A plain list: a URL or a path a line, `#` for a comment.

use super::{Collected, is_skipped, lines};
use crate::error::RequestError;

pub(super) fn parse(bytes: &[u8], collected: &mut Collected<'_>) -> Result<(), RequestError> {
    let template = &collected.given.template;
    for (number, line) in lines(bytes).filter(|(_, line)| !is_skipped(line)) {
        let target = collected.resolve(line);
        target.and_then(|target| collected.add(template.render(&target))).map_err(|error| error.at_line(number))?;
    }
    Ok(())
}
