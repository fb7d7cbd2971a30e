//! The kernel's metrics of this process, under the names that every exporter uses.

use std::fs;
use std::sync::OnceLock;

use nix::sys::resource::{Resource, getrlimit};
use nix::unistd::{SysconfVar, sysconf};

use fairway_ground::Bound;

use super::families::{
    BOUNDS, BUILD, CPU_SECONDS, OPEN_FILES, OPEN_FILES_MAX, RESIDENT_BYTES, START_TIME,
    VIRTUAL_BYTES,
};
use super::page::Page;
use crate::build_info;

/// Writes them; values that cannot be read are left out.
pub(super) fn write(page: &mut Page) {
    let mut bounds = page.family(&BOUNDS);
    for bound in Bound::ALL {
        bounds.add(&[bound.name()], bound.total());
    }
    page.family(&BUILD).add(&[build_info::RELEASE, build_info::commit()], 1);
    if let Some(stat) = fs::read_to_string("/proc/self/stat").ok().as_deref().and_then(Stat::of) {
        page.number(&CPU_SECONDS, stat.cpu_seconds);
        page.number(&RESIDENT_BYTES, stat.resident_bytes);
        page.number(&VIRTUAL_BYTES, stat.virtual_bytes);
        if let Some(boot) = boot_epoch_seconds() {
            page.number(&START_TIME, boot + stat.started_seconds);
        }
    }
    if let Ok(files) = fs::read_dir("/proc/self/fd") {
        // One of them is the directory handle of this loop.
        page.number(&OPEN_FILES, files.count().saturating_sub(1));
    }
    if let Ok((soft, _)) = getrlimit(Resource::RLIMIT_NOFILE) {
        page.number(&OPEN_FILES_MAX, soft);
    }
}

/// A part of `/proc/PID/stat` (proc_pid_stat(5)).
#[derive(Debug, PartialEq)]
struct Stat {
    cpu_seconds: f64,
    /// Since the start of the machine.
    started_seconds: f64,
    virtual_bytes: u64,
    resident_bytes: u64,
}

impl Stat {
    fn of(text: &str) -> Option<Self> {
        // The program name, in parentheses, may contain any character; the rest has no parenthesis.
        let (_, rest) = text.rsplit_once(')')?;
        let fields: Vec<&str> = rest.split_whitespace().collect();
        // The first of them is the third field of the line.
        let field = |number: usize| fields.get(number - 3)?.parse::<u64>().ok();
        let ticks_per_second = system(SysconfVar::CLK_TCK)?;
        let seconds = |ticks: u64| Some(f64_of(ticks) / f64_of(ticks_per_second));
        Some(Self {
            cpu_seconds: seconds(field(14)?.saturating_add(field(15)?))?,
            started_seconds: seconds(field(22)?)?,
            virtual_bytes: field(23)?,
            resident_bytes: field(24)?.saturating_mul(system(SysconfVar::PAGE_SIZE)?),
        })
    }
}

fn system(what: SysconfVar) -> Option<u64> {
    u64::try_from(sysconf(what).ok()??).ok().filter(|number| *number > 0)
}

/// Exact up to 2^53, which no time in ticks comes near.
#[allow(clippy::cast_precision_loss)]
fn f64_of(number: u64) -> f64 {
    number as f64
}

/// When the machine was started, Unix time; read once, since it never changes.
fn boot_epoch_seconds() -> Option<f64> {
    static BOOT: OnceLock<Option<f64>> = OnceLock::new();
    *BOOT.get_or_init(|| {
        let text = fs::read_to_string("/proc/stat").ok()?;
        let line = text.lines().find_map(|line| line.strip_prefix("btime "))?;
        line.trim().parse::<u64>().ok().map(f64_of)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_a_program_cannot_shift_the_numbers() {
        let rest = "S 1 1 1 0 -1 4194560 1 0 0 0 150 50 0 0 20 0 4 0 1000 4096000 25 0";
        let plain = Stat::of(&format!("7 (fairway) {rest}")).unwrap();
        assert_eq!(plain, Stat::of(&format!("7 (a) b (c) {rest}")).unwrap());
        let ticks = f64_of(system(SysconfVar::CLK_TCK).unwrap());
        assert_eq!((plain.cpu_seconds, plain.started_seconds), (200.0 / ticks, 1000.0 / ticks));
        let page = system(SysconfVar::PAGE_SIZE).unwrap();
        assert_eq!((plain.virtual_bytes, plain.resident_bytes), (4_096_000, 25 * page));
        assert_eq!(Stat::of("7 (fairway) S 1"), None);
    }

    #[test]
    fn this_process_is_measured() {
        let mut page = Page::default();
        write(&mut page);
        let text = page.into_text();
        let value = |name: &str| -> f64 {
            let line = text.lines().find_map(|line| line.strip_prefix(&format!("{name} ")));
            line.unwrap_or_else(|| panic!("no {name} in {text}")).parse().unwrap()
        };
        assert!(value("process_resident_memory_bytes") > 1e6, "{text}");
        assert!(value("process_virtual_memory_bytes") > value("process_resident_memory_bytes"));
        assert!(value("process_open_fds") >= 3.0 && value("process_max_fds") >= 3.0, "{text}");
        // In this century, and not in the future.
        let now = crate::host::epoch_seconds();
        let age = f64_of(now) - value("process_start_time_seconds");
        assert!((-2.0..1e6).contains(&age), "{age}");
    }
}
