//! How the text below a help's flags is laid out: an example on a line of its own, prose in paragraphs.

/// Columns of the widest help.
pub(super) const WIDTH: usize = 100;

/// What stands before an example's explanation where there is no room beside the example.
pub(super) const BELOW: &str = "      ";

/// Lays `text` out: an explanation for which an example's line has no room goes below it, and lines of prose that follow
/// each other become one, which is wrapped to the terminal. What is indented stays as it is.
pub(super) fn laid_out(text: &str) -> String {
    let mut lines: Vec<String> = Vec::new();
    let mut goes_on = false;
    for line in text.lines() {
        let is_prose = !line.is_empty() && !line.starts_with(' ');
        match lines.last_mut() {
            Some(before) if is_prose && goes_on => {
                before.push(' ');
                before.push_str(line);
            }
            _ if line.chars().count() > WIDTH && !is_prose => lines.extend(in_two(line)),
            _ => lines.push(line.to_owned()),
        }
        // A title ends with a colon, and a sentence with a full stop is a paragraph's end.
        goes_on = is_prose && !line.ends_with([':', '.']);
    }
    lines.join("\n")
}

/// An example, and below it what two spaces or more set apart.
fn in_two(line: &str) -> Vec<String> {
    let begins = line.len() - line.trim_start().len();
    match line[begins..].split_once("  ") {
        Some((example, words)) => {
            vec![format!("{}{example}", &line[..begins]), format!("{BELOW}{}", words.trim_start())]
        }
        None => vec![line.to_owned()],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_explanation_without_room_goes_below() {
        let long = format!("  longtail load {}    and why", "x".repeat(WIDTH));
        let text = format!("Examples:\n  longtail load URL    short\n{long}\n\nThis is\nprose.\nMore: all of\nit.");
        let expected = format!(
            "Examples:\n  longtail load URL    short\n  longtail load {}\n{BELOW}and why\n\nThis is prose.\nMore: all of it.",
            "x".repeat(WIDTH)
        );
        assert_eq!(laid_out(&text), expected);
        assert_eq!(laid_out(&expected), expected);
    }
}
