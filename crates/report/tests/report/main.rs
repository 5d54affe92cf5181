//! Reports as a reader gets them: goldens, what holds for every study, schemas, other tools'
//! layouts.

mod claims;
mod columns;
mod findings;
mod golden;
mod html;
mod other_layouts;
mod pieces;
mod puma_columns;
mod schema;
mod widths;
