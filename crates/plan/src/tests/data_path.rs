//! What is announced while the service proxy of the node is followed.

use fairway_model::{Deliveries, Delivery, DeliveryUpdate};

use super::*;

const ADDRESS: &str = "198.51.100.10";

/// One Service with one address, `Layer2Advertisement` or not.
fn cluster() -> Cluster {
    let mut cluster = Cluster::small();
    cluster.service(Service { requested_addresses: vec![ip(ADDRESS)], ..service("web") });
    cluster
}

fn said(service: &str, address: &str, delivery: Delivery) -> DeliveryUpdate {
    let of_address = BTreeMap::from([(name(service), delivery)]);
    DeliveryUpdate::Changed(BTreeMap::from([(ip(address), of_address)]))
}

fn obstructed(why: &str) -> Delivery {
    Delivery::Obstructed(why.to_owned())
}

struct Story {
    cluster: Cluster,
    planner: NodePlanner,
}

impl Story {
    fn of(cluster: Cluster) -> Self {
        let mut planner = NodePlanner::new(node("n1"), OPTIONS);
        planner.follow_data_path(DeliveryUpdate::Awaited);
        planner.update(&cluster.index, &cluster.outcomes(), &PlanChanges::everything());
        Self { cluster, planner }
    }

    /// The proxy says this: the routes that follow.
    fn hear(&mut self, update: DeliveryUpdate) -> Vec<String> {
        let services = self.planner.follow_data_path(update);
        let changes = PlanChanges { all: false, services };
        self.planner.update(&self.cluster.index, &self.cluster.outcomes(), &changes);
        routes(self.planner.plan())
    }

    fn why(&self) -> Vec<String> {
        let web = &self.planner.plan().services[&name("web")];
        web.reasons().map(ToString::to_string).collect()
    }
}

#[test]
fn an_address_is_announced_once_the_proxy_delivers_to_it_and_no_longer_than_that() {
    let mut story = Story::of(cluster());
    assert_eq!(routes(story.planner.plan()), [""; 0]);
    assert_eq!(
        story.why(),
        [
            "notDelivered: the service proxy of this node does not serve it, or not yet (fairway show proxy)"
        ]
    );
    let announced = ["198.51.100.10/32 > 192.0.2.1"];
    assert_eq!(story.hear(said("web", ADDRESS, Delivery::Delivered)), announced);
    assert_eq!(story.hear(said("web", ADDRESS, obstructed("adding it: no space"))), [""; 0]);
    assert_eq!(
        story.why(),
        [
            "notDelivered: the service proxy of this node does not deliver to it: adding it: no space (fairway show proxy)"
        ]
    );
    assert_eq!(story.hear(said("web", ADDRESS, Delivery::Delivered)), announced);
    assert_eq!(
        story.hear(DeliveryUpdate::All(Deliveries::new())),
        [""; 0],
        "of an answer with everything, what is not in it is gone"
    );
}

#[test]
fn one_family_without_a_data_path_leaves_the_other_one_alone() {
    let mut cluster = Cluster::empty();
    cluster.peer(Peer { dual_stack: true, ..peer("tor", "192.0.2.1") });
    cluster.pool(pool("a", &["198.51.100.0/24", "2001:db8::/120"]));
    cluster.advertisement(advertisement("all"));
    let requested_addresses = vec![ip(ADDRESS), ip("2001:db8::10")];
    let families = FamilyPolicy::RequireDual(V4);
    cluster.service(Service { requested_addresses, families, ..service("web") });
    let mut story = Story::of(cluster);
    story.hear(said("web", ADDRESS, Delivery::Delivered));
    let announced = story.hear(said("web", "2001:db8::10", obstructed("ip6: no table")));
    assert_eq!(announced, ["198.51.100.10/32 > 192.0.2.1"]);
    assert_eq!(story.why().len(), 1);
    story.hear(said("web", ADDRESS, obstructed("ip: no table")));
    let announced = story.hear(said("web", "2001:db8::10", Delivery::Delivered));
    assert_eq!(announced, ["2001:db8::10/128 > 192.0.2.1"]);
}

#[test]
fn of_two_services_with_one_address_the_delivered_one_is_announced() {
    let mut cluster = Cluster::small();
    for (called, port) in [("web", 80), ("mail", 25)] {
        cluster.service(Service {
            requested_addresses: vec![ip(ADDRESS)],
            sharing_key: Some("both".to_owned()),
            ports: vec![ServicePort { protocol: "TCP".to_owned(), port }],
            ..service(called)
        });
    }
    let mut story = Story::of(cluster);
    let deliveries: Deliveries = BTreeMap::from([(
        ip(ADDRESS),
        BTreeMap::from([
            (name("mail"), Delivery::Delivered),
            (name("web"), obstructed("another program has it")),
        ]),
    )]);
    let announced = story.hear(DeliveryUpdate::All(deliveries));
    assert_eq!(announced, ["198.51.100.10/32 > 192.0.2.1"]);
    assert_eq!(why(story.planner.plan(), "web"), ["notDelivered"]);
    assert_eq!(why(story.planner.plan(), "mail"), [""; 0]);
}

#[test]
fn reasons_of_the_service_come_before_those_of_its_data_path() {
    let mut cluster = cluster();
    cluster.slice(slice("web-1", "web", "!n1"));
    let mut story = Story::of(cluster);
    story.hear(said("web", ADDRESS, obstructed("virtual server has no endpoint")));
    assert_eq!(why(story.planner.plan(), "web"), ["noEndpoints"]);
}

#[test]
fn while_another_proxy_serves_the_node_there_is_no_condition() {
    let announced = ["198.51.100.10/32 > 192.0.2.1"];
    let mut story = Story::of(cluster());
    assert_eq!(story.hear(DeliveryUpdate::OfAnotherProxy), announced);
    assert_eq!(story.hear(DeliveryUpdate::All(Deliveries::new())), [""; 0]);
    assert_eq!(story.hear(DeliveryUpdate::OfAnotherProxy), announced);
    let mut other = Cluster::small();
    let label = "service.kubernetes.io/service-proxy-name=theirs";
    other.service(Service {
        requested_addresses: vec![ip(ADDRESS)],
        labels: labels(label),
        ..service("web")
    });
    assert_eq!(routes(Story::of(other).planner.plan()), announced, "a Service of another proxy");
}

#[test]
fn what_is_delivered_is_known_before_all_is() {
    let mut story = Story::of(cluster());
    let some = |service: &str| {
        let of_address = BTreeMap::from([(name(service), Delivery::Delivered)]);
        DeliveryUpdate::Some(BTreeMap::from([(ip(ADDRESS), of_address)]))
    };
    let announced = ["198.51.100.10/32 > 192.0.2.1"];
    assert_eq!(story.hear(some("web")), announced);
    assert_eq!(story.hear(some("mail")), announced, "what was said of others stands");
    assert_eq!(story.hear(DeliveryUpdate::OfAnotherProxy), announced);
    assert_eq!(story.hear(some("mail")), announced, "that is no condition for the rest");
}

#[test]
fn without_a_proxy_there_is_no_condition() {
    assert_eq!(routes(&cluster().plan()), ["198.51.100.10/32 > 192.0.2.1"]);
}
