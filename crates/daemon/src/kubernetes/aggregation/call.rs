//! What a request to the node API asks for.
//!
//! Pure. Resources are what RBAC grants; each stands for words of `fairway show` or `explain`, or for a drain. Knows no
//! user and no speaker.

use fairway_show::ShowCommand;
use fairway_show::language::{Question, Vocabulary, understand};
use http::Method;
use serde_json::{Value, json};

use super::{GROUP, VERSION};

/// Words of a request, and nodes that it names: a command has a dozen, and a cluster some thousand nodes.
const WORDS_MAX: usize = 16;
const NODES_MAX: usize = 10_000;

/// A resource that is read, and what it stands for.
struct Readable {
    resource: &'static str,
    kind: &'static str,
    words: &'static [&'static str],
    /// Which commands may come of further words.
    permits: fn(&ShowCommand) -> bool,
}

/// All that is read. A right to one is none to another, so that no words lead from one to the other.
const READABLE: [Readable; 6] = [
    Readable {
        resource: "peers",
        kind: "Peer",
        words: &["show", "bgp", "summary"],
        permits: |it| matches!(it, ShowCommand::BgpSummary { .. }),
    },
    Readable {
        resource: "routes",
        kind: "Route",
        words: &["show", "bgp"],
        permits: |it| {
            matches!(
                it,
                ShowCommand::BgpUnicast { .. }
                    | ShowCommand::BgpUnicastDetail { .. }
                    | ShowCommand::BgpFiltered { .. }
                    | ShowCommand::BgpStatistics { .. }
            )
        },
    },
    Readable {
        resource: "services",
        kind: "Service",
        words: &["show", "services"],
        permits: |it| matches!(it, ShowCommand::Services),
    },
    Readable {
        resource: "pools",
        kind: "Pool",
        words: &["show", "pools"],
        permits: |it| matches!(it, ShowCommand::Pools),
    },
    Readable {
        resource: "explanations",
        kind: "Explanation",
        words: &["explain"],
        permits: |it| matches!(it, ShowCommand::Explain(_)),
    },
    Readable {
        resource: "faults",
        kind: "Fault",
        words: &["show", "config"],
        permits: |it| matches!(it, ShowCommand::Config),
    },
];

const DRAINS: &str = "drains";

/// A request.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Call {
    /// Which versions and resources there are.
    Discovery(Value),
    /// Something of the nodes.
    Asked(Asked),
}

/// A request for which a right is needed.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Asked {
    pub(super) resource: &'static str,
    /// As RBAC has it.
    pub(super) verb: &'static str,
    pub(super) what: What,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum What {
    /// The answer of each node, or of each of these, to these words.
    Read { words: Vec<String>, nodes: Vec<String>, is_text: bool },
    /// The body says which node is to be drained.
    Drain,
    /// The progress of a drain.
    LookAtDrain(String),
    /// This node comes back into service.
    EndDrain(String),
}

/// Why a request is refused, as the API server says it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Refusal {
    pub(super) code: u16,
    pub(super) reason: &'static str,
    pub(super) message: String,
}

impl Refusal {
    pub(super) fn bad_request(message: impl Into<String>) -> Self {
        Self { code: 400, reason: "BadRequest", message: message.into() }
    }

    pub(super) fn forbidden(message: impl Into<String>) -> Self {
        Self { code: 403, reason: "Forbidden", message: message.into() }
    }

    pub(super) fn not_found(message: impl Into<String>) -> Self {
        Self { code: 404, reason: "NotFound", message: message.into() }
    }

    pub(super) fn conflict(message: impl Into<String>) -> Self {
        Self { code: 409, reason: "Conflict", message: message.into() }
    }

    pub(super) fn too_many(message: impl Into<String>) -> Self {
        Self { code: 429, reason: "TooManyRequests", message: message.into() }
    }

    pub(super) fn unavailable(message: impl Into<String>) -> Self {
        Self { code: 503, reason: "ServiceUnavailable", message: message.into() }
    }

    /// As the API server writes it.
    pub(super) fn status(&self) -> Value {
        json!({
            "apiVersion": "v1", "kind": "Status", "metadata": {}, "status": "Failure",
            "message": self.message, "reason": self.reason, "code": self.code,
        })
    }
}

