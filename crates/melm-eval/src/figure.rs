//! Line charts as SVG.

use std::fmt::Write as _;

/// A line chart over places on the horizontal axis.
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
    /// The points: index of the place, value, and half the length of the error bar.
    pub points: Vec<(usize, f64, Option<f64>)>,
}

/// The size of the page and of the margins around the chart.
const WIDTH: f64 = 640.0;
const HEIGHT: f64 = 400.0;
const LEFT: f64 = 60.0;
const RIGHT: f64 = 170.0;
const TOP: f64 = 40.0;
const BOTTOM: f64 = 50.0;

/// Colours that colour-blind readers can tell apart (Okabe and Ito 2008).
const COLOURS: [&str; 8] =
    ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000", "#999933"];

impl Figure {
    /// Returns the chart as the text of an SVG file.
    pub fn svg(&self) -> String {
        let (low, high, step) = self.scale();
        let (width, height) = (WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM);
        let x =
            |place: usize| LEFT + width * (place as f64 + 0.5) / self.places.len().max(1) as f64;
        let y = |value: f64| TOP + height * (high - value) / (high - low);
        let mut out = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" \
             font-family=\"sans-serif\" font-size=\"12\">\n\
             <rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n"
        );
        let mut text = |(x, y): (f64, f64), anchor: &str, text: &str| {
            let text = escaped(text);
            let _ = writeln!(
                out,
                "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{text}</text>"
            );
        };
        text((LEFT + width / 2.0, TOP - 18.0), "middle", &self.title);
        text((LEFT + width / 2.0, HEIGHT - 12.0), "middle", &self.x);
        text((LEFT - 40.0, TOP - 18.0), "start", &self.y);
        for (at, place) in self.places.iter().enumerate() {
            text((x(at), TOP + height + 18.0), "middle", place);
        }
        for (at, series) in self.series.iter().enumerate() {
            let row = TOP + 10.0 + 18.0 * at as f64;
            text((WIDTH - RIGHT + 32.0, row + 4.0), "start", &series.name);
        }
        let mut tick = low;
        while tick <= high + step / 2.0 {
            text((LEFT - 8.0, y(tick) + 4.0), "end", &format_tick(tick, step));
            tick += step;
        }
        let mut line = |(x1, y1): (f64, f64), (x2, y2): (f64, f64), colour: &str| {
            let _ = writeln!(
                out,
                "<line x1=\"{x1:.1}\" y1=\"{y1:.1}\" x2=\"{x2:.1}\" y2=\"{y2:.1}\" stroke=\"{colour}\"/>"
            );
        };
        let mut tick = low;
        while tick <= high + step / 2.0 {
            line((LEFT, y(tick)), (LEFT + width, y(tick)), "#dddddd");
            tick += step;
        }
        for (at, series) in self.series.iter().enumerate() {
            let colour = COLOURS[at % COLOURS.len()];
            let row = TOP + 10.0 + 18.0 * at as f64;
            line((WIDTH - RIGHT + 10.0, row), (WIDTH - RIGHT + 28.0, row), colour);
            let shift = self.shift(at);
            let place = |(at, value, _): &(usize, f64, Option<f64>)| (x(*at) + shift, y(*value));
            for pair in series.points.windows(2) {
                line(place(&pair[0]), place(&pair[1]), colour);
            }
            for point in &series.points {
                let (at, value, bar) = *point;
                let bar = bar.unwrap_or(0.0);
                let (from, to) = (y(value - bar), y(value + bar));
                line((x(at) + shift, from), (x(at) + shift, to), colour);
            }
        }
        for (at, series) in self.series.iter().enumerate() {
            let colour = COLOURS[at % COLOURS.len()];
            for (place, value, _) in &series.points {
                let (x, y) = (x(*place) + self.shift(at), y(*value));
                let _ = writeln!(
                    out,
                    "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3\" fill=\"{colour}\"/>"
                );
            }
        }
        out + "</svg>\n"
    }

    /// Returns the horizontal shift of a series. Error bars stand side by side, so that none hides another.
    fn shift(&self, series: usize) -> f64 {
        3.0 * (series as f64 - (self.series.len() as f64 - 1.0) / 2.0)
    }

    /// Returns the lowest and highest value of the vertical axis, and the distance of its grid lines, a round number.
    fn scale(&self) -> (f64, f64, f64) {
        let points = self.series.iter().flat_map(|series| &series.points);
        let ends = points.flat_map(|(_, value, bar)| {
            let bar = bar.unwrap_or(0.0);
            [value - bar, value + bar]
        });
        let (low, high) = ends.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), end| {
            (low.min(end), high.max(end))
        });
        if !low.is_finite() || !high.is_finite() {
            return (0.0, 1.0, 0.5);
        }
        let span = (high - low).max(1e-3);
        let power = 10.0_f64.powf((span / 5.0).log10().floor());
        let step = [1.0, 2.0, 5.0, 10.0].map(|n| n * power).into_iter();
        let step = step.into_iter().find(|step| span / step <= 6.0).unwrap_or(10.0 * power);
        ((low / step).floor() * step, (high / step).ceil() * step, step)
    }
}

/// Formats a number with as many decimals as its step needs.
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
        assert_eq!(figure.scale(), (54.0, 64.0, 2.0));
        assert!(Figure::default().svg().contains("</svg>"));
    }
}
