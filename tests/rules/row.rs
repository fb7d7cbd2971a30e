//! One rule: manifests, and their result.

use fairway_allocator as allocator;
use fairway_model::{ClusterIndex, Node, Object, ObjectKey};
use fairway_plan::{self as plan, PlanOptions};
use fairway_resources::{BackendKind, Catalog, Finding, Resolution};

/// A configuration without findings. Most rules are shown by an addition to it.
const GOOD: &str = include_str!("../good.yaml");

/// The sources of rules, beside RFCs.
pub(crate) const KUBERNETES: &str = "Kubernetes";
pub(crate) const METALLB: &str = "MetalLB";
pub(crate) const OURS: &str = "ours";

/// A valid peer, without enableGracefulRestart.
pub(crate) const PEER: &str = "myASN: 64500, peerASN: 64502, peerAddress: 192.0.2.9";

/// The result of the manifests.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Verdict {
    /// There is no finding, and the Service `web`, if there is one, is announced.
    Accepted,
    /// It is in force, with a warning.
    Warned(&'static str),
    /// The object is rejected, or its earlier version stays.
    Refused(&'static str),
    /// It is in force, and the plan does not announce the Service `web`.
    Silent(&'static str),
}

/// A rule and the manifests that show it.
pub(crate) struct Row {
    pub(crate) id: &'static str,
    pub(crate) source: &'static str,
    pub(crate) rule: &'static str,
    before: Option<String>,
    manifests: String,
    backend: BackendKind,
    is_alone: bool,
    /// Whether only `fairway check` reports it.
    by_check: bool,
    pub(crate) verdict: Verdict,
}

/// A rule that `manifests` show, with its source and its title.
pub(crate) fn row(
    id: &'static str,
    source: &'static str,
    rule: &'static str,
    manifests: impl Into<String>,
) -> Row {
    Row {
        id,
        source,
        rule,
        before: None,
        manifests: manifests.into(),
        backend: BackendKind::Native,
        is_alone: false,
        by_check: false,
        verdict: Verdict::Accepted,
    }
}

impl Row {
    /// Rejected, with these words in the message.
    pub(crate) fn refused(self, words: &'static str) -> Self {
        Self { verdict: Verdict::Refused(words), ..self }
    }

    /// In force, with a warning that has these words.
    pub(crate) fn warned(self, words: &'static str) -> Self {
        Self { verdict: Verdict::Warned(words), ..self }
    }

    /// In force, and the Service `web` is not announced for a reason with these words.
    pub(crate) fn silent(self, words: &'static str) -> Self {
        Self { verdict: Verdict::Silent(words), ..self }
    }

    /// The manifests are an edit of these.
    pub(crate) fn after(self, before: impl Into<String>) -> Self {
        Self { before: Some(before.into()), ..self }
    }

    /// With FRR of this version, or of an unknown one.
    pub(crate) fn frr(self, version: Option<(u8, u8)>) -> Self {
        Self { backend: BackendKind::Frr { version }, ..self }
    }

    /// As the service proxy reads it.
    pub(crate) fn proxied(self) -> Self {
        Self { backend: BackendKind::Proxy, is_alone: true, ..self }
    }

    /// Without the good configuration.
    pub(crate) fn alone(self) -> Self {
        Self { is_alone: true, ..self }
    }

    /// Reported by the command only: the daemon cannot know it or need not.
    pub(crate) fn by_check(self) -> Self {
        Self { by_check: true, ..self }
    }

    /// The values of `--bgp` and `--frr-version`.
    pub(crate) fn backend(&self) -> String {
        match self.backend {
            BackendKind::Native | BackendKind::Proxy => String::new(),
            BackendKind::Frr { version: None } => "frr".to_owned(),
            BackendKind::Frr { version: Some((major, minor)) } => format!("frr {major}.{minor}"),
        }
    }

    /// Checks the result; returns the message.
    pub(crate) fn message(&self) -> Result<String, String> {
        let (earlier, resolution) = self.resolve();
        self.check_nothing_is_lost(&earlier, &resolution)?;
        let findings = if self.by_check { said_by_check(&self.text()) } else { said(&resolution) };
        let faults = resolution.findings.iter().filter(|finding| finding.is_fault()).count();
        let wrong = || format!("{}: {:?}: {findings:#?}", self.id, self.verdict);
        let with = |words: &str| findings.iter().find(|it| it.contains(words)).cloned();
        match self.verdict {
            Verdict::Accepted if findings.is_empty() => match reason(resolution) {
                None => Ok(String::new()),
                Some(reason) => Err(format!("{}: {reason}", self.id)),
            },
            Verdict::Refused(words) if faults == 1 => {
                let fault = resolution.findings.iter().find(|finding| finding.is_fault());
                fault.map(without_place).filter(|it| it.contains(words)).ok_or_else(wrong)
            }
            Verdict::Warned(words) if faults == 0 => with(words).ok_or_else(wrong),
            Verdict::Silent(words) if faults == 0 => {
                let reason = reason(resolution);
                let problem = || format!("{}: {words}: {reason:?}", self.id);
                reason.clone().filter(|it| it.contains(words)).ok_or_else(problem)
            }
            _ => Err(wrong()),
        }
    }

    fn text(&self) -> String {
        if self.is_alone {
            self.manifests.clone()
        } else {
            format!("{GOOD}---\n{}", self.manifests)
        }
    }

    /// What is in force before, and in the end.
    fn resolve(&self) -> (Resolution, Resolution) {
        let mut catalog = Catalog::for_backend(self.backend);
        if !self.is_alone {
            catalog.file_read("good.yaml", GOOD);
            catalog.resolve();
        }
        if let Some(before) = &self.before {
            read(&mut catalog, before);
        }
        let earlier = catalog.resolve();
        read(&mut catalog, &self.manifests);
        (earlier, catalog.resolve())
    }

    /// An invalid edit removes no object that was in force.
    fn check_nothing_is_lost(&self, before: &Resolution, after: &Resolution) -> Result<(), String> {
        if let Some(fault) = before.findings.iter().find(|finding| finding.is_fault()) {
            return Err(format!("{}: before the edit: {fault}", self.id));
        }
        let keys =
            |it: &Resolution| -> Vec<ObjectKey> { it.objects.iter().map(Object::key).collect() };
        let after = keys(after);
        match keys(before).into_iter().find(|key| !after.contains(key)) {
            Some(key) => Err(format!("{}: {key} is lost", self.id)),
            None => Ok(()),
        }
    }
}

/// Each document is a file of its own, so that an edit of one does not affect the next.
fn read(catalog: &mut Catalog, manifests: &str) {
    assert!(manifests.split("---\n").count() <= MANIFESTS_MAX);
    for position in 0..MANIFESTS_MAX {
        let file = format!("{position}.yaml");
        match manifests.split("---\n").nth(position) {
            Some(text) => catalog.file_read(&file, text),
            None => catalog.file_gone(&file),
        }
    }
}

/// The most documents that a rule needs.
const MANIFESTS_MAX: usize = 8;

fn said(resolution: &Resolution) -> Vec<String> {
    resolution.findings.iter().map(without_place).collect()
}

fn without_place(finding: &Finding) -> String {
    let object = finding.object.as_ref().map(|it| match it.name.as_str() {
        "" => it.kind.clone(),
        name => format!("{}/{name}", it.kind),
    });
    let parts = [object, finding.field.clone(), Some(finding.message.clone())];
    parts.into_iter().flatten().collect::<Vec<_>>().join(": ")
}

/// The output of the command for one file.
fn said_by_check(text: &str) -> Vec<String> {
    let folder = std::env::temp_dir().join(format!("fairway-rules-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let file = folder.join("manifests.yaml");
    std::fs::write(&file, text).unwrap();
    let fairway = env!("CARGO_BIN_EXE_fairway");
    let output = std::process::Command::new(fairway).arg("check").arg(&file).output().unwrap();
    std::fs::remove_dir_all(&folder).unwrap();
    let place = format!("{}:", file.display());
    let lines = String::from_utf8(output.stdout).unwrap();
    let without_place = |line: &str| {
        let rest = line.strip_prefix(&place).unwrap_or(line);
        rest.split_once(": ").map_or(rest, |(_, rest)| rest).replacen("warning: ", "", 1)
    };
    lines.lines().map(without_place).collect()
}

/// Why the Service `web` is not announced on a node without a Node object.
fn reason(resolution: Resolution) -> Option<String> {
    let mut index = ClusterIndex::default();
    index.reset(resolution.objects);
    let outcomes = allocator::from_scratch(&index, None);
    let node = Node::assumed("node", Vec::new());
    let plan = plan::for_node(&index, &outcomes, &node, PlanOptions::default());
    let (_, web) = plan.services.iter().find(|(name, _)| name.name == "web")?;
    let of_addresses = web.addresses.iter().filter_map(|it| it.reason.as_ref());
    let prefixes = web.addresses.iter().flat_map(|it| &it.prefixes);
    let of_prefixes = prefixes.filter_map(|it| it.reason.as_ref());
    web.reason.iter().chain(of_addresses).chain(of_prefixes).map(ToString::to_string).next()
}

/// A document.
pub(crate) fn manifest(version: &str, kind: &str, name: &str, rest: &str) -> String {
    format!("apiVersion: {version}\nkind: {kind}\nmetadata: {{name: {name}}}\n{rest}\n")
}

fn spec(version: &str, kind: &str, name: &str, spec: &str) -> String {
    manifest(version, kind, name, &format!("spec: {{{spec}}}"))
}

pub(crate) fn peer(name: &str, fields: &str) -> String {
    spec("metallb.io/v1beta2", "BGPPeer", name, fields)
}

pub(crate) fn profile(name: &str, fields: &str) -> String {
    spec("metallb.io/v1beta1", "BFDProfile", name, fields)
}

pub(crate) fn pool(name: &str, fields: &str) -> String {
    spec("metallb.io/v1beta1", "IPAddressPool", name, fields)
}

pub(crate) fn advertisement(name: &str, fields: &str) -> String {
    spec("metallb.io/v1beta1", "BGPAdvertisement", name, fields)
}

pub(crate) fn layer2(name: &str, fields: &str) -> String {
    spec("metallb.io/v1beta1", "L2Advertisement", name, fields)
}

pub(crate) fn community(name: &str, alias: &str, value: &str) -> String {
    let fields = format!("communities: [{{name: {alias}, value: '{value}'}}]");
    spec("metallb.io/v1beta1", "Community", name, &fields)
}

pub(crate) fn service(name: &str, fields: &str) -> String {
    spec("v1", "Service", name, &format!("type: LoadBalancer, ports: [{{port: 80}}]{fields}"))
}

pub(crate) fn labelled(kind: &str, name: &str, label: &str) -> String {
    format!("apiVersion: v1\nkind: {kind}\nmetadata: {{name: {name}, labels: {{{label}}}}}\n")
}

/// Several documents.
pub(crate) fn all(documents: &[&str]) -> String {
    documents.join("---\n")
}