impl Call {
    /// The request with this path and this query.
    pub(super) fn of(method: &Method, path: &str, query: &str) -> Result<Self, Refusal> {
        let segments: Vec<&str> = path.trim_matches('/').split('/').collect();
        match (method, &*segments) {
            (&Method::GET, ["apis"]) => Ok(Self::Discovery(groups())),
            (&Method::GET, ["apis", group]) if *group == GROUP => Ok(Self::Discovery(this_group())),
            (&Method::GET, ["openapi", "v2"]) => Ok(Self::Discovery(open_api_2())),
            (&Method::GET, ["openapi", "v3"]) => Ok(Self::Discovery(json!({ "paths": {} }))),
            (_, ["apis", group, version, rest @ ..]) if (*group, *version) == (GROUP, VERSION) => {
                match (method, rest) {
                    (&Method::GET, []) => Ok(Self::Discovery(resources())),
                    _ => Asked::of(method, rest, query).map(Self::Asked),
                }
            }
            _ => Err(Refusal::not_found(format!("only /apis/{GROUP}/{VERSION} is served here"))),
        }
    }
}

impl Asked {
    /// The node whose drain it is, as far as the path says it.
    pub(super) fn node(&self) -> Option<&str> {
        match &self.what {
            What::LookAtDrain(node) | What::EndDrain(node) => Some(node),
            What::Read { .. } | What::Drain => None,
        }
    }

    fn of(method: &Method, rest: &[&str], query: &str) -> Result<Self, Refusal> {
        let is_dry = form_urlencoded::parse(query.as_bytes()).any(|(key, _)| key == "dryRun");
        if is_dry && rest.first() == Some(&DRAINS) {
            return Err(Refusal::bad_request("dryRun is not supported: a drain is an order"));
        }
        let drains = |verb, what| Ok(Self { resource: DRAINS, verb, what });
        match (method, rest) {
            (&Method::POST, [DRAINS]) => drains("create", What::Drain),
            (&Method::GET, [DRAINS, node]) => drains("get", What::LookAtDrain((*node).to_owned())),
            (&Method::DELETE, [DRAINS, node]) => {
                drains("delete", What::EndDrain((*node).to_owned()))
            }
            (&Method::GET, [name]) => {
                let found = READABLE.iter().find(|it| it.resource == *name);
                let readable = found.ok_or_else(|| unknown(name))?;
                let what = readable.asked(query)?;
                Ok(Self { resource: readable.resource, verb: "list", what })
            }
            (_, [name, ..]) if *name == DRAINS || is_readable(name) => Err(Refusal {
                code: 405,
                reason: "MethodNotAllowed",
                message: format!("{name} cannot be asked for by {method} at this path"),
            }),
            (_, [name, ..]) => Err(unknown(name)),
            (_, []) => Err(Refusal::not_found("name a resource".to_owned())),
        }
    }
}

impl Readable {
    /// The words and the nodes of a query.
    fn asked(&self, query: &str) -> Result<What, Refusal> {
        let mut words: Vec<String> = self.words.iter().map(|it| (*it).to_owned()).collect();
        let (mut nodes, mut is_text) = (Vec::new(), false);
        for (key, value) in form_urlencoded::parse(query.as_bytes()) {
            match (&*key, &*value) {
                ("word", word) => words.push(word.to_owned()),
                ("node", node) => nodes.push(node.to_owned()),
                ("output", "text") => is_text = true,
                ("output", "json") => is_text = false,
                ("output", other) => {
                    let message = format!("output: {other:?} is unknown; allowed: json, text");
                    return Err(Refusal::bad_request(message));
                }
                // What kubectl adds to any list has no meaning here.
                _ => {}
            }
        }
        if words.len() > WORDS_MAX || nodes.len() > NODES_MAX {
            let message = format!("at most {WORDS_MAX} words and {NODES_MAX} nodes may be given");
            return Err(Refusal::bad_request(message));
        }
        if !is_text {
            words.push("json".to_owned());
        }
        let line: Vec<&str> = words.iter().map(String::as_str).collect();
        match understand(Vocabulary::CommandLine, &line) {
            Ok(Question::Show(query)) if (self.permits)(&query.what) => {}
            _ => {
                let (words, resource) = (words.join(" "), self.resource);
                let message = format!("`{words}` is no question about {resource}");
                return Err(Refusal::bad_request(message));
            }
        }
        Ok(What::Read { words, nodes, is_text })
    }
}

fn is_readable(name: &str) -> bool {
    READABLE.iter().any(|it| it.resource == name)
}

fn unknown(name: &str) -> Refusal {
    let known: Vec<&str> = READABLE.iter().map(|it| it.resource).chain([DRAINS]).collect();
    let message = format!("there is no resource {name:?} here; there are: {}", known.join(", "));
    Refusal::not_found(message)
}

fn groups() -> Value {
    json!({ "kind": "APIGroupList", "apiVersion": "v1", "groups": [this_group()] })
}

fn this_group() -> Value {
    let version = json!({ "groupVersion": format!("{GROUP}/{VERSION}"), "version": VERSION });
    json!({
        "kind": "APIGroup", "apiVersion": "v1", "name": GROUP,
        "versions": [version], "preferredVersion": version,
    })
}

