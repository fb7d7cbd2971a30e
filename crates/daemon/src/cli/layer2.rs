//! Options about the local segment.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use clap::Args;
use fairway_layer2::{EXCLUDED_BY_DEFAULT, Excluded};
use fairway_resources::{ExcludedExpression, interface_exclusions};
use tracing::info;

use super::duration;

/// As much as a ConfigMap can hold.
const FILE_LENGTH_BYTES_MAX: u64 = 1 << 20;

/// What `fairway run` and `fairway speaker` do on the local segment.
#[derive(Debug, Args)]
pub(super) struct Layer2Arguments {
    /// Answer for no address on interfaces with a name that matches this regular expression; may be given more
    /// than once, and replaces the default: interfaces of containers and overlays, as MetalLB excludes them
    /// (^docker.*, ^cbr.*, ^dummy.*, ^virbr.*, ^lxcbr.*, ^veth.*, ^lo$, ^cali.*, ^tunl.*, ^flannel.*,
    /// ^kube-ipvs.*, ^cni.*, ^nodelocaldns.*, ^lxc.*)
    #[arg(
        long,
        value_name = "REGEX",
        env = "FAIRWAY_LAYER2_EXCLUDE",
        value_delimiter = ' ',
        value_parser = expression
    )]
    layer2_exclude: Vec<String>,

    /// A file with the names to exclude where --layer2-exclude is not given, in the format of MetalLB's ConfigMap
    /// `metallb-excludel2` (announcedInterfacesToExclude: [REGEX, ...]); read at start. A file that does not exist
    /// counts as not given
    #[arg(long, value_name = "PATH", env = "FAIRWAY_LAYER2_EXCLUDE_FILE")]
    layer2_exclude_file: Option<PathBuf>,

    /// Announce addresses on the local segment again each time this has passed, for switches that forget
    /// sooner than hosts; 0s announces only after a change
    #[arg(
        long,
        value_name = "TIME",
        default_value = "0s",
        value_parser = duration::parse,
        env = "FAIRWAY_LAYER2_REFRESH"
    )]
    layer2_refresh: Duration,
}

/// The text, if it is a regular expression.
fn expression(text: &str) -> Result<String, String> {
    Excluded::new(&[text]).map(|_| text.to_owned()).map_err(|error| error.to_string())
}

/// The names that `file` excludes; `None` if there is no such file.
fn excluded_by(file: &Path) -> Result<Option<Excluded>> {
    let failed = || format!("cannot use {} (--layer2-exclude-file)", file.display());
    // The attributes come first: opening a FIFO waits for its writer.
    match std::fs::metadata(file) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error).with_context(failed),
        Ok(attributes) if !attributes.is_file() => bail!("{}: it is not a file", failed()),
        Ok(attributes) if attributes.len() > FILE_LENGTH_BYTES_MAX => {
            bail!("{}: it has more than {FILE_LENGTH_BYTES_MAX} bytes", failed())
        }
        Ok(_) => {}
    }
    let text = std::fs::read_to_string(file).with_context(failed)?;
    let listed = interface_exclusions(&text).with_context(failed)?;
    for ExcludedExpression { line, text } in &listed {
        expression(text).map_err(|error| anyhow!("line {line}: {error}")).with_context(failed)?;
    }
    let listed: Vec<&str> = listed.iter().map(|it| it.text.as_str()).collect();
    Excluded::new(&listed).map(Some).with_context(failed)
}

impl Layer2Arguments {
    /// The interfaces that are left out.
    pub(super) fn excluded(&self) -> Result<Excluded> {
        let given: Vec<&str> =
            self.layer2_exclude.iter().map(String::as_str).filter(|it| !it.is_empty()).collect();
        if !given.is_empty() {
            return Excluded::new(&given).context("--layer2-exclude is not a regular expression");
        }
        let file = self.layer2_exclude_file.as_deref().filter(|it| !it.as_os_str().is_empty());
        let listed = file.map(excluded_by).transpose()?.flatten();
        if let Some(listed) = listed {
            return Ok(listed);
        }
        if let Some(file) = file {
            // An optional ConfigMap that nobody made, or a typo.
            info!(
                file = %file.display(),
                option = "--layer2-exclude-file",
                "the file does not exist: the default list of excluded interfaces applies"
            );
        }
        Ok(Excluded::new(&EXCLUDED_BY_DEFAULT)?)
    }

    /// Time between announcements when nothing changes.
    pub(super) fn refresh(&self) -> Option<Duration> {
        Some(self.layer2_refresh).filter(|it| !it.is_zero())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_of_metallb_excludes_and_a_missing_one_changes_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("excludel2.yaml");
        assert!(excluded_by(&file).unwrap().is_none());
        std::fs::write(&file, "announcedInterfacesToExclude:\n- ^storage\n").unwrap();
        let excluded = excluded_by(&file).unwrap().unwrap();
        assert!(
            excluded.has("storage0") && !excluded.has("docker0"),
            "the list replaces the default"
        );
    }

    #[test]
    fn a_file_that_cannot_be_used_is_an_error_with_its_name_and_line() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("excludel2.yaml");
        std::fs::write(&file, "announcedInterfacesToExclude:\n- ^a\n- '('\n").unwrap();
        let error = format!("{:#}", excluded_by(&file).unwrap_err());
        assert!(error.contains("excludel2.yaml") && error.contains("line 3"), "{error}");
        let error = format!("{:#}", excluded_by(Path::new("/dev/zero")).unwrap_err());
        assert!(error.contains("it is not a file"), "{error}");
    }
}
