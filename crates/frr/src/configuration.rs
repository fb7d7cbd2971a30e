//! The lines of an FRR configuration text, each with the context that it is in.
//!
//! Reads what we render, what operators write, and what daemons show as their running configuration. Lines
//! are normalised, so that two texts can be compared. Knows neither which lines are ours nor what they do.
//! Called by [`crate::difference`] and [`crate::application`].

use std::net::IpAddr;
use std::sync::Arc;

use ipnet::IpNet;

/// Maximum depth of nested contexts: FRR has three. Anything deeper counts as part of the innermost.
const DEPTH_MAX: usize = 6;
/// Maximum number of lines that are read: a rendered configuration has a few for each route.
const LINES_MAX: usize = 2_000_000;
/// Words after which the rest of the line is free text of the operator and stays unchanged.
const FREE_TEXT: &[&str] = &["description", "password", "message"];

/// The address family of lines that FRR accepts outside of one.
const FAMILY_OF_ROUTER: &str = "address-family ipv4 unicast";
/// Settings of a router that are those of an address family.
const OF_FAMILY: &[&str] = &[
    "network",
    "aggregate-address",
    "redistribute",
    "maximum-paths",
    "table-map",
    "distance",
    "bgp dampening",
];
/// The same of a neighbor.
const OF_NEIGHBOR_IN_FAMILY: &[&str] = &[
    "activate",
    "addpath-tx-all-paths",
    "addpath-tx-best-selected",
    "addpath-tx-bestpath-per-AS",
    "advertise-map",
    "allowas-in",
    "as-override",
    "attribute-unchanged",
    "capability orf",
    "default-originate",
    "disable-addpath-rx",
    "distribute-list",
    "filter-list",
    "maximum-prefix",
    "maximum-prefix-out",
    "next-hop-self",
    "nexthop-local",
    "prefix-list",
    "remove-private-AS",
    "route-map",
    "route-reflector-client",
    "route-server-client",
    "send-community",
    "soft-reconfiguration",
    "soo",
    "unsuppress-map",
    "weight",
];

/// The position of a line: the lines that open its contexts, outermost first. Empty at the top level.
pub type Context = Arc<[Arc<str>]>;

/// A line of configuration. A line that opens a context is a statement, too.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Statement {
    /// The context.
    pub context: Context,
    /// The normalised line.
    pub line: Arc<str>,
    /// The resource, from the comment above the line: `BGPPeer tor-a`.
    pub origin: Option<Arc<str>>,
}

impl Statement {
    /// Whether it is one of the operator's own lines, each of which is in force or not by itself.
    pub fn is_extra(&self) -> bool {
        is_extra(self.origin.as_ref())
    }
}

/// Whether lines of this origin are the operator's own.
pub(crate) fn is_extra(origin: Option<&Arc<str>>) -> bool {
    origin.is_some_and(|it| it.starts_with("ConfigMap "))
}

impl std::fmt::Debug for Statement {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for line in self.context.iter() {
            write!(f, "{line} / ")?;
        }
        f.write_str(&without_secrets(&self.line))
    }
}

/// A configuration text.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Configuration {
    /// In the order of the text.
    pub statements: Vec<Statement>,
}

impl Configuration {
    /// Parses a text. It never fails: the meaning of a line is up to FRR.
    ///
    /// A comment with words, `! BGPPeer tor-a`, is the origin of the lines below it, until the next. Lines of IPv4 that
    /// are in a router are read as FRR shows them, in the address family.
    pub fn parse(text: &str) -> Self {
        Layout::parse(text).configuration
    }
}

/// The statements of a text as [`Configuration::parse`] reads them, each with the number of its line, from 1. An address
/// family that is only implied has none, and is left out.
pub fn numbered(text: &str) -> impl Iterator<Item = (usize, Statement)> {
    let Layout { configuration, numbers, .. } = Layout::parse(text);
    let statements = numbers.into_iter().zip(configuration.statements);
    statements.filter_map(|(number, statement)| Some((number?.saturating_add(1), statement)))
}

/// A configuration, and where its statements are in the text.
#[derive(Debug)]
pub(crate) struct Layout {
    pub(crate) configuration: Configuration,
    /// The number of the line of each statement, from 0; none for an address family that is only implied.
    pub(crate) numbers: Vec<Option<usize>>,
    /// Lines that close a context, with the line that opened it.
    #[cfg_attr(not(feature = "io"), allow(dead_code, reason = "for files of FRR"))]
    pub(crate) exits: Vec<(usize, usize)>,
}

