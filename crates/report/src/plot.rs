//! A plot as inline SVG: two axes, and marks in the units of the axes.
//!
//! It says what is where, and nothing of colours or fonts: each mark has a class of the page's style sheet, so that one drawing is
//! light, dark or on paper. The crates that draw plots write colours into the drawing, and take a minute to build.

use std::fmt::Write as _;

use crate::markup::{escaped, joined};

mod axis;

pub(crate) use axis::{AxisScale, AxisTick, PlotAxis};

/// Width of a drawing in its own units; the page scales it. On a phone such a unit is three quarters of a pixel.
const WIDTH: f64 = 480.0;
/// Room for the labels of the y axis, and under the plot for those of the x axis and its title.
const LEFT: f64 = 56.0;
const BOTTOM: f64 = 42.0;
/// Room above for the title of the y axis, and at the right for half a label.
const TOP: f64 = 24.0;
const RIGHT: f64 = 26.0;
/// Room at the right for the names of lines.
const NAMES: f64 = 46.0;
/// Height of a line of text, and the width of a character, where the font is largest.
const LINE: f64 = 15.0;
const CHARACTER: f64 = 8.0;

/// A plot.
pub(crate) struct Plot {
    /// What it shows, for who cannot see it.
    pub(crate) label: String,
    /// Height of the drawing.
    pub(crate) height: f64,
    /// Room for the labels of the y axis, where these are words.
    pub(crate) left: f64,
    pub(crate) x: PlotAxis,
    pub(crate) y: PlotAxis,
    /// The later ones above the earlier ones.
    pub(crate) marks: Vec<PlotMark>,
}

/// A place in the units of the axes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct PlotPoint {
    pub(crate) x: f64,
    pub(crate) y: f64,
}

/// What is known of a y: that it lies between these.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct PlotRange {
    pub(crate) x: f64,
    pub(crate) low: f64,
    pub(crate) high: f64,
}

/// A rectangle, by its lower left and its upper right corner.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct PlotCell {
    pub(crate) from: PlotPoint,
    pub(crate) to: PlotPoint,
}

/// Something in a plot; `class` is a colour of the page's style sheet, `title` what a pointer over it shows.
pub(crate) enum PlotMark {
    Line {
        class: String,
        points: Vec<PlotPoint>,
        /// Stands at its right end, where it has one.
        name: String,
    },
    /// An area between two lines; of a single range, a bar.
    Band {
        class: String,
        ranges: Vec<PlotRange>,
    },
    Dot {
        class: String,
        at: PlotPoint,
        title: String,
    },
    /// A rectangle between two corners.
    Bar {
        class: String,
        from: PlotPoint,
        to: PlotPoint,
        title: String,
    },
    /// Rectangles of one colour, in one path.
    Cells {
        class: String,
        cells: Vec<PlotCell>,
    },
    /// A word in a bar.
    Word {
        at: PlotPoint,
        text: String,
    },
    /// A line over the whole height.
    Upright {
        class: String,
        x: f64,
    },
    /// A line over the whole width.
    Level {
        class: String,
        y: f64,
    },
}

impl Plot {
    /// A plot of the usual size without marks.
    pub(crate) fn new(label: impl Into<String>, x: PlotAxis, y: PlotAxis) -> Plot {
        Plot { label: label.into(), height: 260.0, left: LEFT, x, y, marks: Vec::new() }
    }

    /// The drawing.
    pub(crate) fn svg(&self) -> String {
        let mut svg = format!(
            "<svg viewBox=\"0 0 {WIDTH} {}\" role=\"img\" aria-label=\"{}\">",
            short(self.height),
            escaped(&self.label)
        );
        self.draw_axes(&mut svg);
        for mark in &self.marks {
            self.draw(&mut svg, mark);
        }
        self.draw_names(&mut svg);
        svg + "</svg>"
    }

    fn right(&self) -> f64 {
        let is_named = |mark: &PlotMark| matches!(mark, PlotMark::Line { name, .. } if !name.is_empty());
        WIDTH - if self.marks.iter().any(is_named) { NAMES } else { RIGHT }
    }

    fn x(&self, value: f64) -> f64 {
        self.left + self.x.scale.part(value).clamp(0.0, 1.0) * (self.right() - self.left)
    }

    fn y(&self, value: f64) -> f64 {
        self.bottom() - self.y.scale.part(value).clamp(0.0, 1.0) * (self.bottom() - TOP)
    }

    fn bottom(&self) -> f64 {
        self.height - if self.x.title.is_empty() { BOTTOM - LINE } else { BOTTOM }
    }

    fn draw_axes(&self, svg: &mut String) {
        let (right, bottom) = (self.right(), self.bottom());
        let mut grid = String::new();
        for tick in &self.y.ticks {
            let y = self.y(tick.at);
            let _ = write!(grid, "M{} {}H{}", short(self.left), short(y), short(right));
            text(svg, "end", PlotPoint { x: self.left - 6.0, y: y + 4.0 }, &tick.label);
        }
        let _ = write!(svg, "<path class=\"grid\" d=\"{grid}\"/>");
        let _ = write!(svg, "<path class=\"axis\" d=\"M{} {}H{}\"/>", short(self.left), short(bottom), short(right));
        for tick in self.ticks_that_fit() {
            text(svg, "middle", PlotPoint { x: self.x(tick.at), y: bottom + LINE + 1.0 }, &tick.label);
        }
        text(svg, "title", PlotPoint { x: 2.0, y: 12.0 }, &self.y.title);
        if !self.x.title.is_empty() {
            text(svg, "title end", PlotPoint { x: right, y: self.height - 6.0 }, &self.x.title);
        }
    }

