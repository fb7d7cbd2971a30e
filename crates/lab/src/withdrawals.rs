//! Which routes go, if only for an instant? A router's kernel reports every change, and so does GoBGP; the
//! reports are kept in a file. Used by the tests of restarts.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};

use super::namespace::Place;
use super::process::Process;

/// Room for the kernel's events of thousands of routes: none may be missed.
const NEWS_BYTES: &str = "16777216";

/// A program that reports every route that goes, for as long as this value lives.
pub struct Withdrawals {
    process: Process,
    log: PathBuf,
}

impl Withdrawals {
    /// From the kernel of a namespace.
    pub fn of_kernel(place: &impl Place, log: &Path) -> Result<Self> {
        let words = ["-rcvbuf", NEWS_BYTES, "-timestamp", "monitor", "route"];
        Self::start(place, "ip", &words, log)
    }

    /// From the table of GoBGP, of all families.
    pub fn of_gobgp(place: &impl Place, log: &Path) -> Result<Self> {
        Self::start(place, "gobgp", &["monitor", "global", "rib"], log)
    }

    fn start(place: &impl Place, program: &str, words: &[&str], log: &Path) -> Result<Self> {
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        let process = Process::spawn(place, Path::new(program), &words, log)?;
        Ok(Self { process, log: log.to_owned() })
    }

    /// The lines that report a route that went, to a prefix of ours, since the start.
    pub fn lines(&mut self, is_ours: impl Fn(&str) -> bool) -> Result<Vec<String>> {
        self.process.check_running()?;
        let text = fs::read_to_string(&self.log).with_context(|| self.log.display().to_string())?;
        ensure!(!text.contains("No buffer space"), "the kernel dropped events");
        let gone = text.lines().filter(|line| {
            let rest = line.split_once("Deleted ").or_else(|| line.split_once("[DELROUTE] "));
            // A type of route may stand before the prefix.
            rest.is_some_and(|(_, rest)| {
                rest.split_whitespace().take(2).any(|word| is_ours(&with_length(word)))
            })
        });
        Ok(gone.map(str::to_owned).collect())
    }
}

/// `ip` writes a host route as a bare address.
pub fn with_length(word: &str) -> String {
    match word {
        _ if word.contains('/') => word.to_owned(),
        _ if word.contains(':') => format!("{word}/128"),
        _ => format!("{word}/32"),
    }
}
