//! Where are a router's programs, and how do they see their files? On this machine; or below the root
//! directory that `scripts/trixie.sh` fills with Debian 13, into which the router's own directory is
//! bound, in a mount namespace of its own that ends with the program. Used by FRR, BIRD and the walk.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Result;

use crate::namespace::{Namespace, Place};
use crate::process::{bounded, output_of};

/// Which Debian a router comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Release {
    /// Debian 12, or whatever this machine runs.
    Bookworm,
    /// Debian 13.
    Trixie,
}

impl Release {
    /// None for this machine's own.
    fn root(self) -> Option<PathBuf> {
        let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
        match self {
            Self::Bookworm => None,
            Self::Trixie => Some(set("FAIRWAY_TRIXIE").map_or_else(
                || {
                    let cache = set("XDG_CACHE_HOME").unwrap_or_else(|| "/var/cache".into());
                    Path::new(&cache).join("fairway/trixie")
                },
                PathBuf::from,
            )),
        }
    }

    /// The file of a program, as this machine sees it.
    pub fn file(self, program: &str) -> PathBuf {
        match self.root() {
            None => program.into(),
            Some(root) => root.join(program.trim_start_matches('/')),
        }
    }

    /// A command that runs the program, which needs no file of a router.
    pub fn command(self, program: &str) -> Command {
        match self.root() {
            None => bounded(program),
            Some(root) => {
                let mut command = bounded("chroot");
                command.arg(root).arg(program);
                command
            }
        }
    }
}

/// The programs of one router, with its directory.
pub struct Installation {
    root: Option<PathBuf>,
    directory: PathBuf,
    /// Where the programs see the directory, when they have a root of their own.
    mount_point: &'static str,
    /// Where they see it as well.
    also_at: Option<&'static str>,
}

/// Enters the root `$0`, where the directory `$1` is bound to each of `$2`, and becomes the rest.
const ENTER: &str = r#"set -e; mount -t proc proc "$0/proc"
    for place in $2; do mount --bind "$1" "$0$place"; done; shift 2; exec chroot "$0" "$@""#;

impl Installation {
    pub fn new(release: Release, directory: &Path, mount_point: &'static str) -> Self {
        let root = release.root();
        Self { root, directory: directory.to_owned(), mount_point, also_at: None }
    }

    /// The same, where the programs have this path built in.
    pub fn also_at(self, path: &'static str) -> Self {
        Self { also_at: Some(path), ..self }
    }

    /// A file of the router's directory, as its programs see it.
    pub fn seen(&self, name: &str) -> String {
        let directory = match self.root {
            None => &self.directory,
            Some(_) => Path::new(self.mount_point),
        };
        directory.join(name).to_string_lossy().into_owned()
    }

    /// Runs a short program to its end, outside of any network namespace.
    pub(super) fn run(&self, program: &str, arguments: &[&str]) -> Result<String> {
        output_of(self.command(program).args(arguments))
    }

    /// A command that runs a short program, outside of any network namespace.
    pub fn command(&self, program: &str) -> Command {
        let (first, rest) = self.words(OsStr::new(program));
        let mut command = bounded(first);
        command.args(rest);
        command
    }

    /// The place where the router's daemons run.
    pub fn within<'a>(&'a self, namespace: &'a Namespace) -> Within<'a> {
        Within { installation: self, namespace }
    }

    /// What has to be run so that `program` runs. Each replaces the one before, so that the process
    /// keeps its id.
    fn words(&self, program: &OsStr) -> (OsString, Vec<OsString>) {
        let Some(root) = &self.root else {
            return (program.to_owned(), Vec::new());
        };
        let mut rest = ["--mount", "sh", "-c", ENTER].map(OsString::from).to_vec();
        let places = [Some(self.mount_point), self.also_at].map(Option::unwrap_or_default);
        rest.extend([root.into(), (&self.directory).into(), places.join(" ").into()]);
        rest.push(program.to_owned());
        ("unshare".into(), rest)
    }
}

/// A network namespace in which programs of an installation run.
pub struct Within<'a> {
    installation: &'a Installation,
    namespace: &'a Namespace,
}

impl Place for Within<'_> {
    fn command(&self, program: &OsStr) -> Command {
        let (first, rest) = self.installation.words(program);
        let mut command = self.namespace.command(&first);
        command.args(rest);
        command
    }
}
