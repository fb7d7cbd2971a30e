//! How does a folder get lost? It is a tmpfs of its own, which can be detached and mounted again while programs
//! use it; what is below it is an empty folder. Used by the scene.
//!
//! `ip netns exec` gives each program a mount namespace of its own, which receives mounts of this one where
//! they are shared. So the folder's parent is mounted on itself and shared.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use lab::make_directory;
use lab::process::{bounded, output_of};

/// A file of the volume: its name without `.yaml`, and its text.
pub(crate) type Resource = (String, String);

/// The place of the volume. Nothing may run below it any more when this is dropped.
pub(crate) struct Volume {
    parent: PathBuf,
    folder: PathBuf,
    is_mounted: bool,
}

impl Volume {
    /// For `folder`, which exists, in `parent`. Nothing is mounted at the folder yet.
    pub(crate) fn prepare(parent: &Path, folder: &Path) -> Result<Self> {
        output_of(bounded("mount").arg("--bind").args([parent, parent]))?;
        let volume =
            Self { parent: parent.to_owned(), folder: folder.to_owned(), is_mounted: false };
        output_of(bounded("mount").arg("--make-shared").arg(parent))?;
        Ok(volume)
    }

    /// Mounts a fresh tmpfs at the folder. It has all files from the first instant.
    pub(crate) fn mount(&mut self, resources: &[Resource]) -> Result<()> {
        let filled = self.parent.join("filled");
        make_directory(&filled)?;
        output_of(bounded("mount").args(["-t", "tmpfs", "attack"]).arg(&filled))?;
        let result = self.fill_and_bind(&filled, resources);
        // The other mount of the same file system stays.
        detach(&filled)?;
        result
    }

    fn fill_and_bind(&mut self, filled: &Path, resources: &[Resource]) -> Result<()> {
        for (name, text) in resources {
            let file = filled.join(format!("{name}.yaml"));
            fs::write(&file, text).with_context(|| format!("writing {}", file.display()))?;
        }
        output_of(bounded("mount").arg("--bind").args([filled, self.folder.as_path()]))?;
        self.is_mounted = true;
        Ok(())
    }

    /// Takes the volume away from all who use it.
    pub(crate) fn lose(&mut self) -> Result<()> {
        detach(&self.folder)?;
        self.is_mounted = false;
        Ok(())
    }
}

impl Drop for Volume {
    fn drop(&mut self) {
        let folder = self.is_mounted.then_some(&self.folder);
        for mounted in folder.into_iter().chain([&self.parent]) {
            if let Err(error) = detach(mounted) {
                eprintln!("warning: {} stays mounted: {error:#}", mounted.display());
            }
        }
    }
}

fn detach(folder: &Path) -> Result<()> {
    output_of(bounded("umount").arg("-l").arg(folder)).map(drop)
}
