//! Times as a picture: SVG, one colour for each speaker, the time on a logarithmic axis.

use std::fmt::Write as _;

/// What the places on the horizontal axis are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    /// Scenarios of their own, as bars.
    Beside,
    /// Steps of the same, as lines.
    Growth,
}

/// Of each speaker. They differ in lightness, too.
const COLOURS: [&str; 4] = ["#0b6e4f", "#d1495b", "#edae49", "#30638e"];
const LEFT: f64 = 60.0;
const TOP: f64 = 50.0;
const HEIGHT: f64 = 240.0;
const FLOOR: f64 = TOP + HEIGHT;
/// From one place to the next.
const STEP: f64 = 110.0;
const BAR: f64 = 20.0;
/// From one name of the legend to the next.
const LEGEND: f64 = 90.0;

/// The names of the places, and for each speaker a time in seconds at each place where it has one.
pub(crate) fn draw(
    title: &str,
    shape: Shape,
    places: &[&str],
    series: &[(String, Vec<Option<f64>>)],
) -> String {
    let times = || series.iter().flat_map(|(_, times)| times.iter().flatten().copied());
    let lowest = times().fold(f64::INFINITY, f64::min).log10().floor();
    let highest = times().fold(0.0, f64::max).log10().ceil().max(lowest + 1.0);
    let mut picture = Picture { lowest, highest, text: String::new() };
    picture.frame(title, places);
    let present = series.iter().zip(COLOURS);
    let present = present.filter(|((_, times), _)| times.iter().any(Option::is_some));
    let (mut legend, mut bar) = (LEFT, (STEP - 4.0 * BAR) / 2.0);
    for ((name, times), colour) in present {
        picture.legend(legend, name, colour);
        match shape {
            Shape::Beside => picture.bars(bar, name, times, colour),
            Shape::Growth => picture.line(name, times, colour),
        }
        legend += LEGEND;
        bar += BAR;
    }
    picture.text + "</svg>\n"
}

struct Picture {
    /// The powers of ten at the ends of the axis.
    lowest: f64,
    highest: f64,
    text: String,
}

impl Picture {
    fn height_of(&self, time: f64) -> f64 {
        TOP + HEIGHT * (self.highest - time.log10()) / (self.highest - self.lowest)
    }

    /// Title, axis, and the names of the places.
    fn frame(&mut self, title: &str, places: &[&str]) {
        let width = places.iter().fold(LEFT + 20.0, |width, _| width + STEP);
        let bottom = FLOOR + 40.0;
        let _ = writeln!(
            self.text,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {bottom}\" \
             font-family=\"sans-serif\" font-size=\"11\">\n\
             <rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n\
             <text x=\"{LEFT}\" y=\"18\" font-size=\"14\">{title}</text>"
        );
        let mut power = self.lowest;
        while power <= self.highest {
            let time = 10_f64.powf(power);
            let (x, y) = (LEFT - 6.0, self.height_of(time));
            let below = y + 4.0;
            let _ = writeln!(
                self.text,
                "<path d=\"M{LEFT} {y:.1}H{width}\" stroke=\"#ddd\"/>\
                 <text x=\"{x}\" y=\"{below:.1}\" text-anchor=\"end\">{time}</text>"
            );
            power += 1.0;
        }
        let (mut middle, below) = (LEFT + STEP / 2.0, FLOOR + 18.0);
        for name in places {
            let _ = writeln!(
                self.text,
                "<text x=\"{middle}\" y=\"{below}\" text-anchor=\"middle\">{name}</text>"
            );
            middle += STEP;
        }
    }

    fn legend(&mut self, left: f64, name: &str, colour: &str) {
        let after = left + 14.0;
        let _ = writeln!(
            self.text,
            "<rect x=\"{left}\" y=\"28\" width=\"10\" height=\"10\" fill=\"{colour}\"/>\
             <text x=\"{after}\" y=\"37\">{name}</text>"
        );
    }

    fn bars(&mut self, bar: f64, name: &str, times: &[Option<f64>], colour: &str) {
        let mut x = LEFT + bar;
        for time in times {
            if let Some(time) = time {
                let y = self.height_of(*time);
                let height = FLOOR - y;
                let _ = writeln!(
                    self.text,
                    "<rect x=\"{x}\" y=\"{y:.1}\" width=\"{BAR}\" height=\"{height:.1}\" \
                     fill=\"{colour}\"><title>{name}: {time:.3} s</title></rect>"
                );
            }
            x += STEP;
        }
    }

    fn line(&mut self, name: &str, times: &[Option<f64>], colour: &str) {
        let mut x = LEFT + STEP / 2.0;
        let mut points = Vec::new();
        for time in times {
            if let Some(time) = time {
                let y = self.height_of(*time);
                let _ = writeln!(
                    self.text,
                    "<circle cx=\"{x}\" cy=\"{y:.1}\" r=\"4\" fill=\"{colour}\">\
                     <title>{name}: {time:.3} s</title></circle>"
                );
                points.push(format!("{x},{y:.1}"));
            }
            x += STEP;
        }
        let points = points.join(" ");
        let _ = writeln!(
            self.text,
            "<polyline points=\"{points}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\"/>"
        );
    }
}
