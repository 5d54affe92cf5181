//! A plot as inline SVG: two axes, and marks in the units of the axes.
//!
//! A drawing has no colours and no fonts: each mark has a class of the page's style sheet, so that
//! the same drawing works in light, in dark and on paper. The crates that draw plots write colours
//! into the drawing, and take a minute to build.

use std::fmt::Write as _;

use crate::number;

/// Width of a drawing in its own units; the page scales it. On a phone a unit is three quarters of
/// a pixel.
const WIDTH: f64 = 480.0;
/// Room for the labels of the y axis, and under the plot for those of the x axis and its title.
const LEFT: f64 = 56.0;
const BOTTOM: f64 = 42.0;
/// Room above for the title of the y axis, and at the right for half a label.
const TOP: f64 = 24.0;
const RIGHT: f64 = 26.0;
/// Room at the right for the names of lines.
const NAMES: f64 = 46.0;
/// Height of a row that has a name.
const ROW: f64 = 25.0;
/// Height of a line of text, and the width of a character, where the font is largest.
const LINE: f64 = 15.0;
const CHARACTER: f64 = 8.0;

/// A plot.
pub(crate) struct Plot {
    /// Its name among several plots of a figure, for screen readers.
    pub(crate) label: String,
    /// Height of the drawing.
    pub(crate) height: f64,
    /// Room for the labels of the y axis, where these are words.
    pub(crate) left: f64,
    pub(crate) x: PlotAxis,
    pub(crate) y: PlotAxis,
    /// Later marks are drawn over earlier ones.
    pub(crate) marks: Vec<PlotMark>,
}

/// A point in the units of the axes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct PlotPoint {
    pub(crate) x: f64,
    pub(crate) y: f64,
}

/// The range of y at an x.
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

/// Something in a plot.
pub(crate) struct PlotMark {
    /// The class of its colour in the page's style sheet.
    pub(crate) class: String,
    pub(crate) shape: PlotShape,
    /// The name at the right end of a line, or the text of a word or label; for other shapes what a
    /// pointer shows.
    pub(crate) title: String,
}

/// What is drawn.
pub(crate) enum PlotShape {
    /// A line through these points; of a single point, a dot.
    Line(Vec<PlotPoint>),
    /// An area between two lines; of a single range, a bar.
    Band(Vec<PlotRange>),
    Dot(PlotPoint),
    /// Rectangles of one colour.
    Cells(Vec<PlotCell>),
    /// A word in a bar.
    Word(PlotPoint),
    /// A text at a corner of this point: at the opposite one where the plot has no room for it.
    Label {
        at: PlotPoint,
        is_right: bool,
        is_below: bool,
    },
    /// A line over the whole height.
    Upright(f64),
    /// A line over the whole width.
    Level(f64),
}

impl PlotMark {
    pub(crate) fn new(
        class: impl Into<String>,
        shape: PlotShape,
        title: impl Into<String>,
    ) -> PlotMark {
        PlotMark { class: class.into(), shape, title: title.into() }
    }

    /// A line without a name.
    pub(crate) fn line(class: impl Into<String>, points: Vec<PlotPoint>) -> PlotMark {
        PlotMark::new(class, PlotShape::Line(points), "")
    }

    /// Its values on the y axis.
    fn heights(&self) -> Vec<f64> {
        match &self.shape {
            PlotShape::Line(points) => points.iter().map(|point| point.y).collect(),
            PlotShape::Band(ranges) => {
                ranges.iter().flat_map(|range| [range.low, range.high]).collect()
            }
            PlotShape::Cells(cells) => {
                cells.iter().flat_map(|cell| [cell.from.y, cell.to.y]).collect()
            }
            PlotShape::Dot(at) => vec![at.y],
            PlotShape::Level(y) => vec![*y],
            PlotShape::Word(_) | PlotShape::Label { .. } | PlotShape::Upright(_) => Vec::new(),
        }
    }
}

impl Plot {
    /// A plot of the usual size.
    pub(crate) fn new(x: PlotAxis, y: PlotAxis, marks: Vec<PlotMark>) -> Plot {
        Plot { label: String::new(), height: 220.0, left: LEFT, x, y, marks }
    }

    /// A plot with a y axis from 0 to a little above the highest mark.
    pub(crate) fn from_zero(x: PlotAxis, title: &str, marks: Vec<PlotMark>) -> Plot {
        let scale = AxisScale::from_zero(marks.iter().flat_map(PlotMark::heights));
        Plot::new(x, PlotAxis::rounded(title, scale, 4), marks)
    }

