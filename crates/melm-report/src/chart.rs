//! Line charts as inline SVG. Colours and fonts come from the style of the page, so that both themes work.

use maud::{Markup, html};

use crate::curve::{Chart, Point};

const WIDTH: f64 = 420.0;
const HEIGHT: f64 = 240.0;
const LEFT: f64 = 44.0;
const RIGHT: f64 = 16.0;
const TOP: f64 = 12.0;
const BOTTOM: f64 = 34.0;

/// The number of colours in the style of the page.
pub(crate) const N_COLOURS: usize = 8;

/// An axis: its ends and the distance between grid lines, which is a round number.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Axis {
    low: f64,
    high: f64,
    step: f64,
}

impl Axis {
    /// Returns an axis that contains all values.
    fn new(values: impl Iterator<Item = f64>) -> Self {
        let (low, high) = values.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| {
            (low.min(value), high.max(value))
        });
        if !low.is_finite() || !high.is_finite() {
            return Self { low: 0.0, high: 1.0, step: 0.5 };
        }
        let span = (high - low).max(1e-3);
        let power = 10.0_f64.powf((span / 4.0).log10().floor());
        let steps = [1.0, 2.0, 5.0, 10.0].map(|n| n * power);
        let step = steps.into_iter().find(|step| span / step <= 5.0).unwrap_or(10.0 * power);
        Self { low: (low / step).floor() * step, high: (high / step).ceil() * step, step }
    }

    fn ticks(self) -> Vec<f64> {
        let mut ticks = Vec::new();
        let mut tick = self.low;
        while tick <= self.high + self.step / 2.0 {
            ticks.push(tick);
            tick += self.step;
        }
        ticks
    }

    /// Returns where a value is on the axis, from 0 to 1.
    fn share(self, value: f64) -> f64 {
        let span = self.high - self.low;
        if span > 0.0 { (value - self.low) / span } else { 0.5 }
    }

    fn label(self, value: f64) -> String {
        let places = if self.step >= 1.0 {
            0
        } else if self.step >= 0.1 {
            1
        } else {
            2
        };
        format!("{value:.places$}")
    }
}

/// Returns a chart with its legend, and its numbers as a table that can be opened.
pub(crate) fn figure(chart: &Chart) -> Markup {
    let points = || chart.series.iter().flat_map(|series| &series.points);
    let x = Axis::new(points().map(|point| point.x).chain([0.0]));
    let y = Axis::new(points().map(|point| point.y));
    let left = |value: f64| LEFT + (WIDTH - LEFT - RIGHT) * x.share(value);
    let top = |value: f64| TOP + (HEIGHT - TOP - BOTTOM) * (1.0 - y.share(value));
    let line = |points: &[Point]| -> String {
        points.iter().map(|p| format!("{:.1},{:.1} ", left(p.x), top(p.y))).collect()
    };
    let bottom = HEIGHT - BOTTOM;
    html! {
        figure.chart {
            figcaption { (chart.title) }
            svg viewBox=(format!("0 0 {WIDTH} {HEIGHT}")) role="img" aria-label=(describe(chart)) {
                @for tick in y.ticks() {
                    line.grid x1=(LEFT) x2=(WIDTH - RIGHT) y1=(format!("{:.1}", top(tick))) y2=(format!("{:.1}", top(tick))) {}
                    text x=(LEFT - 6.0) y=(format!("{:.1}", top(tick) + 4.0)) text-anchor="end" { (y.label(tick)) }
                }
                @for tick in x.ticks() {
                    text x=(format!("{:.1}", left(tick))) y=(bottom + 16.0) text-anchor="middle" { (x.label(tick)) }
                }
                text x=(f64::midpoint(LEFT, WIDTH)) y=(HEIGHT - 3.0) text-anchor="middle" { (chart.x) }
                @for (at, series) in chart.series.iter().enumerate() {
                    polyline.(colour(at)) points=(line(&series.points)) {}
                    @for point in &series.points {
                        circle.(colour(at)) cx=(format!("{:.1}", left(point.x))) cy=(format!("{:.1}", top(point.y))) r="2.5" {
                            title { (series.name) ": " (format!("{:.2}", point.y)) " after " (point.x) " " (chart.x) }
                        }
                    }
                }
            }
            ul.legend {
                @for (at, series) in chart.series.iter().enumerate() {
                    li { span.key.(colour(at)) {} (series.name) }
                }
            }
            (numbers(chart))
        }
    }
}

fn colour(at: usize) -> String {
    format!("c{}", at % N_COLOURS)
}

/// Describes a chart in one sentence, for readers who cannot see it.
fn describe(chart: &Chart) -> String {
    let ends = chart.series.iter().filter_map(|series| {
        let (first, last) = (series.points.first()?, series.points.last()?);
        Some(format!("{} from {:.2} to {:.2}", series.name, first.y, last.y))
    });
    format!("{}, {}", chart.title, ends.collect::<Vec<_>>().join("; "))
}

fn numbers(chart: &Chart) -> Markup {
    html! {
        details {
            summary { "Numbers" }
            div.scroll {
                table {
                    caption.hidden { (chart.title) }
                    thead { tr { th scope="col" { "line" } th scope="col" { (chart.x) } th scope="col" { (chart.y) } } }
                    tbody {
                        @for series in &chart.series {
                            @for point in &series.points {
                                tr { td { (series.name) } td.n { (point.x) } td.n { (format!("{:.3}", point.y)) } }
                            }
                        }
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::curve::Series;

    #[test]
    fn axes_have_round_steps_and_contain_the_values() {
        let axis = Axis::new([3.0, 61.0].into_iter());
        assert_eq!(axis, Axis { low: 0.0, high: 80.0, step: 20.0 });
        assert_eq!(axis.ticks(), [0.0, 20.0, 40.0, 60.0, 80.0]);
        assert!((axis.share(20.0) - 0.25).abs() < 1e-12);
        assert_eq!(Axis::new([].into_iter()).ticks(), [0.0, 0.5, 1.0]);
        assert!(Axis::new([5.0].into_iter()).share(5.0).is_finite());
    }

    #[test]
    fn a_chart_draws_every_point_and_escapes_names() {
        let points = [1.0, 2.0, 3.0].map(|x| Point { x, y: x }).to_vec();
        let series = vec![Series { name: "<a>".to_owned(), points }];
        let chart =
            Chart { title: "t".to_owned(), x: "updates".to_owned(), y: "loss".to_owned(), series };
        let svg = figure(&chart).into_string();
        assert_eq!(svg.matches("<circle").count(), 3);
        assert!(svg.contains("&lt;a&gt;") && !svg.contains("<a>"));
    }
}
