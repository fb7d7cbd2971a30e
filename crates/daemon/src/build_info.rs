//! Which build of Fairway this process is.
//!
//! The binary knows its commit and says it once, in `main`: a library that contained the commit would be
//! compiled again with every commit, and so would every test.

use std::sync::OnceLock;

static COMMIT: OnceLock<&'static str> = OnceLock::new();

/// The release, as in `Cargo.toml`.
pub(crate) const RELEASE: &str = env!("CARGO_PKG_VERSION");

/// Sets the commit of this process. Only the first call counts.
pub(crate) fn set_commit(commit: &'static str) {
    // A second call would name the same commit.
    let _ = COMMIT.set(commit);
}

/// The commit; `unknown` in a process that has not set it, such as a unit test.
pub(crate) fn commit() -> &'static str {
    COMMIT.get().copied().unwrap_or("unknown")
}

/// Release and commit, as `--version` prints them.
pub(crate) fn version() -> &'static str {
    static VERSION: OnceLock<String> = OnceLock::new();
    VERSION.get_or_init(|| format!("{RELEASE} ({})", commit()))
}
