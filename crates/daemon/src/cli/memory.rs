//! How much memory may this process take? The option `--memory-limit`, and its default from the cgroup.

use std::fs;
use std::path::Path;
use std::str::FromStr;

/// Less is not enough for the daemon itself.
const LEAST_BYTES: u64 = 64 << 20;
/// Of the cgroup's limit, in percent: the kernel kills the process at the whole of it.
const SHARE_PERCENT: u64 = 80;
/// Where the kernel has the tree of cgroups.
const CGROUPS: &str = "/sys/fs/cgroup";

/// What the user asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MemoryLimit {
    /// There is none.
    Unlimited,
    /// So many bytes.
    Bytes(u64),
}

/// Why a text is no limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("expected none, or 64Mi or more, with a unit (Ki, Mi, Gi), as in 512Mi or 2Gi")]
pub(super) struct MemoryLimitError;

impl FromStr for MemoryLimit {
    type Err = MemoryLimitError;

    fn from_str(text: &str) -> Result<Self, MemoryLimitError> {
        if text == "none" {
            return Ok(Self::Unlimited);
        }
        let units = [("Ki", 10), ("Mi", 20), ("Gi", 30)];
        let (number, shift) = units
            .iter()
            .find_map(|(unit, shift)| Some((text.strip_suffix(unit)?, *shift)))
            .ok_or(MemoryLimitError)?;
        let is_number = !number.is_empty() && number.bytes().all(|it| it.is_ascii_digit());
        let number: u64 = number.parse().ok().filter(|_| is_number).ok_or(MemoryLimitError)?;
        let bytes = number.checked_mul(1_u64 << shift).filter(|bytes| *bytes >= LEAST_BYTES);
        bytes.map(Self::Bytes).ok_or(MemoryLimitError)
    }
}

impl MemoryLimit {
    /// In bytes; of the cgroup without a wish.
    pub(super) fn in_force(wish: Option<Self>) -> Option<u64> {
        match wish {
            Some(Self::Unlimited) => None,
            Some(Self::Bytes(bytes)) => Some(bytes),
            None => {
                let own = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
                of_cgroup(Path::new(CGROUPS), &own)
            }
        }
    }
}

/// The share of the lowest limit of the cgroups around this process (version 2), if there is one and it is enough. `own`:
/// the text of /proc/self/cgroup.
fn of_cgroup(root: &Path, own: &str) -> Option<u64> {
    let path = own.lines().find_map(|line| line.strip_prefix("0::/"))?;
    // A path that leads out of the tree is that of another namespace.
    let path = Path::new(path);
    let is_inside = path.components().all(|it| matches!(it, std::path::Component::Normal(_)));
    let path = if is_inside { path } else { Path::new("") };
    let limits = path.ancestors().filter_map(|path| {
        let text = fs::read_to_string(root.join(path).join("memory.max")).ok()?;
        text.trim().parse::<u64>().ok()
    });
    let bytes = limits.min()? / 100 * SHARE_PERCENT;
    (bytes >= LEAST_BYTES).then_some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_have_a_unit_and_are_enough() {
        let limit = |text: &str| text.parse::<MemoryLimit>();
        assert_eq!(limit("none"), Ok(MemoryLimit::Unlimited));
        assert_eq!(limit("64Mi"), Ok(MemoryLimit::Bytes(64 << 20)));
        assert_eq!(limit("65536Ki"), Ok(MemoryLimit::Bytes(64 << 20)));
        assert_eq!(limit("2Gi"), Ok(MemoryLimit::Bytes(2 << 30)));
        for wrong in
            ["", "0", "64", "64M", "63Mi", "-1Gi", "+1Gi", "Gi", "1.5Gi", "99999999999999999Gi"]
        {
            assert_eq!(limit(wrong), Err(MemoryLimitError), "{wrong}");
        }
    }

    #[test]
    fn the_lowest_cgroup_decides_unless_it_is_too_low() {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("a/b");
        fs::create_dir_all(&folder).unwrap();
        let set = |path: &str, text: &str| {
            fs::write(root.path().join(path).join("memory.max"), text).unwrap();
        };
        let found = || of_cgroup(root.path(), "1:name=systemd:/x\n0::/a/b\n");
        assert_eq!(found(), None);
        set("a/b", "max\n");
        assert_eq!(found(), None);
        set("a", "1000000000\n");
        assert_eq!(found(), Some(800_000_000));
        set("a/b", "500000000\n");
        assert_eq!(found(), Some(400_000_000));
        assert_eq!(of_cgroup(root.path(), "0::/../a/b\n"), None);
        set("", "300000000\n");
        assert_eq!(of_cgroup(root.path(), "0::/../a/b\n"), Some(240_000_000));
        set("a/b", "1000000\n");
        assert_eq!(found(), None);
        assert_eq!(of_cgroup(root.path(), "2:memory:/a\n"), None);
    }
}
