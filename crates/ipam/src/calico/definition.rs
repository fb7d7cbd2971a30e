//! The CustomResourceDefinitions of Calico's objects that addresses are given by, for clusters without Calico.
//!
//! They have the fields that are read and written here, with their types and bounds. What else Calico's nodes write stays in
//! the objects. A cluster that has Calico's own definitions keeps those.

use serde_json::{Map, Value, json};

const GROUP: &str = "crd.projectcalico.org";
const VERSION: &str = "v1";

/// A kind, its plural, what it is, and its fields.
struct Kind {
    kind: &'static str,
    plural: &'static str,
    description: &'static str,
    fields: fn() -> Value,
    required: &'static [&'static str],
    /// Columns of `kubectl get`: heading, type and path.
    columns: &'static [(&'static str, &'static str, &'static str)],
}

const KINDS: [Kind; 6] = [
    Kind {
        kind: "IPPool",
        plural: "ippools",
        description: "Addresses for Pods, cut into blocks that nodes own.",
        fields: pool,
        required: &["cidr"],
        columns: &[
            ("CIDR", "string", ".spec.cidr"),
            ("Block Size", "integer", ".spec.blockSize"),
            ("Disabled", "boolean", ".spec.disabled"),
        ],
    },
    Kind {
        kind: "IPAMBlock",
        plural: "ipamblocks",
        description: "A block of addresses, and who has which of them. Written by nodes.",
        fields: block,
        required: &["cidr", "allocations", "unallocated", "attributes", "strictAffinity"],
        columns: &[("CIDR", "string", ".spec.cidr"), ("Owner", "string", ".spec.affinity")],
    },
    Kind {
        kind: "BlockAffinity",
        plural: "blockaffinities",
        description: "Which node owns a block. Written by nodes.",
        fields: affinity,
        required: &["cidr", "node", "state", "deleted"],
        columns: &[
            ("Node", "string", ".spec.node"),
            ("CIDR", "string", ".spec.cidr"),
            ("State", "string", ".spec.state"),
        ],
    },
    Kind {
        kind: "IPAMHandle",
        plural: "ipamhandles",
        description: "In which blocks a container has addresses. Written by nodes.",
        fields: handle,
        required: &["handleID", "block"],
        columns: &[],
    },
    Kind {
        kind: "IPAMConfig",
        plural: "ipamconfigs",
        description: "What holds for all blocks; the one named `default` counts.",
        fields: config,
        required: &[],
        columns: &[
            ("Strict Affinity", "boolean", ".spec.strictAffinity"),
            ("Cooldown", "integer", ".spec.ipCooldownSeconds"),
        ],
    },
    Kind {
        kind: "IPReservation",
        plural: "ipreservations",
        description: "Addresses that are given to no Pod that does not ask for them.",
        fields: reservation,
        required: &[],
        columns: &[("CIDRs", "string", ".spec.reservedCIDRs")],
    },
];

fn text(description: &str) -> Value {
    json!({"type": "string", "description": description})
}

fn flag(description: &str) -> Value {
    json!({"type": "boolean", "description": description})
}

fn choice(description: &str, values: &[&str]) -> Value {
    json!({"type": "string", "description": description, "enum": values})
}

fn fixed(mut field: Value, name: &str) -> Value {
    if let Some(fields) = field.as_object_mut() {
        let message = format!("{name} cannot be changed: make another pool");
        let rule = json!([{"rule": "self == oldSelf", "message": message}]);
        fields.insert("x-kubernetes-validations".to_owned(), rule);
    }
    field
}

fn pool() -> Value {
    let selector = |description: &str| json!({"type": "string", "description": description, "maxLength": 1024});
    let size = json!({
        "type": "integer", "minimum": 0, "maximum": 128,
        "description": "Length of the prefix of a block: 20 to 32 for IPv4, 26 by default; 116 to 128 for IPv6, 122 by default.",
    });
    json!({
        "cidr": fixed(text("The prefix."), "cidr"),
        "blockSize": fixed(size, "blockSize"),
        "disabled": flag("No further addresses are given; those that are stay."),
        "natOutgoing": flag("Packets to destinations in no pool leave with an address of the node."),
        "disableBGPExport": flag("Nothing of the pool is announced."),
        "ipipMode": text("Never: Fairway does not encapsulate, and refuses other values."),
        "vxlanMode": text("Never: Fairway does not encapsulate, and refuses other values."),
        "nodeSelector": selector("Which nodes the pool is for; all() by default."),
        "namespaceSelector": selector("Which namespaces the pool is for; empty for all."),
        "allowedUses": {
            "type": "array",
            "description": "What addresses are for; Workload and Tunnel by default.",
            "items": {"type": "string", "enum": ["Workload", "Tunnel", "LoadBalancer"]},
        },
        "assignmentMode": choice("Manual: only for Pods that name the pool.", &["Automatic", "Manual"]),
    })
}

