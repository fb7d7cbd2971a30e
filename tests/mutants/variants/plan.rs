//! Mistakes in what is announced while a service proxy delivers packets.

use super::{Subject, Variant, variant};

pub(crate) const PLAN: Subject = Subject {
    folder: "crates/plan",
    package: "fairway-plan",
    is_story: false,
    rounds: &[&["tests::"]],
    seeds: "0",
    variants: VARIANTS,
};

const DATA_PATH: &str = "data_path.rs";
const DECISION: &str = "decision.rs";
const LAYER2: &str = "layer2.rs";
const PLANNER: &str = "planner.rs";

const VARIANTS: &[Variant] = &[
    variant(
        "data path: what is not in an answer with everything stays",
        DATA_PATH,
        "deliveries.entry(*address).or_default();",
        "let _ = address;",
    ),
    variant(
        "data path: a part takes back what was said of others",
        DATA_PATH,
        "services.entry(service.clone()).or_insert_with(|| before.clone());",
        "let _ = (&services, service, before);",
    ),
    variant(
        "data path: a Service that changed is not planned",
        DATA_PATH,
        "let differs = |it: &&ObjectName| before.get(*it) != now.get(*it);",
        "let differs = |it: &&ObjectName| before.get(*it).is_none() != now.get(*it).is_none();",
    ),
    variant(
        "data path: one Service without a server keeps the address from all others",
        DATA_PATH,
        "if all.any(|it| *it == Delivery::Delivered) {",
        "if all.all(|it| *it == Delivery::Delivered) {",
    ),
    variant(
        "data path: a Service without endpoints rules a member out",
        DATA_PATH,
        "Some(Delivery::Delivered | Delivery::NoEndpoint(_)) => None,",
        "Some(Delivery::NoEndpoint(why)) => Some(Obstacle::NotDelivered(why.clone())),\n            Some(Delivery::Delivered) => None,",
    ),
    variant(
        "data path: of a silent proxy new Services are answered for",
        DATA_PATH,
        "(!self.has_answered || self.is_silent)",
        "(!self.has_answered)",
    ),
    variant(
        "data path: what is obstructed is announced over BGP",
        DATA_PATH,
        "Some(Delivery::NoEndpoint(why) | Delivery::Obstructed(why)) => {",
        "Some(Delivery::Obstructed(_)) => None,\n            Some(Delivery::NoEndpoint(why)) => {",
    ),
    variant(
        "data path: one family keeps the other from being announced",
        DECISION,
        "Ok(_) if obstacle.is_some() => AddressAnnouncement {",
        "Ok(_) if !data_path.iter().all(|(_, it)| it.is_none()) => AddressAnnouncement {",
    ),
    variant(
        "data path: a Service of another proxy waits for ours",
        LAYER2,
        "self.data_path.filter(|_| !service.is_of_another_proxy())",
        "self.data_path.filter(|_| !service.is_of_another_proxy() || true)",
    ),
    variant(
        "data path: a part of what is delivered is a condition for the rest",
        PLANNER,
        "if matches!(update, DeliveryUpdate::All(_) | DeliveryUpdate::Awaited) {",
        "if matches!(update, DeliveryUpdate::All(_) | DeliveryUpdate::Some(_) | DeliveryUpdate::Awaited) {",
    ),
    variant(
        "data path: another proxy does not end the condition",
        PLANNER,
        "self.is_outdated |= self.data_path.take().is_some();",
        "self.is_outdated |= self.data_path.is_some();",
    ),
];
