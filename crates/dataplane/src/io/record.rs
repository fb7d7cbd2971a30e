//! The record of virtual servers that are ours, as a file that grows by a line for each change.
//!
//! It belongs where it does not outlive the kernel's tables (`/run`), so it is never synchronized. The last line for a
//! virtual server counts; one that was cut off does not.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use fairway_model::{IpvsScheduler, TransportProtocol};
use fairway_proxy::{Recorded, ServerSettings, VirtualAddress};

/// See the module.
#[derive(Debug)]
pub struct Record {
    path: PathBuf,
    file: File,
    said: BTreeMap<VirtualAddress, Recorded>,
    /// Lines in the file.
    lines: usize,
    /// The last line may be a part of one.
    is_torn: bool,
    /// Locked for as long as it is open.
    _lock: File,
}

/// What a record said when it was opened; `None` if there was none.
pub type Earlier = Option<BTreeMap<VirtualAddress, Recorded>>;

impl Record {
    /// Opens the record at `path`, and writes it again without what counts no longer.
    ///
    /// # Errors
    /// The file cannot be read or written, has lines of something else, or another process has it open.
    pub fn open(path: &Path) -> io::Result<(Self, Earlier)> {
        let lock = File::create(format!("{}.lock", path.display()))?;
        lock.try_lock().map_err(|error| match error {
            TryLockError::WouldBlock => io::Error::other("another fairway proxy runs on this node"),
            TryLockError::Error(error) => error,
        })?;
        let earlier = match std::fs::read_to_string(path) {
            Ok(text) => Some(read(&text)?),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(error),
        };
        let said = earlier.clone().unwrap_or_default();
        let file = write_all(path, &said)?;
        let (path, lines) = (path.to_owned(), said.len());
        Ok((Self { path, file, said, lines, is_torn: false, _lock: lock }, earlier))
    }

    /// Whether another process has the record at `path` open.
    pub fn is_in_use(path: &Path) -> bool {
        let lock = OpenOptions::new().write(true).open(format!("{}.lock", path.display()));
        lock.is_ok_and(|it| matches!(it.try_lock(), Err(TryLockError::WouldBlock)))
    }

    /// Writes what is known of virtual servers, each of them once; `None` for one that is not ours. All of it or nothing
    /// counts.
    pub(super) fn write(&mut self, lines: &[(VirtualAddress, Option<Recorded>)]) -> io::Result<()> {
        /// The file is in memory, and virtual servers come and go for months.
        const LINES_BEYOND_MAX: usize = 10_000;
        let before: Vec<_> = lines.iter().map(|(at, it)| (*at, self.say(*at, *it))).collect();
        let is_long = self.lines > self.said.len().saturating_add(LINES_BEYOND_MAX);
        let written = if self.is_torn || is_long {
            write_all(&self.path, &self.said).map(|file| {
                (self.file, self.lines, self.is_torn) = (file, self.said.len(), false);
            })
        } else {
            self.lines = self.lines.saturating_add(lines.len());
            let text: String = lines.iter().map(|(at, recorded)| line(*at, *recorded)).collect();
            let written = self.file.write_all(text.as_bytes());
            self.is_torn = written.is_err();
            written
        };
        if written.is_err() {
            before.into_iter().rev().for_each(|(at, recorded)| {
                self.say(at, recorded);
            });
        }
        written
    }

    /// Returns what was said before.
    fn say(&mut self, at: VirtualAddress, recorded: Option<Recorded>) -> Option<Recorded> {
        match recorded {
            Some(recorded) => self.said.insert(at, recorded),
            None => self.said.remove(&at),
        }
    }
}

/// Writes the record again without what counts no longer, and opens it.
fn write_all(path: &Path, said: &BTreeMap<VirtualAddress, Recorded>) -> io::Result<File> {
    let text: String = said.iter().map(|(at, recorded)| line(*at, Some(*recorded))).collect();
    let fresh = PathBuf::from(format!("{}.new", path.display()));
    std::fs::write(&fresh, text)?;
    std::fs::rename(&fresh, path)?;
    OpenOptions::new().append(true).open(path)
}

