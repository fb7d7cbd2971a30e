//! `fairway crds`: the CustomResourceDefinitions that an API server needs for our kinds.

use std::process::ExitCode;

use anyhow::Result;
use clap::Args;
use fairway_resources::CustomResourceDefinition;

use super::output;

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  fairway crds | kubectl apply -f -          install or update; existing objects stay
  fairway crds | kubectl diff -f -           what that would change
  fairway crds --ipam | kubectl apply -f -   for fairway speaker --ipam")]
pub(super) struct CrdsArguments {
    /// Print those of the addresses of Pods instead, which Calico's nodes use as well: for clusters without Calico
    #[arg(long)]
    ipam: bool,
}

pub(super) fn run(arguments: &CrdsArguments) -> Result<ExitCode> {
    let of_pods = || {
        let definitions = fairway_ipam::calico::definitions().into_iter();
        definitions
            .map(|(file_name, object)| CustomResourceDefinition { file_name, object })
            .collect()
    };
    let definitions = if arguments.ipam { of_pods() } else { CustomResourceDefinition::all() };
    let documents: Vec<String> = definitions.iter().map(CustomResourceDefinition::yaml).collect();
    output::print_for_programs(&documents.concat())?;
    Ok(ExitCode::SUCCESS)
}
