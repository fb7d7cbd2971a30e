//! Metrics as text, in the format that Prometheus reads (exposition format 0.0.4).
//!
//! Ours instead of a library's: libraries for OpenMetrics end the name of each counter in `_total`, and half
//! of MetalLB's do not.

use std::fmt::{Display, Write};

use fairway_seam::Latencies;

use super::Shown;

/// The type of a family.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Type {
    /// Only grows, until the process restarts.
    Counter,
    /// The current value.
    Gauge,
    /// Observations by their duration.
    Histogram,
}

impl Type {
    /// The word in the format.
    pub fn name(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
            Self::Histogram => "histogram",
        }
    }
}

/// All series of one name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Family {
    /// The name.
    pub name: &'static str,
    /// The type.
    pub kind: Type,
    /// The labels.
    pub labels: &'static [&'static str],
    /// Which daemons show it.
    pub shown: Shown,
    /// The meaning, in one line without quotes.
    pub help: &'static str,
}

/// The text of all families that were written.
#[derive(Debug, Default)]
pub struct Page(String);

impl Page {
    /// The text.
    pub fn into_text(self) -> String {
        self.0
    }

    /// Starts a family. It leaves no trace if it gets no samples.
    pub(super) fn family<'a>(&'a mut self, family: &'a Family) -> Samples<'a> {
        Samples { page: self, family, is_begun: false }
    }

    /// Writes a family with a single sample.
    pub(super) fn number(&mut self, family: &Family, number: impl Display) {
        self.family(family).add(&[], number);
    }

    /// Writes a family with a single histogram.
    pub(super) fn histogram(&mut self, family: &Family, latencies: &Latencies) {
        self.family(family).add_histogram(&[], latencies);
    }
}

/// The samples of one family.
pub(super) struct Samples<'a> {
    page: &'a mut Page,
    family: &'a Family,
    is_begun: bool,
}

impl Samples<'_> {
    /// Adds a sample, with the values of the family's labels in their order.
    pub(super) fn add(&mut self, labels: &[&str], number: impl Display) {
        debug_assert_eq!(labels.len(), self.family.labels.len(), "{}", self.family.name);
        let labels: Vec<_> =
            self.family.labels.iter().copied().zip(labels.iter().copied()).collect();
        self.write("", &labels, number);
    }

    /// Adds a histogram, with the values of the family's labels in their order.
    pub(super) fn add_histogram(&mut self, labels: &[&str], latencies: &Latencies) {
        debug_assert_eq!(labels.len(), self.family.labels.len(), "{}", self.family.name);
        let labels: Vec<_> =
            self.family.labels.iter().copied().zip(labels.iter().copied()).collect();
        for (bound, count) in latencies.cumulative() {
            let bound = bound.map_or("+Inf".to_owned(), |it| it.as_secs_f64().to_string());
            let with_bound = [labels.as_slice(), &[("le", bound.as_str())]].concat();
            self.write("_bucket", &with_bound, count);
        }
        self.write("_sum", &labels, latencies.sum().as_secs_f64());
        self.write("_count", &labels, latencies.count());
    }

    fn write(&mut self, suffix: &str, labels: &[(&str, &str)], number: impl Display) {
        let (text, Family { name, kind, help, .. }) = (&mut self.page.0, self.family);
        if !self.is_begun {
            self.is_begun = true;
            put(text, format_args!("# HELP {name} {help}\n# TYPE {name} {}\n", kind.name()));
        }
        put(text, format_args!("{name}{suffix}"));
        for (place, (label, value)) in labels.iter().enumerate() {
            text.push(if place == 0 { '{' } else { ',' });
            text.push_str(label);
            text.push_str("=\"");
            for character in value.chars() {
                match character {
                    '\\' => text.push_str("\\\\"),
                    '"' => text.push_str("\\\""),
                    '\n' => text.push_str("\\n"),
                    other => text.push(other),
                }
            }
            text.push('"');
        }
        if !labels.is_empty() {
            text.push('}');
        }
        put(text, format_args!(" {number}\n"));
    }
}

fn put(text: &mut String, what: std::fmt::Arguments<'_>) {
    // Writing to a String does not fail.
    let _ = text.write_fmt(what);
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const SESSIONS: Family = Family {
        name: "sessions_up",
        kind: Type::Gauge,
        labels: &["peer", "desc"],
        shown: Shown::Node,
        help: "Whether it is up",
    };

    #[test]
    fn names_that_users_choose_cannot_break_the_page() {
        let mut page = Page::default();
        let mut samples = page.family(&SESSIONS);
        samples.add(&["192.0.2.1:179", "a \"b\" \\ c\nd 1"], 1);
        samples.add(&["eth0", ""], 0);
        let text = "# HELP sessions_up Whether it is up\n# TYPE sessions_up gauge\n\
                    sessions_up{peer=\"192.0.2.1:179\",desc=\"a \\\"b\\\" \\\\ c\\nd 1\"} 1\n\
                    sessions_up{peer=\"eth0\",desc=\"\"} 0\n";
        assert_eq!(page.into_text(), text);
    }

    #[test]
    fn a_family_without_numbers_leaves_no_trace() {
        let mut page = Page::default();
        page.family(&SESSIONS);
        assert_eq!(page.into_text(), "");
    }

    #[test]
    fn a_histogram_counts_up_to_infinity() {
        let mut latencies = Latencies::default();
        latencies.note(Duration::from_micros(400));
        latencies.note(Duration::from_secs(60));
        let mut page = Page::default();
        let family =
            Family { name: "took_seconds", kind: Type::Histogram, labels: &[], ..SESSIONS };
        page.histogram(&family, &latencies);
        let text = page.into_text();
        let first = "# HELP took_seconds Whether it is up\n# TYPE took_seconds histogram\n\
                     took_seconds_bucket{le=\"0.00025\"} 0\ntook_seconds_bucket{le=\"0.0005\"} 1\n";
        assert!(text.starts_with(first), "{text}");
        let last = "took_seconds_bucket{le=\"10\"} 1\ntook_seconds_bucket{le=\"+Inf\"} 2\n\
                    took_seconds_sum 60.0004\ntook_seconds_count 2\n";
        assert!(text.ends_with(last), "{text}");
    }
}
