//! `fairway import`: other daemons' configuration as resources, without a daemon.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Result, bail};
use clap::Args;
use fairway_import::{Program, faults, import};

use super::output;
use crate::source::{FileChange, read_all};

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  fairway import /etc/frr/frr.conf > bgp.yaml
  vtysh -c 'show running-config' | fairway import --from frr - > bgp.yaml
  fairway import /etc/bird/bird.conf
  fairway import /etc/keepalived/keepalived.conf
  kubectl get -o yaml ciliumbgpclusterconfigs,ciliumbgppeerconfigs,ciliumbgpadvertisements,ciliumloadbalancerippools |
    fairway import -
  kubectl get -o yaml bgppeers.crd.projectcalico.org,bgpconfigurations.crd.projectcalico.org | fairway import -
  kubectl get -o yaml -n frr-k8s-system frrconfigurations | fairway import -

Prints resources on stdout, and on stderr each line that has no equal with its number and the reason, and notes on what
differs. What cannot be translated lets nothing through that was rejected before. Check the result with `fairway check`, and
`fairway plan --config bgp.yaml` shows what it announces. Passwords are printed as Secrets.
Exit code 0: every line is translated. 1: some are not, or a file cannot be read.")]
pub(super) struct ImportArguments {
    /// A file, or - for standard input
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,

    /// What the files were written for: frr, bird, keepalived or kubernetes (objects of Cilium, Calico or frr-k8s)
    /// [default: what they look like]
    #[arg(long, value_name = "PROGRAM")]
    from: Option<Program>,
}

pub(super) fn run(arguments: &ImportArguments) -> Result<ExitCode> {
    let (mut yaml, mut is_whole) = (String::new(), true);
    let mut complain = |line: String| {
        output::say(&line);
        is_whole = false;
    };
    if let Some(folder) = arguments.files.iter().find(|it| it.is_dir()) {
        bail!("{} is a folder; expected files", folder.display());
    }
    for change in read_all(&arguments.files)? {
        let (path, text) = match change {
            FileChange::Read { path, text } => (path, text),
            FileChange::Unreadable { path, why } | FileChange::Ignored { path, why } => {
                complain(format!("{path}: {why}"));
                continue;
            }
            FileChange::Gone { path } => {
                complain(format!("{path}: there is no such file"));
                continue;
            }
            FileChange::Readable { .. } => continue,
        };
        let Some(outcome) = import(&path, &text, arguments.from) else {
            complain(format!(
                "{path}: unknown format; say --from frr, bird, keepalived or kubernetes"
            ));
            continue;
        };
        for note in outcome.notes() {
            output::say(&format!("note: {note}"));
        }
        for line in outcome.untranslated_lines() {
            complain(format!("not translated: {line}"));
        }
        if outcome.is_empty() {
            complain(format!("{path}: nothing in it is about BGP or addresses of Services"));
        }
        yaml += &outcome.yaml();
    }
    for fault in faults(&yaml) {
        complain(format!("error: {fault}"));
    }
    output::print_for_programs(&yaml)?;
    Ok(if is_whole { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
