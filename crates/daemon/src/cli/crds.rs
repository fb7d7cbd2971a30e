//! `fairway crds`: the CustomResourceDefinitions that an API server needs for our kinds.

use std::process::ExitCode;

use anyhow::Result;
use clap::Args;
use fairway_resources::CustomResourceDefinition;

use super::output;

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  fairway crds | kubectl apply -f -          install or update; existing objects stay
  fairway crds | kubectl diff -f -           what that would change")]
pub(super) struct CrdsArguments {}

pub(super) fn run(_: &CrdsArguments) -> Result<ExitCode> {
    let definitions = CustomResourceDefinition::all();
    let documents: Vec<String> = definitions.iter().map(CustomResourceDefinition::yaml).collect();
    output::print_for_programs(&documents.concat())?;
    Ok(ExitCode::SUCCESS)
}
