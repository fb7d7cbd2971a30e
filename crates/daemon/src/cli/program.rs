//! What a user types to start this program again, in commands that are printed to be pasted.
//!
//! Knows PATH and how this process was started, and not what follows in the command. `demo` calls it.

use std::env;
use std::ffi::OsStr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// What the shell finds.
const NAME: &str = "fairway";

/// `fairway` where the shell finds this very program under that name; else the absolute path by which it was
/// started, quoted for a shell where that is needed.
pub(super) fn as_typed() -> String {
    let Ok(this) = env::current_exe() else { return NAME.to_owned() };
    let started_as = env::args_os().next().map(PathBuf::from).unwrap_or_default();
    let path = env::var_os("PATH").unwrap_or_default();
    if found_on(&path).is_some_and(|found| is_same_file(&found, &this)) {
        return NAME.to_owned();
    }
    let absolute = std::path::absolute(&started_as).ok();
    // The first word of a process is what its parent says, and need not be a path at all.
    let typed = absolute.filter(|it| is_same_file(it, &this)).unwrap_or(this);
    quoted(&typed.to_string_lossy())
}

/// The first file of that name which may be executed, as shells search for it.
fn found_on(path: &OsStr) -> Option<PathBuf> {
    let candidates = env::split_paths(path).map(|folder| folder.join(NAME));
    candidates.into_iter().find(|it| may_be_executed(it))
}

/// By anybody, which is what most shells look at.
fn may_be_executed(file: &Path) -> bool {
    file.metadata().is_ok_and(|it| it.is_file() && it.permissions().mode() & 0o111 != 0)
}

fn is_same_file(one: &Path, other: &Path) -> bool {
    match (one.canonicalize(), other.canonicalize()) {
        (Ok(one), Ok(other)) => one == other,
        _ => false,
    }
}

/// One word of a POSIX shell.
pub(super) fn quoted(word: &str) -> String {
    let is_plain = |it: char| it.is_ascii_alphanumeric() || "/._-+:@".contains(it);
    match word.chars().all(is_plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // What fails here fails the test.
mod tests {
    use super::quoted;

    #[test]
    fn a_path_stays_one_word_of_a_shell() {
        assert_eq!(quoted("/opt/fairway-0.1.0/fairway"), "/opt/fairway-0.1.0/fairway");
        for path in ["/a folder/fairway", "/it's/fairway", "/$HOME/`x`/fairway", "/ü/fairway"] {
            let printf = format!("printf %s {}", quoted(path));
            let output = std::process::Command::new("sh").args(["-c", &printf]).output().unwrap();
            assert_eq!(String::from_utf8(output.stdout).unwrap(), path);
        }
    }
}