fn resources() -> Value {
    let resource = |name: &str, kind: &str, verbs: &[&str]| {
        json!({
            "name": name, "singularName": kind.to_lowercase(), "namespaced": false,
            "kind": kind, "verbs": verbs,
        })
    };
    let readable = READABLE.iter().map(|it| resource(it.resource, it.kind, &["list"]));
    let drains = resource(DRAINS, "Drain", &["create", "delete", "get"]);
    let all: Vec<Value> = readable.chain([drains]).collect();
    json!({
        "kind": "APIResourceList", "apiVersion": "v1",
        "groupVersion": format!("{GROUP}/{VERSION}"), "resources": all,
    })
}

fn open_api_2() -> Value {
    json!({ "swagger": "2.0", "info": { "title": "Fairway", "version": VERSION }, "paths": {} })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(method: &Method, path: &str, query: &str) -> Result<Asked, Refusal> {
        match Call::of(method, &format!("/apis/{GROUP}/{VERSION}/{path}"), query)? {
            Call::Asked(asked) => Ok(asked),
            Call::Discovery(it) => panic!("{it}"),
        }
    }

    fn read(path: &str, query: &str) -> (Vec<String>, Vec<String>) {
        match asked(&Method::GET, path, query).unwrap().what {
            What::Read { words, nodes, .. } => (words, nodes),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_resource_stands_for_words() {
        let (words, nodes) = read("peers", "");
        assert_eq!(words, ["show", "bgp", "summary", "json"]);
        assert!(nodes.is_empty());
        let query = "word=ipv6&word=unicast&word=2001%3Adb8%3A%3A%2F32&node=a&node=b&timeout=5s";
        let (words, nodes) = read("routes", query);
        assert_eq!(words, ["show", "bgp", "ipv6", "unicast", "2001:db8::/32", "json"]);
        assert_eq!(nodes, ["a", "b"]);
        let (words, _) = read("explanations", "word=peer&word=tor-1&output=text");
        assert_eq!(words, ["explain", "peer", "tor-1"]);
    }

    #[test]
    fn each_change_needs_a_right_of_its_own() {
        let right = |method: &Method, path: &str| {
            let it = asked(method, path, "").unwrap();
            (it.resource, it.verb)
        };
        assert_eq!(right(&Method::GET, "pools"), ("pools", "list"));
        assert_eq!(right(&Method::POST, "drains"), ("drains", "create"));
        assert_eq!(right(&Method::GET, "drains/a"), ("drains", "get"));
        assert_eq!(right(&Method::DELETE, "drains/a"), ("drains", "delete"));
    }

    #[test]
    fn what_is_not_there_says_what_is() {
        let why = |method: &Method, path: &str, query: &str| {
            let refusal = asked(method, path, query).unwrap_err();
            (refusal.code, refusal.message)
        };
        let (code, message) = why(&Method::GET, "nodes", "");
        assert_eq!(code, 404);
        assert!(message.contains("peers, routes, services, pools, explanations, faults, drains"));
        assert_eq!(why(&Method::POST, "peers", "").0, 405);
        assert_eq!(why(&Method::GET, "peers/a", "").0, 405);
        assert_eq!(why(&Method::GET, "peers", "output=yaml").0, 400);
        assert_eq!(why(&Method::POST, "drains", "dryRun=All").0, 400);
        assert_eq!(why(&Method::DELETE, "drains/a", "dryRun=All").0, 400);
        // Words that lead to another resource.
        for query in ["word=summary", "word=neighbors", "word=router", "word=nonsense"] {
            assert_eq!(why(&Method::GET, "routes", query).0, 400, "{query}");
        }
        assert_eq!(why(&Method::GET, "pools", "word=json").0, 400);
        let many = "word=a&".repeat(WORDS_MAX);
        assert_eq!(why(&Method::GET, "peers", &many).0, 400);
        let elsewhere = Call::of(&Method::GET, "/api/v1/secrets", "").unwrap_err();
        assert_eq!(elsewhere.code, 404);
    }

    #[test]
    fn discovery_names_the_resources() {
        let of = |path: &str| match Call::of(&Method::GET, path, "").unwrap() {
            Call::Discovery(it) => it,
            Call::Asked(it) => panic!("{it:?}"),
        };
        let list = of("/apis/nodes.fairway.dev/v1alpha1");
        assert_eq!(list["resources"].as_array().unwrap().len(), READABLE.len() + 1);
        assert_eq!(of("/apis")["groups"][0]["name"], GROUP);
        assert_eq!(of("/apis/nodes.fairway.dev")["name"], GROUP);
    }
}