    /// The ticks of the x axis, without those whose labels would touch one before; the first and the last stay.
    fn ticks_that_fit(&self) -> Vec<&AxisTick> {
        let half = |tick: &AxisTick| tick.label.chars().count() as f64 * CHARACTER / 2.0 + 3.0;
        let apart = |a: &AxisTick, b: &AxisTick| (self.x(a.at) - self.x(b.at)).abs() >= half(a) + half(b);
        let Some((last, others)) = self.x.ticks.split_last() else { return Vec::new() };
        let mut fitting: Vec<&AxisTick> = Vec::new();
        for tick in others {
            let is_first = fitting.is_empty();
            if (is_first || fitting.last().is_some_and(|before| apart(before, tick))) && apart(tick, last) {
                fitting.push(tick);
            }
        }
        fitting.push(last);
        fitting
    }

    fn draw(&self, svg: &mut String, mark: &PlotMark) {
        let place = |x: f64, y: f64| format!("{} {}", short(self.x(x)), short(self.y(y)));
        let _ = match mark {
            PlotMark::Line { class, points, .. } => {
                let path: Vec<String> = points.iter().map(|point| place(point.x, point.y)).collect();
                write!(svg, "<path class=\"line {class}\" d=\"M{}\"/>", path.join("L"))
            }
            PlotMark::Band { class, ranges } => {
                // A single range is as wide as a bar.
                let half = if ranges.len() == 1 { 2.0 } else { 0.0 };
                let corner = |x: f64, off: f64, y: f64| format!("{} {}", short(self.x(x) + off), short(self.y(y)));
                let there = ranges.iter().flat_map(|it| [-half, half].map(|off| corner(it.x, off, it.high)));
                let back = ranges.iter().rev().flat_map(|it| [half, -half].map(|off| corner(it.x, off, it.low)));
                let mut path: Vec<String> = there.chain(back).collect();
                path.dedup();
                write!(svg, "<path class=\"band {class}\" d=\"M{}Z\"/>", path.join("L"))
            }
            PlotMark::Dot { class, at, title } => write!(
                svg,
                "<circle class=\"dot {class}\" cx=\"{}\" cy=\"{}\" r=\"3.5\"><title>{}</title></circle>",
                short(self.x(at.x)),
                short(self.y(at.y)),
                escaped(title)
            ),
            PlotMark::Bar { class, from, to, title } => {
                let (x, y) = (self.x(from.x.min(to.x)), self.y(from.y.max(to.y)));
                let (width, height) = ((self.x(to.x) - self.x(from.x)).abs(), (self.y(to.y) - self.y(from.y)).abs());
                write!(
                    svg,
                    "<rect class=\"bar {class}\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"><title>{}</title></rect>",
                    short(x),
                    short(y),
                    short(width),
                    short(height),
                    escaped(title)
                )
            }
            PlotMark::Cells { class, cells } => {
                let rectangle = |cell: &PlotCell| {
                    let (left, right) = (short(self.x(cell.from.x)), short(self.x(cell.to.x)));
                    format!("M{left} {}H{right}V{}H{left}Z", short(self.y(cell.to.y)), short(self.y(cell.from.y)))
                };
                write!(svg, "<path class=\"bar {class}\" d=\"{}\"/>", joined(cells, rectangle))
            }
            PlotMark::Word { at, text: word } => {
                text(svg, "word", PlotPoint { x: self.x(at.x) + 5.0, y: self.y(at.y) + 4.0 }, word);
                Ok(())
            }
            PlotMark::Upright { class, x } => {
                let (x, bottom) = (short(self.x(*x)), short(self.bottom()));
                write!(svg, "<path class=\"line {class}\" d=\"M{x} {TOP}V{bottom}\"/>")
            }
            PlotMark::Level { class, y } => {
                let (left, y, right) = (short(self.left), short(self.y(*y)), short(self.right()));
                write!(svg, "<path class=\"line {class}\" d=\"M{left} {y}H{right}\"/>")
            }
        };
    }

    /// The names of the lines at their ends, moved apart where they would touch.
    fn draw_names(&self, svg: &mut String) {
        let mut names: Vec<(f64, &str, &str)> = Vec::new();
        for mark in &self.marks {
            if let PlotMark::Line { class, points, name } = mark
                && let Some(last) = points.last().filter(|_| !name.is_empty())
            {
                names.push((self.y(last.y), class, name));
            }
        }
        names.sort_by(|a, b| b.0.total_cmp(&a.0));
        // From the lowest upwards each at least a line above the one before; then down again where the top is passed.
        let mut limit = self.bottom();
        for (y, ..) in &mut names {
            *y = y.min(limit);
            limit = *y - LINE;
        }
        let mut limit = TOP;
        for (y, ..) in names.iter_mut().rev() {
            *y = y.max(limit);
            limit = *y + LINE;
        }
        for (y, class, name) in names {
            text(svg, &format!("name {class}"), PlotPoint { x: self.right() + 6.0, y: y + 4.0 }, name);
        }
    }
}

fn text(svg: &mut String, class: &str, at: PlotPoint, content: &str) {
    let (x, y) = (short(at.x), short(at.y));
    let _ = write!(svg, "<text class=\"{class}\" x=\"{x}\" y=\"{y}\">{}</text>", escaped(content));
}

/// A coordinate: a tenth of a unit is finer than any screen.
fn short(value: f64) -> String {
    crate::number::shortest((value * 10.0).round() / 10.0 + 0.0)
}
