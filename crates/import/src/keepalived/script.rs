//! `vrrp_script`: what a host checks before it owns addresses.
//!
//! Answers which health check of a Service says the same. Knows no instance.

use std::net::IpAddr;

use super::text::Statement;
use crate::outcome::Outcome;

/// A script, and how often it is run.
pub(super) struct Script<'a> {
    pub(super) name: &'a str,
    statement: &'a Statement,
}

impl<'a> Script<'a> {
    pub(super) fn read(statement: &'a Statement) -> Option<Self> {
        let name = statement.argument(0).filter(|_| statement.keyword() == "vrrp_script")?;
        Some(Self { name, statement })
    }

    /// Says what replaces it.
    pub(super) fn report(&self, is_tracked: bool, outcome: &mut Outcome) {
        let subject = self.statement.heading();
        if !is_tracked {
            let why = "is left out: nothing tracks it";
            return outcome.note(self.statement.line, &subject, why);
        }
        let why = match self.health_check() {
            Some(check) => format!(
                "is an annotation of the Services whose addresses depend on it: fairway.dev/health-check: \"{check}\"; a host \
                 where it fails owns none of their addresses, whatever its weight"
            ),
            None => "is no connection and no page: have the script run fairway drain when it fails, and fairway drain --undo \
                     when it passes again, or use the annotation fairway.dev/health-check of the Services"
                .to_owned(),
        };
        outcome.untranslated(self.statement.line, &subject, why);
    }

    fn setting(&self, keyword: &str) -> Option<&str> {
        let inner = self.statement.inner().iter().find(|it| it.keyword() == keyword)?;
        inner.argument(0)
    }

    /// The value of the annotation, where the script is a connection or a page.
    fn health_check(&self) -> Option<String> {
        let line = self.statement.inner().iter().find(|it| it.keyword() == "script")?;
        let command: Vec<&str> = line.arguments().collect();
        let command = command.join(" ");
        let words: Vec<&str> = command.split_ascii_whitespace().collect();
        let mut check = page(&words).or_else(|| connection(&words))?;
        for (keyword, option, unit) in [
            ("interval", "interval", "s"),
            ("timeout", "timeout", "s"),
            ("fall", "failures", ""),
            ("rise", "successes", ""),
        ] {
            let whole = self.setting(keyword).filter(|it| it.parse::<u32>().is_ok());
            if let Some(number) = whole {
                check.push_str(&format!(" {option}={number}{unit}"));
            }
        }
        Some(check)
    }
}

fn page(words: &[&str]) -> Option<String> {
    let is_page = |it: &&&str| it.starts_with("http://") || it.starts_with("https://");
    let url = words.iter().find(is_page)?;
    let (_, rest) = url.split_once("//")?;
    let authority = rest.split('/').next()?;
    let is_port = |it: &str| it.parse::<u16>().is_ok();
    let host = authority.rsplit_once(':').filter(|(_, port)| is_port(port));
    let is_known = is_address(host.map_or(authority, |(host, _)| host));
    let url = if rest.contains('/') { (*url).to_owned() } else { format!("{url}/") };
    is_known.then_some(url)
}

/// `</dev/tcp/HOST/PORT`, or `nc -z HOST PORT`.
fn connection(words: &[&str]) -> Option<String> {
    let device = words.iter().find_map(|it| it.split_once("/dev/tcp/")).map(|(_, it)| it);
    if let Some((host, port)) = device.and_then(|it| it.split_once('/')) {
        let port = port.trim_end_matches(['\'', '"', ';', ')']);
        return connection_to(host, port);
    }
    let (program, arguments) = words.split_first()?;
    let program = program.rsplit('/').next()?;
    let hosts: Vec<&&str> = arguments.iter().filter(|it| !it.starts_with('-')).collect();
    match (program, hosts.as_slice()) {
        ("nc" | "ncat" | "netcat", [host, port]) => connection_to(host, port),
        _ => None,
    }
}

fn connection_to(host: &str, port: &str) -> Option<String> {
    let host = if host.contains(':') { format!("[{host}]") } else { host.to_owned() };
    let is_known = port.parse::<u16>().is_ok() && is_address(&host);
    is_known.then(|| format!("tcp://{host}:{port}"))
}

/// Whether a health check may be about this host.
fn is_address(host: &str) -> bool {
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    bare == "localhost" || bare.parse::<IpAddr>().is_ok()
}
