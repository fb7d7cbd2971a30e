//! Environment and configuration of a call, checked.

use std::collections::BTreeSet;
use std::net::IpAddr;

use fairway_ground::AddressFamily;
use serde_json::Value;

use super::Invocation;
use super::error::{CniError, Code};
use super::version::CniVersion;
use crate::census::PodName;
use crate::gateway::Edges;

/// The longest name of an interface that Linux has.
const INTERFACE_BYTES_MAX: usize = 15;

/// What is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Command {
    /// Addresses for a container.
    Add,
    /// They are not needed any more.
    Delete,
    /// Does it still have them?
    Check,
    /// Could an address be given?
    Status,
    /// Only these containers are left.
    CollectGarbage,
    /// Which versions are spoken?
    Version,
}

impl Command {
    /// As CNI_COMMAND has it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Add => "ADD",
            Self::Delete => "DEL",
            Self::Check => "CHECK",
            Self::Status => "STATUS",
            Self::CollectGarbage => "GC",
            Self::Version => "VERSION",
        }
    }
}

/// A container's interface.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Attachment {
    /// The container.
    pub container: String,
    /// The interface in it.
    pub interface: String,
}

/// Which gateways an answer has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Gateways {
    /// These: at most one of a family is told.
    Named(Vec<IpAddr>),
    /// That of each block: its second address.
    OfBlocks,
}

impl Gateways {
    /// Which addresses of a block are for no Pod, where plugins have gateways.
    pub(super) fn edges(&self) -> Edges {
        match self {
            Self::OfBlocks => Edges::WithheldWithGateway,
            Self::Named(gateways) if gateways.is_empty() => Edges::Given,
            Self::Named(_) => Edges::Withheld,
        }
    }
}

impl Default for Gateways {
    fn default() -> Self {
        Self::Named(Vec::new())
    }
}

/// What the configuration says of addresses.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Configuration {
    /// The network.
    pub network: String,
    /// The node, if it is named.
    pub node: Option<String>,
    /// The families that a container gets an address of.
    pub families: BTreeSet<AddressFamily>,
    /// The pools for IPv4 by name or prefix; empty for any.
    pub ipv4_pools: Vec<String>,
    /// Those for IPv6.
    pub ipv6_pools: Vec<String>,
    /// `Ours:` the gateways, for plugins that need one.
    pub gateways: Gateways,
    /// `Ours:` the routes, in the place of one for each address.
    pub routes: Option<Value>,
    /// The addresses of `prevResult`.
    pub earlier: Option<Vec<IpAddr>>,
    /// What GC keeps.
    pub valid: Option<BTreeSet<Attachment>>,
}

/// See the module.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// What is asked for.
    pub command: Command,
    /// In which version.
    pub version: CniVersion,
    /// Whose addresses, if the command is about a container.
    pub attachment: Attachment,
    /// The Pod.
    pub pod: Option<PodName>,
    /// Its UID, where the runtime tells it: another Pod may have had the same name.
    pub pod_uid: Option<String>,
    /// The addresses that CNI_ARGS asks for.
    pub wished: Vec<IpAddr>,
    /// The configuration.
    pub configuration: Configuration,
}

impl Request {
    /// Reads a call.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn parse(invocation: &Invocation<'_>) -> Result<Self, CniError> {
        let command = command(invocation)?;
        let document: Value = serde_json::from_slice(invocation.stdin).map_err(|error| {
            CniError::new(Code::Decoding, "the network configuration cannot be read", error)
        })?;
        if !document.is_object() {
            let details = "expected a JSON object";
            let message = "the network configuration cannot be read";
            return Err(CniError::new(Code::Decoding, message, details));
        }
        if command == Command::Version {
            return Ok(Self {
                command,
                version: CniVersion::LATEST,
                attachment: Attachment::default(),
                pod: None,
                pod_uid: None,
                wished: Vec::new(),
                configuration: Configuration::default(),
            });
        }
        let attachment = attachment(command, invocation)?;
        let network = network(&document)?;
        let version = version(command, &document)?;
        let Args { pod, pod_uid, wished } =
            args(command, invocation.args.as_deref().unwrap_or_default())?;
        let configuration = configuration(command, network, &document)?;
        Ok(Self { command, version, attachment, pod, pod_uid, wished, configuration })
    }
}

