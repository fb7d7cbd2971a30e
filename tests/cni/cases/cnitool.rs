//! Another runtime: `cnitool` of the CNI project, which is made from the library that containerd and CRI-O have.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use super::{Scene, disk, example_list};
use crate::runtime::{Plugins, Runtime, addresses};
use lab::namespace::Namespace;
use lab::process::output_of;

/// Where it keeps what plugins have answered.
const RESULTS: &str = "/var/lib/cni/results";

/// `cnitool` with a network.
struct Tool<'a> {
    runtime: Runtime<'a>,
    /// The folder with the list of plugins.
    lists: PathBuf,
    /// The name of the network, which no other runtime on this machine has.
    network: String,
}

/// Those with `cnitool` beside them.
pub(crate) fn plugins_with_tool(plugins: &[Plugins]) -> Option<&Plugins> {
    plugins.iter().find(|it| it.folder.join("cnitool").exists())
}

impl<'a> Tool<'a> {
    fn new(scene: &Scene, host: &'a Namespace, plugins: &'a Plugins) -> Result<Self> {
        let network = format!("fairway-{}-{}", std::process::id(), scene.cell);
        let mut list = example_list("10-fairway-bridge.conflist")?;
        list["name"] = network.as_str().into();
        list["cniVersion"] = plugins.version.into();
        let lists = scene.directory.join("net.d");
        lab::make_directory(&lists)?;
        std::fs::write(lists.join("10-fairway.conflist"), list.to_string())?;
        let runtime = Runtime::new(host, plugins, &scene.directory, json!({}))?;
        Ok(Self { runtime, lists, network })
    }

    /// What it prints.
    fn run(&self, verb: &str, container: &str) -> Result<Value> {
        let program = self.runtime.plugins.folder.join("cnitool");
        let mut command = self.runtime.command(&program, "", container, container);
        command.env("NETCONFPATH", &self.lists).env_remove("CNI_COMMAND");
        command.args([verb, &self.network, &format!("/var/run/netns/{container}")]);
        let text = output_of(&mut command)?;
        match text.trim() {
            "" => Ok(Value::Null),
            printed => serde_json::from_str(printed).with_context(|| printed.to_owned()),
        }
    }

    /// How many answers it keeps of this network.
    fn kept(&self) -> Result<usize> {
        let mut count = 0;
        for entry in Path::new(RESULTS).read_dir()? {
            let name = entry?.file_name().to_string_lossy().into_owned();
            count += usize::from(name.starts_with(&format!("{}-", self.network)));
        }
        Ok(count)
    }
}

pub(super) fn cnitool_adds_checks_and_deletes_and_collects_what_is_left(
    scene: &Scene,
) -> Result<()> {
    let plugins = plugins_with_tool(&scene.plugins).context("there is no cnitool here")?;
    let mut daemon = disk::daemon(scene)?;
    let host = Namespace::create(scene.cell, "host")?;
    host.enable_forwarding()?;
    let tool = Tool::new(scene, &host, plugins)?;
    let (one, other) =
        (Namespace::create(scene.cell, "one")?, Namespace::create(scene.cell, "other")?);
    tool.run("status", one.name())?;
    let given = [tool.run("add", one.name())?, tool.run("add", other.name())?];
    let given = given.map(|it| addresses(&it));
    for (from, to) in [(&one, &given[1]), (&other, &given[0])] {
        ensure!(to.len() == 2, "{given:?}");
        for address in to {
            from.run("busybox", &["ping", "-c", "1", "-W", "5", address])?;
        }
        tool.run("check", from.name())?;
    }
    // Each of two blocks has a gateway, which stays.
    has_taken(scene, 2 + 4)?;
    let again = tool.run("add", one.name());
    ensure!(again.is_err(), "the interface was made twice: {again:?}");
    has_taken(scene, 2 + 4)?;
    tool.run("del", one.name())?;
    tool.run("del", one.name())?;
    has_taken(scene, 2 + 2)?;
    let checked = tool.run("check", one.name());
    ensure!(checked.is_err(), "a deleted container is checked without an error");
    tool.run("check", other.name())?;
    ensure!(tool.kept()? == 1, "{} answers are kept", tool.kept()?);
    // The namespace ends without its runtime.
    let gone = other.name().to_owned();
    drop(other);
    tool.run("gc", &gone)?;
    nothing_is_left(scene, &host, &tool)?;
    daemon.fairway.kill()?;
    let status = tool.run("status", one.name());
    ensure!(status.is_err(), "the network is ready without a daemon");
    Ok(())
}

fn has_taken(scene: &Scene, expected: usize) -> Result<()> {
    let taken = disk::taken(&scene.directory)?;
    ensure!(taken == expected, "{taken} addresses are taken, expected {expected}");
    Ok(())
}

fn nothing_is_left(scene: &Scene, host: &Namespace, tool: &Tool<'_>) -> Result<()> {
    has_taken(scene, 2)?;
    for entry in scene.directory.join("state/ipam-blocks").read_dir()? {
        let text = std::fs::read_to_string(entry?.path())?;
        let block: Value = serde_json::from_str(&text)?;
        let attributes = block["spec"]["attributes"].as_array().context("attributes")?;
        let is_gateway = |it: &Value| it["handle_id"] == "fairway-gateway";
        ensure!(attributes.iter().all(is_gateway), "{block}");
    }
    let links = host.ip(&["-br", "link"])?;
    ensure!(!links.contains("veth"), "interfaces stay behind: {links}");
    ensure!(tool.kept()? == 0, "{} answers are kept", tool.kept()?);
    Ok(())
}
