//! Percentiles, as a table that can be pasted into a page.

use std::time::Duration;

/// The measurements of one pair.
#[derive(Default)]
pub struct Latencies(Vec<Duration>);

impl Latencies {
    pub fn push(&mut self, latency: Duration) {
        self.0.push(latency);
    }

    /// The number of measurements.
    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// The smallest value that `percent` of all do not exceed, in milliseconds.
    pub fn percentile(&self, percent: usize) -> f64 {
        let mut sorted = self.0.clone();
        sorted.sort();
        let rank = (sorted.len() * percent).div_ceil(100).max(1);
        sorted.get(rank - 1).map_or(f64::NAN, |latency| latency.as_secs_f64() * 1000.0)
    }
}

/// One line of the table.
pub struct Row {
    pub announcer: &'static str,
    pub router: &'static str,
    pub latencies: Latencies,
}

/// Prints all rows, each compared with BIRD for the same router.
pub fn print_latencies(rows: &[Row]) {
    println!(
        "From rename() of the changed file to the route in the router's kernel, milliseconds:\n"
    );
    println!("| announcer | router | changes | p50 | p99 | max | p50 beside BIRD |");
    println!("|---|---|---|---|---|---|---|");
    for row in rows {
        // With other Services it does more than its competitor was asked to.
        let rival = rows.iter().find(|it| it.router == row.router && it.announcer == "BIRD");
        let ratio = rival.filter(|_| !row.announcer.contains("services")).map(|rival| {
            format!("{:.2}", row.latencies.percentile(50) / rival.latencies.percentile(50))
        });
        println!(
            "| {} | {} | {} | {:.2} | {:.2} | {:.2} | {} |",
            row.announcer,
            row.router,
            row.latencies.count(),
            row.latencies.percentile(50),
            row.latencies.percentile(99),
            row.latencies.percentile(100),
            ratio.unwrap_or_default(),
        );
    }
}