fn command(invocation: &Invocation<'_>) -> Result<Command, CniError> {
    Ok(match invocation.command.as_deref().unwrap_or_default() {
        "ADD" => Command::Add,
        "DEL" => Command::Delete,
        "CHECK" => Command::Check,
        "STATUS" => Command::Status,
        "GC" => Command::CollectGarbage,
        "VERSION" => Command::Version,
        other => {
            return Err(CniError::environment(format!(
                "CNI_COMMAND is {other:?}; expected ADD, DEL, CHECK, STATUS, GC or VERSION"
            )));
        }
    })
}

fn attachment(command: Command, invocation: &Invocation<'_>) -> Result<Attachment, CniError> {
    if matches!(command, Command::Status | Command::CollectGarbage | Command::Version) {
        return Ok(Attachment::default());
    }
    let given = |name: &str, value: &Option<String>| {
        let value = value.clone().filter(|it| !it.is_empty());
        value.ok_or_else(|| CniError::environment(format!("{name} is missing")))
    };
    let container = given("CNI_CONTAINERID", &invocation.container_id)?;
    if !is_name(&container) {
        return Err(CniError::environment(format!(
            "CNI_CONTAINERID is {container:?}; expected a letter or digit, then letters, digits, `_`, `.` or `-`"
        )));
    }
    let interface = given("CNI_IFNAME", &invocation.interface)?;
    let is_allowed = |it: char| !matches!(it, '/' | ':') && !it.is_whitespace();
    let is_directory = matches!(interface.as_str(), "." | "..");
    if interface.len() > INTERFACE_BYTES_MAX || is_directory || !interface.chars().all(is_allowed) {
        return Err(CniError::environment(format!(
            "CNI_IFNAME is {interface:?}; expected at most {INTERFACE_BYTES_MAX} bytes without `/`, `:` and spaces"
        )));
    }
    if command != Command::Delete {
        given("CNI_NETNS", &invocation.netns)?;
    }
    Ok(Attachment { container, interface })
}

/// Whether it is one as the specification has them for networks and containers.
fn is_name(text: &str) -> bool {
    let is_within = |it: char| it.is_ascii_alphanumeric() || matches!(it, '_' | '.' | '-');
    text.starts_with(|it: char| it.is_ascii_alphanumeric()) && text.chars().all(is_within)
}

fn network(document: &Value) -> Result<String, CniError> {
    let name = document.get("name").and_then(Value::as_str).unwrap_or_default();
    match is_name(name) {
        true => Ok(name.to_owned()),
        false => Err(CniError::configuration(format!(
            "name is {name:?}; expected a letter or digit, then letters, digits, `_`, `.` or `-`"
        ))),
    }
}

fn version(command: Command, document: &Value) -> Result<CniVersion, CniError> {
    let bad = |details: String| {
        CniError::new(Code::IncompatibleVersion, "the CNI version does not do", details)
    };
    // The specification's meaning of a configuration without it.
    let text = document.get("cniVersion").and_then(Value::as_str).unwrap_or("0.1.0");
    let version = CniVersion::parse(text).ok_or_else(|| {
        let known: Vec<String> = CniVersion::ALL.iter().map(ToString::to_string).collect();
        bad(format!("cniVersion is {text:?}; expected {}", known.join(", ")))
    })?;
    let first = match command {
        Command::Check => CniVersion::V0_4_0,
        Command::Status | Command::CollectGarbage => CniVersion::V1_1_0,
        _ => CniVersion::V0_3_1,
    };
    match version >= first {
        true => Ok(version),
        false => Err(bad(format!("cniVersion is {text:?}; the command needs at least {first}"))),
    }
}

