//! Line charts as SVG.

/// A line chart. The horizontal axis has named places, which are equally far apart.
#[derive(Clone, Debug, Default)]
pub struct Figure {
    /// The title above the chart.
    pub title: String,
    /// The title of the horizontal axis.
    pub x: String,
    /// The title of the vertical axis.
    pub y: String,
    /// The names of the places, from left to right.
    pub places: Vec<String>,
    /// The lines.
    pub series: Vec<Series>,
}

/// A line of a chart.
#[derive(Clone, Debug)]
pub struct Series {
    /// The name in the legend.
    pub name: String,
    /// The points. Each has the index of its place, its value, and half the length of its error bar.
    pub points: Vec<(usize, f64, Option<f64>)>,
}

/// The size of the page and of the margins around the chart.
const WIDTH: f64 = 640.0;
const HEIGHT: f64 = 420.0;
const LEFT: f64 = 60.0;
const RIGHT: f64 = 170.0;
const TOP: f64 = 60.0;
const BOTTOM: f64 = 50.0;
const PLOT_WIDTH: f64 = WIDTH - LEFT - RIGHT;
const PLOT_HEIGHT: f64 = HEIGHT - TOP - BOTTOM;

/// Colours that colour-blind readers can tell apart (Okabe and Ito 2008).
const COLOURS: [&str; 8] =
    ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000", "#999933"];

impl Figure {
    /// Returns the chart as the text of an SVG file.
    pub fn svg(&self) -> String {
        let scale = self.scale();
        let mut svg = Svg::new();
        self.draw_text(&mut svg, &scale);
        self.draw_lines(&mut svg, &scale);
        for (at, series) in self.series.iter().enumerate() {
            let colour = COLOURS[at % COLOURS.len()];
            for (place, value, _) in &series.points {
                svg.circle(self.x(*place) + self.shift(at), scale.y(*value), colour);
            }
        }
        svg.text + "</svg>\n"
    }

    /// Draws titles, places, legend and the numbers of the vertical axis.
    fn draw_text(&self, svg: &mut Svg, scale: &Scale) {
        svg.text(LEFT + PLOT_WIDTH / 2.0, TOP - 38.0, "middle", &self.title);
        svg.text(LEFT + PLOT_WIDTH / 2.0, HEIGHT - 12.0, "middle", &self.x);
        // Below the title, which may be as wide as the chart.
        svg.text(LEFT - 40.0, TOP - 14.0, "start", &self.y);
        for (at, place) in self.places.iter().enumerate() {
            svg.text(self.x(at), TOP + PLOT_HEIGHT + 18.0, "middle", place);
        }
        for (at, series) in self.series.iter().enumerate() {
            svg.text(WIDTH - RIGHT + 32.0, legend_row(at) + 4.0, "start", &series.name);
        }
        for tick in scale.ticks() {
            svg.text(LEFT - 8.0, scale.y(tick) + 4.0, "end", &format_tick(tick, scale.step));
        }
    }

    /// Draws the grid, the legend, and the lines and error bars of the series.
    fn draw_lines(&self, svg: &mut Svg, scale: &Scale) {
        for tick in scale.ticks() {
            let y = scale.y(tick);
            svg.line([LEFT, y], [LEFT + PLOT_WIDTH, y], "#dddddd");
        }
        for (at, series) in self.series.iter().enumerate() {
            let colour = COLOURS[at % COLOURS.len()];
            let row = legend_row(at);
            svg.line([WIDTH - RIGHT + 10.0, row], [WIDTH - RIGHT + 28.0, row], colour);
            let x = |place: usize| self.x(place) + self.shift(at);
            for pair in series.points.windows(2) {
                let [from, to] = [0, 1].map(|end| [x(pair[end].0), scale.y(pair[end].1)]);
                svg.line(from, to, colour);
            }
            for (place, value, bar) in &series.points {
                let bar = bar.unwrap_or(0.0);
                let [from, to] = [value - bar, value + bar].map(|end| [x(*place), scale.y(end)]);
                svg.line(from, to, colour);
            }
        }
    }

    /// Returns the horizontal position of a place.
    fn x(&self, place: usize) -> f64 {
        LEFT + PLOT_WIDTH * (place as f64 + 0.5) / self.places.len().max(1) as f64
    }

    /// Returns the horizontal shift of a series. Series are shifted so that their error bars do not cover each other.
    fn shift(&self, series: usize) -> f64 {
        3.0 * (series as f64 - (self.series.len() as f64 - 1.0) / 2.0)
    }