    /// A plot with a logarithmic y axis around the marks.
    pub(crate) fn logarithmic(x: PlotAxis, title: &str, marks: Vec<PlotMark>) -> Plot {
        let scale = AxisScale::around(marks.iter().flat_map(PlotMark::heights));
        Plot::new(x, PlotAxis::rounded(title, scale, 5), marks)
    }

    /// A plot of so many rows, from the bottom up, with these ticks as their names.
    pub(crate) fn of_rows(
        rows: usize,
        x: PlotAxis,
        ticks: Vec<AxisTick>,
        marks: Vec<PlotMark>,
    ) -> Plot {
        let rows = rows as f64;
        let y = PlotAxis::labelled("", AxisScale::Linear { low: 0.0, high: rows }, ticks);
        Plot { height: TOP + BOTTOM + ROW * rows, ..Plot::new(x, y, marks) }
    }

    /// The SVG element, in a figure of this title.
    pub(crate) fn svg(&self, figure: &str) -> String {
        let label = [figure, &self.label].map(escaped).join(" ");
        let height = short(self.height);
        let mut svg = format!(
            "<svg viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" aria-label=\"{}\">",
            label.trim_end()
        );
        self.draw_axes(&mut svg);
        for mark in &self.marks {
            self.draw(&mut svg, mark);
        }
        self.draw_names(&mut svg);
        svg + "</svg>"
    }

    /// The lines with names, each with its last point.
    fn named(&self) -> impl Iterator<Item = (&PlotMark, &PlotPoint)> {
        let lines = self.marks.iter().filter_map(|mark| match &mark.shape {
            PlotShape::Line(points) => Some((mark, points.last()?)),
            _ => None,
        });
        lines.filter(|(mark, _)| !mark.title.is_empty())
    }

    fn right(&self) -> f64 {
        WIDTH - if self.named().next().is_some() { NAMES } else { RIGHT }
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
        let right = self.right();
        let bottom = self.bottom();
        let mut grid = String::new();
        for tick in &self.y.ticks {
            let y = self.y(tick.at);
            let _ = write!(grid, "M{} {}H{}", short(self.left), short(y), short(right));
            text(svg, "end", PlotPoint { x: self.left - 6.0, y: y + 4.0 }, &tick.label);
        }
        let _ = write!(svg, "<path class=\"grid\" d=\"{grid}\"/>");
        let _ = write!(
            svg,
            "<path class=\"axis\" d=\"M{} {}H{}\"/>",
            short(self.left),
            short(bottom),
            short(right)
        );
        for tick in self.ticks_that_fit() {
            text(
                svg,
                "middle",
                PlotPoint { x: self.x(tick.at), y: bottom + LINE + 1.0 },
                &tick.label,
            );
        }
        text(svg, "title", PlotPoint { x: 2.0, y: 12.0 }, &self.y.title);
        if !self.x.title.is_empty() {
            text(svg, "title end", PlotPoint { x: right, y: self.height - 6.0 }, &self.x.title);
        }
    }

    /// The ticks of the x axis without those whose labels would touch; the first and the last stay.
    fn ticks_that_fit(&self) -> Vec<&AxisTick> {
        let half = |tick: &AxisTick| tick.label.chars().count() as f64 * CHARACTER / 2.0 + 3.0;
        let apart =
            |a: &AxisTick, b: &AxisTick| (self.x(a.at) - self.x(b.at)).abs() >= half(a) + half(b);
        let Some((last, others)) = self.x.ticks.split_last() else { return Vec::new() };
        let mut fitting: Vec<&AxisTick> = Vec::new();
        for tick in others {
            let is_first = fitting.is_empty();
            if (is_first || fitting.last().is_some_and(|before| apart(before, tick)))
                && apart(tick, last)
            {
                fitting.push(tick);
            }
        }
        fitting.push(last);
        fitting
    }

    fn draw(&self, svg: &mut String, mark: &PlotMark) {
        let PlotMark { class, shape, title } = mark;
        match shape {
            PlotShape::Dot(at) => self.dot(svg, class, *at, title),
            PlotShape::Line(points) => match points.as_slice() {
                [at] => self.dot(svg, class, *at, title),
                points => path(svg, "line", class, &self.path_of_line(points), ""),
            },
            PlotShape::Band(ranges) => path(svg, "band", class, &self.path_of_band(ranges), ""),
            PlotShape::Cells(cells) => {
                let path_of_cells = joined(cells, |cell| self.path_of_cell(cell));
                path(svg, "bar", class, &path_of_cells, title);
            }
            PlotShape::Word(at) => {
                let place = PlotPoint { x: self.x(at.x) + 5.0, y: self.y(at.y) + 4.0 };
                text(svg, "word", place, title);
            }
            PlotShape::Label { at, is_right, is_below } => {
                self.label(svg, mark, *at, [*is_right, *is_below]);
            }
            PlotShape::Upright(x) => {
                let upright = format!("M{} {TOP}V{}", short(self.x(*x)), short(self.bottom()));
                path(svg, "line", class, &upright, title);
            }
            PlotShape::Level(y) => {
                let left = short(self.left);
                let level = format!("M{left} {}H{}", short(self.y(*y)), short(self.right()));
                path(svg, "line", class, &level, "");
            }
        }
    }