impl Layout {
    /// Parses a text, as [`Configuration::parse`] does.
    pub(crate) fn parse(text: &str) -> Self {
        let mut reader = Reader::default();
        for (number, line) in text.lines().take(LINES_MAX).enumerate() {
            reader.number = number;
            reader.read(line);
        }
        let Reader { statements, numbers, exits, .. } = reader;
        Self { configuration: Configuration { statements }, numbers, exits }
    }
}

/// The line with its password masked, for messages.
pub fn without_secrets(line: &str) -> String {
    let marks = [
        " password ",
        "key-string ",
        " md5 ",
        "authentication-key ",
        " authentication ",
        "snmp-server community ",
        "passphrase ",
    ];
    let begins = marks.iter().filter_map(|it| Some(line.find(it)?.saturating_add(it.len())));
    match begins.min().and_then(|it| line.get(..it)) {
        Some(before) => format!("{before}..."),
        None => line.to_owned(),
    }
}

/// A context that is open.
struct Open {
    line: Arc<str>,
    number: usize,
    indent: usize,
    /// Its lines are indented deeper than itself; unknown before the first line.
    indents: Option<bool>,
}

impl Open {
    /// Whether a line with this indent is outside of the context.
    fn is_left_at(&self, indent: usize) -> bool {
        self.indents == Some(true) && indent <= self.indent
    }
}

#[derive(Default)]
struct Reader {
    /// The number of the line that is read.
    number: usize,
    statements: Vec<Statement>,
    numbers: Vec<Option<usize>>,
    exits: Vec<(usize, usize)>,
    open: Vec<Open>,
    /// The same as `open`, shared by the statements in the context.
    context: Option<Context>,
    origin: Option<Arc<str>>,
    /// The router in which an address family was opened because of a line outside of it.
    implied_in: Option<Arc<str>>,
}

impl Reader {
    fn read(&mut self, raw: &str) {
        let trimmed = raw.trim_start();
        let indent = raw.len().saturating_sub(trimmed.len());
        if let Some(comment) = trimmed.strip_prefix(['!', '#']) {
            let comment = comment.trim();
            if !comment.is_empty() {
                self.origin = Some(Arc::from(comment));
            }
            return;
        }
        let line = canonical(trimmed);
        if line.is_empty() || line.contains('\0') {
            return;
        }
        if let Some(innermost) = self.open.last_mut() {
            innermost.indents.get_or_insert(indent > innermost.indent);
        }
        if is_exit(&line) {
            self.exit(&line, indent);
            return;
        }
        while self.open.last().is_some_and(|open| open.is_left_at(indent)) {
            self.close();
        }
        while self.open.last().is_some_and(|open| !may_stand_in(&open.line, &line)) {
            self.close();
        }
        let mut context = self.context();
        let line: Arc<str> = Arc::from(line);
        if let [router] = &*context
            && router.starts_with("router bgp ")
            && is_of_family(&line)
        {
            let (router, family) = (router.clone(), Arc::from(FAMILY_OF_ROUTER));
            context = [router.clone(), Arc::clone(&family)].into();
            if self.implied_in.as_ref() != Some(&router) {
                self.implied_in = Some(router.clone());
                let origin = self.origin.clone();
                self.statements.push(Statement { context: [router].into(), line: family, origin });
                self.numbers.push(None);
            }
        }
        let opens = self.open.len() < DEPTH_MAX && leads_into_context(&context, &line);
        let origin = self.origin.clone();
        self.statements.push(Statement { context, line: line.clone(), origin });
        self.numbers.push(Some(self.number));
        if opens {
            self.open.push(Open { line, number: self.number, indent, indents: None });
            self.context = None;
        }
    }

    fn exit(&mut self, line: &str, indent: usize) {
        if line == "end" {
            self.open.clear();
            self.context = None;
            return;
        }
        // An `exit` of a context that we do not recognise must not close the surrounding one.
        let closes = |open: &Open| open.indents != Some(true) || indent <= open.indent;
        if let Some(open) = self.open.last().filter(|it| closes(it)) {
            self.exits.push((self.number, open.number));
            self.close();
        }
    }

    fn close(&mut self) {
        self.open.pop();
        self.context = None;
    }