fn line(at: VirtualAddress, recorded: Option<Recorded>) -> String {
    let VirtualAddress { address, port, protocol } = at;
    let said = match recorded {
        None => "gone".to_owned(),
        Some(Recorded::Made) => "made".to_owned(),
        Some(Recorded::Intended(ServerSettings { scheduler, persistence })) => {
            let seconds = persistence.map_or(0, |it| it.as_secs());
            format!("intended {} {seconds}", scheduler.name())
        }
    };
    format!("{address} {port} {protocol} {said}\n")
}

fn read(text: &str) -> io::Result<BTreeMap<VirtualAddress, Recorded>> {
    let mut all = BTreeMap::new();
    for line in text.split_inclusive('\n').filter_map(|it| it.strip_suffix('\n')) {
        let (at, recorded) = read_line(line).ok_or_else(|| {
            let message = format!("{line:?} is no line of the record of virtual servers");
            io::Error::new(io::ErrorKind::InvalidData, message)
        })?;
        match recorded {
            Some(recorded) => all.insert(at, recorded),
            None => all.remove(&at),
        };
    }
    Ok(all)
}

fn read_line(line: &str) -> Option<(VirtualAddress, Option<Recorded>)> {
    let words: Vec<&str> = line.split(' ').collect();
    let [address, port, protocol, said @ ..] = words.as_slice() else { return None };
    let protocol = match *protocol {
        "TCP" => TransportProtocol::Tcp,
        "UDP" => TransportProtocol::Udp,
        "SCTP" => TransportProtocol::Sctp,
        _ => return None,
    };
    let at = VirtualAddress { address: address.parse().ok()?, port: port.parse().ok()?, protocol };
    let recorded = match said {
        ["gone"] => None,
        ["made"] => Some(Recorded::Made),
        ["intended", scheduler, seconds] => {
            let seconds: u64 = seconds.parse().ok()?;
            let persistence = (seconds != 0).then(|| Duration::from_secs(seconds));
            let scheduler = IpvsScheduler::named(scheduler)?;
            Some(Recorded::Intended(ServerSettings { scheduler, persistence }))
        }
        _ => return None,
    };
    Some((at, recorded))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_process_has_a_record_and_the_next_one_finds_what_it_said() {
        let folder = std::env::temp_dir().join(format!("fairway-record-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join("proxy-servers");
        let at = VirtualAddress {
            address: [10, 96, 0, 1].into(),
            port: 80,
            protocol: TransportProtocol::Tcp,
        };
        let (mut record, earlier) = Record::open(&path).unwrap();
        assert_eq!(earlier, None);
        record.write(&[(at, Some(Recorded::Made))]).unwrap();
        assert!(Record::is_in_use(&path));
        let second = Record::open(&path).unwrap_err().to_string();
        assert_eq!(second, "another fairway proxy runs on this node");
        for _ in 0..6_000 {
            record.write(&[(at, None)]).unwrap();
            record.write(&[(at, Some(Recorded::Made))]).unwrap();
        }
        let lines = std::fs::read_to_string(&path).unwrap().lines().count();
        assert!(lines < 11_000, "{lines} lines for one server");
        drop(record);
        assert!(!Record::is_in_use(&path));
        let (_, earlier) = Record::open(&path).unwrap();
        assert_eq!(earlier, Some(BTreeMap::from([(at, Recorded::Made)])));
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn the_last_line_of_a_server_counts_and_one_that_was_cut_off_does_not() {
        let text = "10.96.0.1 80 TCP intended mh 7\n10.96.0.1 80 TCP made\nfd00::1 53 UDP intended rr 0\n\
                    10.96.0.2 80 SCTP made\n10.96.0.2 80 SCTP gone\n10.96.0.3 80 TCP ma";
        let all: Vec<_> =
            read(text).unwrap().into_iter().map(|(at, it)| line(at, Some(it))).collect();
        assert_eq!(all, ["10.96.0.1 80 TCP made\n", "fd00::1 53 UDP intended rr 0\n"]);
        let error = read("something else\n").unwrap_err().to_string();
        assert!(error.contains("\"something else\" is no line of the record"), "{error}");
    }
}
