//! An input that revealed a defect: what it is, and where it is stored.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use fairway_fuzzing::Target;

use super::CPU_TIME_MAX;
use super::measure::{Cost, Panic};

/// Maximum allocation for each byte of input, and each copy of its content.
const BYTES_PER_INPUT_BYTE_MAX: u64 = 64;
/// Allocation that a target may always make: the session, the checks, the RIB.
const ALLOCATION_FLOOR_BYTES: u64 = 32 * 1024;

/// Maximum number of input bytes that are printed.
const SHOWN_BYTES_MAX: usize = 512;

/// The defect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Fault {
    Panic(Panic),
    Slow(Duration),
    Hungry(u64),
    Hangs,
}

#[derive(Debug, Clone)]
pub(crate) struct Finding {
    pub(crate) target: &'static Target,
    pub(crate) seed: Option<u64>,
    pub(crate) input: Vec<u8>,
    pub(crate) fault: Fault,
}

/// Maximum allocation of `target` for an input of this length.
fn allocation_limit(target: &Target, length: usize) -> u64 {
    let length = u64::try_from(length).unwrap_or(u64::MAX);
    let one = length.saturating_mul(BYTES_PER_INPUT_BYTE_MAX).max(ALLOCATION_FLOOR_BYTES);
    one.saturating_mul(target.copies)
}

/// Maximum CPU time for an input of this length. One of several long messages, each with a session and two
/// tables, holds tens of thousands of prefixes.
fn cpu_time_limit(length: usize) -> Duration {
    const LENGTH_BYTES: usize = 32 * 1024;
    CPU_TIME_MAX * u32::try_from(length.div_ceil(LENGTH_BYTES).max(1)).unwrap_or(1)
}

impl Finding {
    /// The fault of an input with these costs, if there is any.
    pub(crate) fn of(
        target: &'static Target,
        seed: Option<u64>,
        input: &[u8],
        cost: &Cost,
    ) -> Option<Self> {
        let fault = if let Err(panic) = &cost.outcome {
            Fault::Panic(panic.clone())
        } else if cost.cpu > cpu_time_limit(input.len()) {
            Fault::Slow(cost.cpu)
        } else if cost.peak_bytes > allocation_limit(target, input.len()) {
            Fault::Hungry(cost.peak_bytes)
        } else {
            return None;
        };
        Some(Self { target, seed, input: input.to_vec(), fault })
    }

    /// Whether both are probably the same defect.
    pub(crate) fn resembles(&self, other: &Self) -> bool {
        let same_fault = match (&self.fault, &other.fault) {
            (Fault::Panic(one), Fault::Panic(other)) => one.place == other.place,
            (one, other) => std::mem::discriminant(one) == std::mem::discriminant(other),
        };
        same_fault && self.target.name == other.target.name
    }

    /// Writes the input to `failures/`, and returns where.
    pub(crate) fn keep(&self) -> String {
        let crate_folder = std::env::var_os("CARGO_MANIFEST_DIR");
        let folder = crate_folder.map_or(PathBuf::from("fuzzing"), PathBuf::from).join("failures");
        let seed = self.seed.map_or_else(|| "file".to_owned(), |seed| seed.to_string());
        let path = folder.join(format!("{}-{seed}", self.target.name));
        let written =
            std::fs::create_dir_all(&folder).and_then(|()| std::fs::write(&path, &self.input));
        match written {
            Ok(()) => format!("kept as {}", path.display()),
            Err(error) => format!("not kept: {}: {error}", path.display()),
        }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { target, seed, input, fault } = self;
        writeln!(f, "FINDING in {}, {} bytes:", target.name, input.len())?;
        match fault {
            Fault::Panic(Panic { place, text }) => writeln!(f, "  panic at {place}: {text}")?,
            Fault::Slow(cpu) => {
                let limit = cpu_time_limit(self.input.len());
                writeln!(f, "  {cpu:?} of CPU time, at most {limit:?}")?;
            }
            Fault::Hungry(bytes) => {
                let limit = allocation_limit(target, input.len());
                writeln!(f, "  {bytes} bytes allocated at its peak, at most {limit}")?;
            }
            Fault::Hangs => writeln!(f, "  it does not terminate")?,
        }
        if let Some(seed) = seed {
            writeln!(f, "  again: --target {} --seed {seed}", target.name)?;
        }
        match input.get(..SHOWN_BYTES_MAX) {
            Some(front) => write!(f, "  input: {}... (the rest is in the file)", hex(front)),
            None => write!(f, "  input: {}", hex(input)),
        }
    }
}

/// Two digits for each byte.
pub(crate) fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write;
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}
