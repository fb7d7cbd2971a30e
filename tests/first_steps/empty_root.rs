//! Where are commands run as on a machine that has nothing? In a folder that becomes the root of their process, with
//! a static busybox as the shell and the archive of a release. Used by main.

use std::env;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use lab::namespace::Namespace;
use lab::process::{Process, output_of};

/// Debian's package busybox-static.
const BUSYBOX: &str = "/bin/busybox";
/// What the page takes for granted.
const TOOLS: [&str; 5] = ["sh", "tar", "gzip", "cat", "ls"];

/// A folder for `chroot`.
pub(crate) struct EmptyRoot(PathBuf);

impl EmptyRoot {
    /// Makes it, with the archive of that name. FAIRWAY_ARCHIVE is one of `make dist`; without it, the program under
    /// test is packed, with the libraries that it needs, if it needs any.
    pub(crate) fn make(folder: &Path, archive: &str) -> Result<Self> {
        let programs = folder.join("bin");
        lab::make_directory(&programs)?;
        fs::copy(BUSYBOX, programs.join("busybox")).context("the Debian package busybox-static")?;
        for tool in TOOLS {
            symlink("busybox", programs.join(tool)).with_context(|| tool.to_owned())?;
        }
        // sudo asks nobody here: it is root that types.
        fs::write(programs.join("sudo"), "#!/bin/sh\nexec \"$@\"\n").context("sudo")?;
        output_of(Command::new("chmod").arg("755").arg(programs.join("sudo")))?;
        lab::make_directory(&folder.join("dev"))?;
        output_of(
            Command::new("mknod")
                .args(["-m", "666"])
                .arg(folder.join("dev/null"))
                .args(["c", "1", "3"]),
        )?;
        let to = folder.join(archive);
        match env::var_os("FAIRWAY_ARCHIVE") {
            Some(made) => {
                let made = lab::checkout().join(made);
                fs::copy(&made, &to).with_context(|| made.display().to_string())?;
            }
            None => pack(archive, &to, folder)?,
        }
        Ok(Self(folder.to_owned()))
    }

    /// Starts a shell with these commands there.
    pub(crate) fn run(&self, node: &Namespace, commands: &str, log: &Path) -> Result<Process> {
        let root = self.0.to_string_lossy().into_owned();
        let words =
            [&*root, "/bin/busybox", "env", "-i", "PATH=/bin", "/bin/sh", "-e", "-c", commands];
        let arguments: Vec<_> = words.iter().map(|it| (*it).to_owned()).collect();
        Process::spawn(node, Path::new("/usr/sbin/chroot"), &arguments, log)
    }
}

/// An archive as far as the page uses it.
fn pack(archive: &str, to: &Path, root: &Path) -> Result<()> {
    let program = lab::fairway::existing_program()?;
    let name = archive.strip_suffix(".tar.gz").context("the archive is no .tar.gz")?;
    let scratch = tempfile::tempdir().context("a folder")?;
    let bin = scratch.path().join(name).join("bin");
    lab::make_directory(&bin)?;
    // Without symbols, as a release is.
    output_of(Command::new("strip").arg("-o").arg(bin.join("fairway")).arg(&program))?;
    output_of(Command::new("tar").arg("-C").arg(scratch.path()).arg("-czf").arg(to).arg(name))?;
    // A build for tests is linked dynamically, and what it needs belongs to the machine.
    let Ok(needed) = output_of(Command::new("ldd").arg(&program)) else { return Ok(()) };
    for library in needed.split_whitespace().filter(|word| word.starts_with('/')) {
        let copy = root.join(library.trim_start_matches('/'));
        lab::make_directory(copy.parent().context("a folder of libraries")?)?;
        fs::copy(library, &copy).with_context(|| library.to_owned())?;
    }
    Ok(())
}
