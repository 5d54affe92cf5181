//! A figure of the page: a title, what the colours mean, one or two plots, and a sentence that says what they show.

use crate::markup::{escaped, joined};
use crate::plot::Plot;

/// A figure, or why there is none.
pub(crate) enum PageFigure {
    Drawn(DrawnFigure),
    /// What it would have shown, and why it cannot.
    LeftOut {
        title: &'static str,
        reason: String,
    },
}

/// One that there are data for.
pub(crate) struct DrawnFigure {
    pub(crate) title: &'static str,
    pub(crate) key: Vec<KeyEntry>,
    /// One below the other.
    pub(crate) plots: Vec<Plot>,
    /// What it shows, and where its figures come from.
    pub(crate) sentence: String,
}

/// What a colour means.
pub(crate) struct KeyEntry {
    /// Classes of the page's style sheet.
    pub(crate) class: String,
    pub(crate) meaning: String,
}

impl KeyEntry {
    pub(crate) fn new(class: impl Into<String>, meaning: impl Into<String>) -> KeyEntry {
        KeyEntry { class: class.into(), meaning: meaning.into() }
    }
}

impl PageFigure {
    pub(crate) fn left_out(title: &'static str, reason: impl Into<String>) -> PageFigure {
        PageFigure::LeftOut { title, reason: reason.into() }
    }
}

impl DrawnFigure {
    /// As HTML.
    pub(crate) fn html(&self) -> String {
        let entry = |entry: &KeyEntry| format!("<li><i class=\"{}\"></i>{}</li>", entry.class, escaped(&entry.meaning));
        let key = joined(&self.key, entry);
        let key = if key.is_empty() { key } else { format!("<ul class=\"key\">{key}</ul>") };
        let plots = joined(&self.plots, Plot::svg);
        let (title, sentence) = (escaped(self.title), escaped(&self.sentence));
        format!("<figure><h3>{title}</h3>{key}{plots}<figcaption>{sentence}</figcaption></figure>\n")
    }
}