/// What CNI_ARGS says.
#[derive(Debug, Default)]
struct Args {
    pod: Option<PodName>,
    pod_uid: Option<String>,
    wished: Vec<IpAddr>,
}

/// The Pod and the addresses of CNI_ARGS. What is wrong with them keeps no container from being deleted.
fn args(command: Command, text: &str) -> Result<Args, CniError> {
    match (read_args(text), command) {
        (Err(_), Command::Delete | Command::CollectGarbage) => Ok(Args::default()),
        (outcome, _) => outcome,
    }
}

fn read_args(text: &str) -> Result<Args, CniError> {
    let (mut namespace, mut name, mut wished) = (String::new(), String::new(), Vec::new());
    let mut pod_uid = None;
    let (mut unknown, mut ignores_unknown) = (Vec::new(), false);
    for pair in text.split(';').map(str::trim).filter(|it| !it.is_empty()) {
        let Some((key, value)) = pair.split_once('=') else {
            let details = format!("CNI_ARGS has {pair:?}; expected KEY=VALUE, separated by `;`");
            return Err(CniError::environment(details));
        };
        match key {
            "K8S_POD_NAMESPACE" => value.clone_into(&mut namespace),
            "K8S_POD_NAME" => value.clone_into(&mut name),
            "IP" => {
                for part in value.split(',').map(str::trim).filter(|it| !it.is_empty()) {
                    let address = address(part).ok_or_else(|| {
                        let details = format!("CNI_ARGS has IP={value:?}; expected an address");
                        CniError::environment(details)
                    })?;
                    if !wished.contains(&address) {
                        wished.push(address);
                    }
                }
            }
            "IgnoreUnknown" => ignores_unknown = matches!(value, "1" | "true" | "True" | "TRUE"),
            "K8S_POD_UID" => pod_uid = Some(value.to_owned()).filter(|it| !it.is_empty()),
            "K8S_POD_INFRA_CONTAINER_ID" => {}
            other => unknown.push(other.to_owned()),
        }
    }
    if !unknown.is_empty() && !ignores_unknown {
        return Err(CniError::environment(format!(
            "CNI_ARGS has {unknown:?}, which is unknown here; IgnoreUnknown=1 allows that"
        )));
    }
    let pod = (!namespace.is_empty() && !name.is_empty()).then_some(PodName { namespace, name });
    Ok(Args { pod, pod_uid, wished })
}

/// An address, with or without a length.
pub(super) fn address(text: &str) -> Option<IpAddr> {
    text.split('/').next()?.parse().ok()
}

fn configuration(
    command: Command,
    network: String,
    document: &Value,
) -> Result<Configuration, CniError> {
    let ipam = document.get("ipam").unwrap_or(&Value::Null);
    let node = document.get("nodename").and_then(Value::as_str).filter(|it| !it.is_empty());
    let node = node.map(str::to_owned);
    // What is wrong with how addresses are given keeps none from being released.
    if !matches!(command, Command::Add | Command::Status) {
        let earlier = (command == Command::Check).then(|| earlier(document)).transpose()?;
        let valid = (command == Command::CollectGarbage).then(|| valid(document)).transpose()?;
        return Ok(Configuration { network, node, earlier, valid, ..Configuration::default() });
    }
    let mut families = BTreeSet::new();
    if is_set(ipam, "assign_ipv4", true)? {
        families.insert(AddressFamily::Ipv4Unicast);
    }
    if is_set(ipam, "assign_ipv6", false)? {
        families.insert(AddressFamily::Ipv6Unicast);
    }
    if families.is_empty() {
        let details = "ipam.assign_ipv4 and ipam.assign_ipv6 are both \"false\"";
        return Err(CniError::configuration(details));
    }
    Ok(Configuration {
        network,
        node,
        families,
        ipv4_pools: texts(ipam, "ipv4_pools")?,
        ipv6_pools: texts(ipam, "ipv6_pools")?,
        gateways: gateways(ipam)?,
        routes: ipam.get("routes").filter(|it| it.is_array()).cloned(),
        earlier: None,
        valid: None,
    })
}

