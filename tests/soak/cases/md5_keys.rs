use crate::bench::Bench;
use anyhow::Result;
pub(super) fn run(_: &Bench) -> Result<()> {
    Ok(())
}