    fn place(&self, x: f64, y: f64) -> String {
        format!("{} {}", short(self.x(x)), short(self.y(y)))
    }

    fn path_of_line(&self, points: &[PlotPoint]) -> String {
        let places: Vec<String> = points.iter().map(|at| self.place(at.x, at.y)).collect();
        format!("M{}", places.join("L"))
    }

    /// Along the upper ends of the ranges, and back along the lower ones. A single range is as wide
    /// as a bar.
    fn path_of_band(&self, ranges: &[PlotRange]) -> String {
        let half = if ranges.len() == 1 { 2.0 } else { 0.0 };
        let corner = |x: f64, shift: f64, y: f64| {
            format!("{} {}", short(self.x(x) + shift), short(self.y(y)))
        };
        let mut corners: Vec<String> = Vec::new();
        for range in ranges {
            corners.push(corner(range.x, -half, range.high));
            corners.push(corner(range.x, half, range.high));
        }
        for range in ranges.iter().rev() {
            corners.push(corner(range.x, half, range.low));
            corners.push(corner(range.x, -half, range.low));
        }
        corners.dedup();
        format!("M{}Z", corners.join("L"))
    }

    fn path_of_cell(&self, PlotCell { from, to }: &PlotCell) -> String {
        let right = short(self.x(to.x));
        let bottom = short(self.y(from.y));
        let left = short(self.x(from.x));
        format!("M{}H{right}V{bottom}H{left}Z", self.place(from.x, to.y))
    }

    fn dot(&self, svg: &mut String, class: &str, at: PlotPoint, title: &str) {
        let x = short(self.x(at.x));
        let y = short(self.y(at.y));
        let _ = write!(
            svg,
            "<circle class=\"dot {class}\" cx=\"{x}\" cy=\"{y}\" r=\"3.5\">{}</circle>",
            hover(title)
        );
    }

    fn label(&self, svg: &mut String, mark: &PlotMark, at: PlotPoint, corner: [bool; 2]) {
        let x = self.x(at.x);
        let y = self.y(at.y);
        let width = mark.title.chars().count() as f64 * CHARACTER;
        let [is_right, is_below] = corner;
        let fits_beside = if is_right { x + width < WIDTH } else { x - width > self.left };
        let fits_in_height = !is_below || y + LINE < self.bottom();
        let is_opposite = !fits_beside || !fits_in_height;
        let baseline = if is_below == is_opposite { y - 6.0 } else { y + LINE };
        let (anchor, x) = if is_right == is_opposite { (" end", x - 6.0) } else { ("", x + 6.0) };
        let class = format!("name {}{anchor}", mark.class);
        text(svg, &class, PlotPoint { x, y: baseline }, &mark.title);
    }

    /// The names of the lines, each right of its line's last point, moved apart where they would
    /// touch.
    fn draw_names(&self, svg: &mut String) {
        let mut names: Vec<LineName<'_>> = self
            .named()
            .map(|(mark, last)| LineName {
                class: &mark.class,
                name: &mark.title,
                x: self.x(last.x) + 6.0,
                y: self.y(last.y),
            })
            .collect();
        names.sort_by(|a, b| b.y.total_cmp(&a.y));
        // Move names up from the lowest, each at least a line above those below it; then down from
        // the top, where that moved them too far.
        for at in 0..names.len() {
            let below = names[..at].iter().filter(|other| other.is_beside(&names[at]));
            let limit = below.map(|other| other.y - LINE).fold(self.bottom(), f64::min);
            names[at].y = names[at].y.min(limit);
        }
        for at in (0..names.len()).rev() {
            let above = names[at + 1..].iter().filter(|other| other.is_beside(&names[at]));
            let limit = above.map(|other| other.y + LINE).fold(TOP, f64::max);
            names[at].y = names[at].y.max(limit);
        }
        for LineName { class, name, x, y } in names {
            text(svg, &format!("name {class}"), PlotPoint { x, y: y + 4.0 }, name);
        }
    }
}