    /// Returns a vertical axis that contains all points and error bars.
    fn scale(&self) -> Scale {
        let points = self.series.iter().flat_map(|series| &series.points);
        let ends = points.flat_map(|(_, value, bar)| {
            let bar = bar.unwrap_or(0.0);
            [value - bar, value + bar]
        });
        let (low, high) = ends.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), end| {
            (low.min(end), high.max(end))
        });
        if !low.is_finite() || !high.is_finite() {
            return Scale { low: 0.0, high: 1.0, step: 0.5 };
        }
        let span = (high - low).max(1e-3);
        let power = 10.0_f64.powf((span / 5.0).log10().floor());
        let step = [1.0, 2.0, 5.0, 10.0].map(|n| n * power).into_iter();
        let step = step.into_iter().find(|step| span / step <= 6.0).unwrap_or(10.0 * power);
        Scale { low: (low / step).floor() * step, high: (high / step).ceil() * step, step }
    }
}

/// The vertical axis: its lowest and highest value, and the distance between grid lines, which is a round number.
#[derive(Debug, PartialEq)]
struct Scale {
    low: f64,
    high: f64,
    step: f64,
}

impl Scale {
    /// The values of the grid lines.
    fn ticks(&self) -> Vec<f64> {
        let mut ticks = Vec::new();
        let mut tick = self.low;
        while tick <= self.high + self.step / 2.0 {
            ticks.push(tick);
            tick += self.step;
        }
        ticks
    }

    /// Returns the vertical position of a value.
    fn y(&self, value: f64) -> f64 {
        TOP + PLOT_HEIGHT * (self.high - value) / (self.high - self.low)
    }
}

/// Returns the vertical position of a row of the legend.
fn legend_row(row: usize) -> f64 {
    TOP + 10.0 + 18.0 * row as f64
}

/// The text of an SVG file that is being written.
struct Svg {
    text: String,
}

impl Svg {
    fn new() -> Self {
        let text = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" \
             font-family=\"sans-serif\" font-size=\"12\">\n\
             <rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n"
        );
        Self { text }
    }

    fn text(&mut self, x: f64, y: f64, anchor: &str, text: &str) {
        let text = escaped(text);
        self.text +=
            &format!("<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{text}</text>\n");
    }

    fn line(&mut self, from: [f64; 2], to: [f64; 2], colour: &str) {
        let ([x1, y1], [x2, y2]) = (from, to);
        self.text += &format!(
            "<line x1=\"{x1:.1}\" y1=\"{y1:.1}\" x2=\"{x2:.1}\" y2=\"{y2:.1}\" stroke=\"{colour}\"/>\n"
        );
    }

    fn circle(&mut self, x: f64, y: f64, colour: &str) {
        self.text += &format!("<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3\" fill=\"{colour}\"/>\n");
    }
}

/// Formats a number of the axis with as many decimals as `step` needs.
fn format_tick(value: f64, step: f64) -> String {
    let places = if step >= 1.0 {
        0
    } else if step >= 0.1 {
        1
    } else {
        2
    };
    format!("{value:.places$}")
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_are_inside_the_chart_at_the_height_of_their_values() {
        let series = |name: &str, points: &[f64]| Series {
            name: name.to_owned(),
            points: points.iter().enumerate().map(|(at, value)| (at, *value, Some(0.5))).collect(),
        };
        let figure = Figure {
            title: "a < b".to_owned(),
            places: ["1", "2", "3"].map(str::to_owned).to_vec(),
            series: vec![series("one", &[60.0, 61.5, 63.0]), series("two", &[55.0, 58.0, 59.0])],
            ..Figure::default()
        };
        let svg = figure.svg();
        assert!(svg.starts_with("<svg ") && svg.ends_with("</svg>\n") && svg.contains("a &lt; b"));
        let number = |line: &str, name: &str| -> f64 {
            let from = line.find(&format!(" {name}=\"")).unwrap() + name.len() + 3;
            line[from..].split('"').next().unwrap().parse().unwrap()
        };
        let dots: Vec<_> = svg.lines().filter(|line| line.starts_with("<circle")).collect();
        assert_eq!(dots.len(), 6);
        let heights: Vec<_> = dots.iter().map(|dot| number(dot, "cy")).collect();
        assert!(heights[0] > heights[1] && heights[1] > heights[2] && heights[3] > heights[0]);
        assert!(heights.iter().all(|y| (TOP..HEIGHT - BOTTOM).contains(y)));
        // The vertical scale is linear.
        assert!((heights[0] - 2.0 * heights[1] + heights[2]).abs() < 0.2);
        assert_eq!(figure.scale(), Scale { low: 54.0, high: 64.0, step: 2.0 });
        assert!(Figure::default().svg().contains("</svg>"));
    }
}
