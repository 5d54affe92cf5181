//! A JSON object of the figures of a run, whose keys come in the order of their columns.

use serde::{Serialize, Serializer};

use crate::run_column::RunFigure;

/// An object whose keys keep the order in which they came.
#[derive(Default)]
pub(crate) struct JsonObject {
    entries: Vec<(&'static str, JsonEntry)>,
}

enum JsonEntry {
    Figure(RunFigure),
    Object(JsonObject),
}

impl JsonObject {
    /// Appends a figure. `a.b` is the entry `b` of an object `a`, which consecutive figures share.
    pub(crate) fn insert(&mut self, path: &'static str, figure: RunFigure) {
        if matches!(figure, RunFigure::LeftOut) {
            return;
        }
        let Some((outer, rest)) = path.split_once('.') else {
            self.entries.push((path, JsonEntry::Figure(figure)));
            return;
        };
        if let Some((last, JsonEntry::Object(object))) = self.entries.last_mut()
            && *last == outer
        {
            object.entries.push((rest, JsonEntry::Figure(figure)));
            return;
        }
        let object = JsonObject { entries: vec![(rest, JsonEntry::Figure(figure))] };
        self.entries.push((outer, JsonEntry::Object(object)));
    }
}

impl Serialize for JsonObject {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.entries.iter().map(|(key, entry)| (key, entry)))
    }
}

impl Serialize for JsonEntry {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            JsonEntry::Figure(figure) => figure.serialize(serializer),
            JsonEntry::Object(object) => object.serialize(serializer),
        }
    }
}