fn open_object(description: &str) -> Value {
    json!({"type": "object", "description": description, "x-kubernetes-preserve-unknown-fields": true})
}

fn block() -> Value {
    let numbers = |description: &str| {
        let items = json!({"type": "integer", "nullable": true});
        json!({"type": "array", "description": description, "items": items})
    };
    json!({
        "cidr": text("The prefix."),
        "affinity": json!({"type": "string", "nullable": true, "description": "host:NODE or virtual:NAME; without it, nobody owns it."}),
        "affinityClaimTime": json!({"type": "string", "nullable": true, "description": "When its owner got it, RFC 3339."}),
        "allocations": numbers("For each address, in order, null or the number of an item of attributes."),
        "unallocated": numbers("Numbers of the addresses that are free, the next one first."),
        "attributes": {
            "type": "array",
            "description": "Whose addresses are.",
            "items": open_object("handle_id, secondary, alternateOwnerAttrs, releasedAt."),
        },
        "sequenceNumber": {"type": "integer", "format": "int64", "description": "Rises with each write."},
        "sequenceNumberForAllocation": {
            "type": "object",
            "description": "For the number of an address, the sequence number before it was given.",
            "additionalProperties": {"type": "integer", "format": "int64"},
        },
        "deleted": flag("It is about to be deleted, and is none."),
        "strictAffinity": flag("Unused."),
    })
}

fn affinity() -> Value {
    json!({
        "cidr": text("The block."),
        "node": text("Its owner."),
        "type": text("host, which is the default, or virtual."),
        "state": text("pending, confirmed or pendingDeletion."),
        "deleted": text("true: it is about to be deleted, and is none."),
    })
}

fn handle() -> Value {
    json!({
        "handleID": text("The network and the container."),
        "block": {
            "type": "object",
            "description": "How many addresses it has in each block.",
            "additionalProperties": {"type": "integer"},
        },
        "deleted": flag("It is about to be deleted, and is none."),
    })
}

fn config() -> Value {
    json!({
        "strictAffinity": flag("No node takes addresses of another's block."),
        "autoAllocateBlocks": flag("Nodes take blocks when they need them; true by default."),
        "maxBlocksPerHost": {
            "type": "integer", "minimum": 0,
            "description": "How many blocks of a family a node may own; 0, the default, is 20.",
        },
        "ipCooldownSeconds": {
            "type": "integer", "minimum": 0, "maximum": 1200,
            "description": "How long an address rests before it is given again, in seconds; 0 by default.",
        },
    })
}

fn reservation() -> Value {
    json!({
        "reservedCIDRs": {
            "type": "array", "description": "The prefixes.", "items": {"type": "string"},
        },
    })
}

/// The definitions, by `GROUP_PLURAL`.
pub fn definitions() -> Vec<(String, Value)> {
    KINDS.iter().map(|it| (format!("{GROUP}_{}", it.plural), definition(it))).collect()
}

fn definition(it: &Kind) -> Value {
    let Kind { kind, plural, description, fields, required, columns } = it;
    let mut spec = json!({
        "type": "object",
        "properties": fields(),
        "x-kubernetes-preserve-unknown-fields": true,
    });
    if let Some(schema) = spec.as_object_mut().filter(|_| !required.is_empty()) {
        schema.insert("required".to_owned(), json!(required));
    }
    let columns: Vec<Value> = columns
        .iter()
        .map(|(name, kind, path)| json!({"name": name, "type": kind, "jsonPath": path}))
        .collect();
    let mut version = Map::from_iter([
        ("name".to_owned(), json!(VERSION)),
        ("served".to_owned(), json!(true)),
        ("storage".to_owned(), json!(true)),
        (
            "schema".to_owned(),
            json!({"openAPIV3Schema": {
                "type": "object",
                "description": description,
                "properties": {
                    "apiVersion": {"type": "string"},
                    "kind": {"type": "string"},
                    "metadata": {"type": "object"},
                    "spec": spec,
                },
            }}),
        ),
    ]);
    if !columns.is_empty() {
        version.insert("additionalPrinterColumns".to_owned(), json!(columns));
    }
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.{GROUP}")},
        "spec": {
            "group": GROUP,
            "names": {
                "kind": kind,
                "listKind": format!("{kind}List"),
                "plural": plural,
                "singular": kind.to_lowercase(),
            },
            "scope": "Cluster",
            "versions": [version],
        },
    })
}