/// A boolean, which calico-ipam's configuration has as text.
fn is_set(ipam: &Value, key: &str, default: bool) -> Result<bool, CniError> {
    let wrong = |found: &Value| {
        CniError::configuration(format!("ipam.{key} is {found}; expected \"true\" or \"false\""))
    };
    match ipam.get(key) {
        None | Some(Value::Null) => Ok(default),
        Some(Value::Bool(it)) => Ok(*it),
        Some(Value::String(it)) if it.is_empty() => Ok(default),
        Some(found @ Value::String(it)) => match it.to_ascii_lowercase().as_str() {
            "true" => Ok(true),
            "false" => Ok(false),
            _ => Err(wrong(found)),
        },
        Some(found) => Err(wrong(found)),
    }
}

/// A list of texts.
fn texts(ipam: &Value, key: &str) -> Result<Vec<String>, CniError> {
    let wrong = |found: &Value| {
        let details = format!("ipam.{key} has {found}; expected a list of names or prefixes");
        CniError::configuration(details)
    };
    match ipam.get(key) {
        None | Some(Value::Null) => Ok(Vec::new()),
        Some(Value::Array(items)) => {
            let text = |it: &Value| it.as_str().map(str::to_owned).ok_or_else(|| wrong(it));
            items.iter().map(text).collect()
        }
        Some(found) => Err(wrong(found)),
    }
}

/// `block`, or one address, or a list with one of each family.
fn gateways(ipam: &Value) -> Result<Gateways, CniError> {
    let items = match ipam.get("gateway") {
        None | Some(Value::Null) => return Ok(Gateways::default()),
        Some(Value::String(it)) if it == "block" => return Ok(Gateways::OfBlocks),
        Some(Value::Array(items)) => items.clone(),
        Some(item) => vec![item.clone()],
    };
    let gateway = |item: &Value| {
        let wrong = || {
            CniError::configuration(format!(
                "ipam.gateway has {item}; expected addresses, or block"
            ))
        };
        item.as_str().and_then(address).ok_or_else(wrong)
    };
    Ok(Gateways::Named(items.iter().map(gateway).collect::<Result<_, _>>()?))
}

/// The addresses of `prevResult`.
fn earlier(document: &Value) -> Result<Vec<IpAddr>, CniError> {
    let result = document.get("prevResult").filter(|it| it.is_object());
    let result = result.ok_or_else(|| CniError::configuration("prevResult is missing"))?;
    let ips = result.get("ips").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let read = |item: &Value| {
        let text = item.get("address").and_then(Value::as_str);
        let wrong = || {
            let details = format!("prevResult.ips has {item}; expected an address in `address`");
            CniError::configuration(details)
        };
        text.and_then(address).ok_or_else(wrong)
    };
    ips.iter().map(read).collect()
}

/// The attachments that GC keeps.
fn valid(document: &Value) -> Result<BTreeSet<Attachment>, CniError> {
    const KEY: &str = "cni.dev/valid-attachments";
    let items = document.get(KEY).and_then(Value::as_array).ok_or_else(|| {
        // Without it, every address would be released.
        CniError::configuration(format!("{KEY} is missing; expected a list of attachments"))
    })?;
    let read = |item: &Value| {
        let text = |key: &str| item.get(key).and_then(Value::as_str).map(str::to_owned);
        let attachment = || {
            let container = text("containerID")?.to_lowercase();
            Some(Attachment { container, interface: text("ifname")? })
        };
        let wrong = || {
            let details = format!("{KEY} has {item}; expected containerID and ifname");
            CniError::configuration(details)
        };
        attachment().ok_or_else(wrong)
    };
    items.iter().map(read).collect()
}