/// The name of a line, and where it stands.
struct LineName<'a> {
    class: &'a str,
    name: &'a str,
    x: f64,
    y: f64,
}

impl LineName<'_> {
    /// Whether the two would touch at the same height.
    fn is_beside(&self, other: &LineName<'_>) -> bool {
        (self.x - other.x).abs() < NAMES
    }
}

fn path(svg: &mut String, kind: &str, class: &str, path: &str, title: &str) {
    let _ = write!(svg, "<path class=\"{kind} {class}\" d=\"{path}\">{}</path>", hover(title));
}

fn text(svg: &mut String, class: &str, at: PlotPoint, content: &str) {
    let _ = write!(
        svg,
        "<text class=\"{class}\" x=\"{}\" y=\"{}\">{}</text>",
        short(at.x),
        short(at.y),
        escaped(content)
    );
}

/// What a pointer shows over a mark.
fn hover(title: &str) -> String {
    if title.is_empty() { String::new() } else { format!("<title>{}</title>", escaped(title)) }
}

/// A coordinate to a tenth of a unit, which is finer than any screen.
fn short(value: f64) -> String {
    crate::number::shortest((value * 10.0).round() / 10.0 + 0.0)
}

/// Maps the data's unit to a part of the axis.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum AxisScale {
    Linear { low: f64, high: f64 },
    Logarithmic { low: f64, high: f64 },
}

impl AxisScale {
    /// From 0 to a little above the highest of these values.
    pub(crate) fn from_zero(values: impl IntoIterator<Item = f64>) -> AxisScale {
        let high = values.into_iter().fold(0.0, f64::max);
        AxisScale::Linear { low: 0.0, high: if high > 0.0 { high * 1.08 } else { 1.0 } }
    }

    /// Around these positive values, with a little room at both ends, and spanning at least a
    /// factor of two.
    pub(crate) fn around(values: impl IntoIterator<Item = f64>) -> AxisScale {
        let mut low = f64::INFINITY;
        let mut high: f64 = 0.0;
        for value in values.into_iter().filter(|value| *value > 0.0) {
            low = low.min(value);
            high = high.max(value);
        }
        if high == 0.0 {
            return AxisScale::Logarithmic { low: 1.0, high: 10.0 };
        }
        let room = (high / low).powf(0.05).max(1.08);
        let widened = (2.0 / (high / low * room * room)).sqrt().max(1.0);
        AxisScale::Logarithmic { low: low / room / widened, high: high * room * widened }
    }

    /// Where the axis begins.
    pub(crate) fn low(self) -> f64 {
        match self {
            AxisScale::Linear { low, .. } | AxisScale::Logarithmic { low, .. } => low,
        }
    }

    /// The place of a value on the axis, from 0 to 1.
    pub(crate) fn part(self, value: f64) -> f64 {
        match self {
            AxisScale::Linear { low, high } => (value - low) / (high - low),
            AxisScale::Logarithmic { low, high } => (value.max(low) / low).ln() / (high / low).ln(),
        }
    }

    /// About `wanted` round values along the axis.
    fn round_values(self, wanted: usize) -> Vec<f64> {
        let (low, high) = match self {
            AxisScale::Linear { low, high } => return steps(low, high, wanted),
            AxisScale::Logarithmic { low, high } => (low, high),
        };
        let decades = (high / low).log10();
        if decades < 0.6 {
            return steps(low, high, wanted);
        }
        // As many as have room on an axis of 120 units.
        let digits: &[f64] = match decades {
            ..1.1 => &[1.0, 2.0, 3.0, 5.0, 7.0],
            ..2.4 => &[1.0, 2.0, 5.0],
            ..3.6 => &[1.0, 3.0],
            _ => &[1.0],
        };
        let exponents = low.log10().floor() as i32..=high.log10().ceil() as i32;
        let all = exponents
            .flat_map(|exponent| digits.iter().map(move |digit| digit * 10f64.powi(exponent)));
        all.filter(|value| (low..=high).contains(value)).collect()
    }
}

/// About `wanted` multiples of 1, 2 or 5 times a power of ten.
fn steps(low: f64, high: f64, wanted: usize) -> Vec<f64> {
    let rough = (high - low) / wanted.max(1) as f64;
    let power = 10f64.powf(rough.log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0]
        .into_iter()
        .map(|digit| digit * power)
        .find(|step| *step >= rough * 0.999);
    let step = step.unwrap_or(rough);
    let first = (low / step - 1e-9).ceil() as i64;
    let last = (high / step + 1e-9).floor() as i64;
    (first..=last).map(|n| n as f64 * step).collect()
}