    fn context(&mut self) -> Context {
        let open = &self.open;
        self.context.get_or_insert_with(|| open.iter().map(|it| it.line.clone()).collect()).clone()
    }
}

/// Whether FRR accepts a line in a router as well, and shows it in the address family.
fn is_of_family(line: &str) -> bool {
    let line = line.strip_prefix("no ").unwrap_or(line);
    let begins = |line: &str, all: &[&str]| {
        let rest = |it: &&str| line.strip_prefix(*it);
        all.iter().filter_map(rest).any(|rest| rest.is_empty() || rest.starts_with(' '))
    };
    match line.strip_prefix("neighbor ").and_then(|it| it.split_once(' ')) {
        Some((_, what)) => begins(what, OF_NEIGHBOR_IN_FAMILY),
        None => begins(line, OF_FAMILY),
    }
}

fn is_exit(line: &str) -> bool {
    matches!(line, "exit" | "end" | "quit") || line.starts_with("exit-")
}

/// The first words of a line, padded with empty ones.
fn words<const N: usize>(line: &str) -> [&str; N] {
    let mut words = line.split(' ');
    std::array::from_fn(|_| words.next().unwrap_or_default())
}

/// Whether `line` at this position opens a context.
pub fn leads_into_context(context: &[Arc<str>], line: &str) -> bool {
    let [first, second, third, fourth] = words(line);
    let Some(around) = context.last() else { return opens_at_top(line) };
    match words::<2>(around) {
        ["router", _] => match first {
            "address-family" | "vnc" => true,
            "segment-routing" => second == "srv6",
            "bmp" => second == "targets",
            _ => false,
        },
        ["bfd", ""] => matches!(first, "profile" | "peer"),
        ["key", _] => first == "key" && !second.is_empty(),
        ["interface", _] => first == "link-params",
        ["segment-routing", _] => matches!(first, "traffic-eng" | "srv6"),
        ["address-family", _] => (first, second, third, fourth) == ("vni", second, "", ""),
        _ => false,
    }
}

fn opens_at_top(line: &str) -> bool {
    let [first, second, third, fourth] = words(line);
    match first {
        "router" => !second.is_empty(),
        "route-map" => matches!(third, "permit" | "deny") && !fourth.is_empty(),
        "vrf" | "interface" | "nexthop-group" | "pbr-map" | "pseudowire" => !second.is_empty(),
        "key" => second == "chain",
        "line" => second == "vty",
        "mpls" => second == "ldp",
        "bfd" | "rpki" | "segment-routing" => second.is_empty(),
        _ => false,
    }
}

/// Whether `line` may be in the context that `around` opened, in text without indents: FRR, too, leaves a
/// context at a line that does not belong to it.
fn may_stand_in(around: &str, line: &str) -> bool {
    let [first, second] = words(line);
    let [place, _] = words(around);
    match first {
        "router" | "route-map" | "interface" | "vrf" | "nexthop-group" => false,
        "bfd" if second.is_empty() => false,
        "address-family" => place == "router",
        "profile" => place == "bfd",
        "hostname" | "log" | "frr" => false,
        "debug" => false,
        "ip" | "ipv6" => {
            !matches!(second, "prefix-list" | "access-list" | "nht")
                || (second != "nht" && place == "interface")
        }
        "bgp" => !matches!(
            second,
            "as-path" | "community-list" | "large-community-list" | "extcommunity-list"
        ),
        _ => true,
    }
}

/// The normalised line: single blanks, and addresses in canonical form.
fn canonical(line: &str) -> String {
    let mut text = String::with_capacity(line.len());
    let mut free = false;
    for word in line.split_ascii_whitespace() {
        if !text.is_empty() {
            text.push(' ');
        }
        match (!free).then(|| canonical_address(word)).flatten() {
            Some(address) => text.push_str(&address),
            None => text.push_str(word),
        }
        free |= FREE_TEXT.contains(&word);
    }
    text
}

fn canonical_address(word: &str) -> Option<String> {
    // IPv4 addresses have one form only.
    if !word.contains(':') {
        return None;
    }
    match word.contains('/') {
        true => word.parse::<IpNet>().ok().map(|it| it.to_string()),
        false => word.parse::<IpAddr>().ok().map(|it| it.to_string()),
    }
}

#[cfg(test)]
mod tests;