/// A tick: its place and its label.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct AxisTick {
    pub(crate) at: f64,
    pub(crate) label: String,
}

/// An axis with its title.
#[derive(Clone, Debug)]
pub(crate) struct PlotAxis {
    pub(crate) title: String,
    pub(crate) scale: AxisScale,
    pub(crate) ticks: Vec<AxisTick>,
}

impl PlotAxis {
    /// An axis with ticks at about `wanted` round values.
    pub(crate) fn rounded(title: impl Into<String>, scale: AxisScale, wanted: usize) -> PlotAxis {
        let values = scale.round_values(wanted);
        // As many decimals as make each label exact.
        let is_exact =
            |value: f64, scale: f64| (value * scale - (value * scale).round()).abs() < 1e-6;
        let exact = |scale: f64| values.iter().all(|value| is_exact(*value, scale));
        let decimals = [1.0, 1e1, 1e2, 1e3, 1e4, 1e5].into_iter().position(exact);
        let label = |value: f64| match scale {
            AxisScale::Logarithmic { .. } => number::shortest((value * 1e9).round() / 1e9),
            AxisScale::Linear { .. } => number::fixed(value, decimals.unwrap_or(6)),
        };
        let ticks =
            values.iter().map(|value| AxisTick { at: *value, label: label(*value) }).collect();
        PlotAxis { title: title.into(), scale, ticks }
    }

    /// An axis with these ticks.
    pub(crate) fn labelled(
        title: impl Into<String>,
        scale: AxisScale,
        ticks: impl IntoIterator<Item = AxisTick>,
    ) -> PlotAxis {
        PlotAxis { title: title.into(), scale, ticks: ticks.into_iter().collect() }
    }
}

/// A text escaped for HTML and SVG, in content and in attributes.
pub(crate) fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => safe += "&amp;",
            '<' => safe += "&lt;",
            '>' => safe += "&gt;",
            '"' => safe += "&quot;",
            '\'' => safe += "&#39;",
            // Control characters are not allowed in a page, not even escaped.
            '\0'..='\x08' | '\x0b' | '\x0c' | '\x0e'..='\x1f' | '\x7f' => safe.push('\u{fffd}'),
            letter => safe.push(letter),
        }
    }
    safe
}

/// The HTML of all items, one after the other.
pub(crate) fn joined<T>(
    items: impl IntoIterator<Item = T>,
    html: impl FnMut(T) -> String,
) -> String {
    items.into_iter().map(html).collect::<Vec<_>>().concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(scale: AxisScale) -> String {
        let axis = PlotAxis::rounded("", scale, 5);
        axis.ticks.iter().map(|tick| tick.label.clone()).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn ticks_are_round_and_all_different() {
        assert_eq!(labels(AxisScale::from_zero([99.0])), "0 50 100");
        assert_eq!(labels(AxisScale::from_zero([0.93])), "0.0 0.5 1.0");
        assert_eq!(labels(AxisScale::from_zero([])), "0.0 0.2 0.4 0.6 0.8 1.0");
        assert_eq!(labels(AxisScale::around([101.0, 3957.0])), "100 200 500 1000 2000");
        assert_eq!(labels(AxisScale::around([20.0, 100.0])), "20 30 50 70 100");
        assert_eq!(labels(AxisScale::around([2.0, 900.0])), "3 10 30 100 300 1000");
        assert_eq!(labels(AxisScale::around([0.02, 900.0])), "0.1 1 10 100 1000");
        assert_eq!(labels(AxisScale::around([100.0, 101.0])), "80 100 120 140");
    }

    #[test]
    fn no_value_and_a_single_value_have_a_scale() {
        for values in [vec![], vec![0.0], vec![5.0], vec![1e-3, 1e6]] {
            let scale = AxisScale::around(values.clone());
            for value in values.into_iter().filter(|value| *value > 0.0) {
                assert!((0.0..=1.0).contains(&scale.part(value)), "{value} on {scale:?}");
            }
            assert!(!PlotAxis::rounded("", scale, 4).ticks.is_empty(), "{scale:?}");
        }
    }

    #[test]
    fn escaped_text_is_no_element_and_ends_no_attribute() {
        assert_eq!(
            escaped("a<b> & \"c\" 'd'\n\u{1b}"),
            "a&lt;b&gt; &amp; &quot;c&quot; &#39;d&#39;\n\u{fffd}"
        );
    }
}
