//! Which node answers on the local segment. The order of nodes in these stories was computed with
//! Python's `hashlib`, and the text of addresses with Go's `net`, independently of this code.

use fairway_allocator::PoolLookup;
use fairway_ground::Abstention;
use fairway_model::{
    Delivery, DeliveryUpdate, Kind, Layer2Advertisement, ObjectKey, PreferredNodes,
};

use super::super::layer2::{Answer, Layer2, Member, Own, candidates, hash};
use super::super::local::Obstacles;
use super::*;

fn advertised(called: &str) -> Layer2Advertisement {
    Layer2Advertisement {
        name: name(called),
        pools: BTreeSet::new(),
        pool_selectors: Vec::new(),
        node_selectors: Vec::new(),
        service_selectors: Vec::new(),
        interfaces: BTreeSet::new(),
        preferred_nodes: Vec::new(),
        bind: false,
    }
}

/// Nodes n1 to n4, of which n1 and n2 are in rack a; one pool.
fn four_nodes() -> Cluster {
    let mut cluster = Cluster::empty();
    cluster.pool(pool("a", &["198.51.100.0/24", "2001:db8::/64"]));
    for (called, rack) in [("n1", "a"), ("n2", "a"), ("n3", "b"), ("n4", "b")] {
        let mut node = node(called);
        node.labels.extend(labels(&format!("rack={rack} {called}=here")));
        cluster.add(Object::Node(node));
    }
    cluster
}

/// A node that has found out nothing about itself.
fn own(node: &Node) -> Own<'_> {
    static NOTHING: Local = Local {
        failing: BTreeMap::new(),
        pending: BTreeSet::new(),
        interfaces: None,
        gateways: None,
        pod_blocks: BTreeMap::new(),
    };
    static NONE: Obstacles =
        Obstacles { of_addresses: BTreeMap::new(), abstentions: BTreeSet::new() };
    Own { node, local: &NOTHING, obstacles: &NONE, data_path: None }
}

/// What each of the nodes does about `web`: `+` with its interfaces, or why not.
fn verdicts(cluster: &Cluster, service: &Service, addresses: &[&str]) -> Vec<String> {
    verdicts_with(cluster, service, addresses, PlanOptions::default())
}

fn verdicts_with(
    cluster: &Cluster,
    service: &Service,
    addresses: &[&str],
    options: PlanOptions,
) -> Vec<String> {
    let addresses: Vec<_> = addresses.iter().map(|text| ip(text)).collect();
    let pools = PoolLookup::new(&cluster.index);
    let verdict = |node: &Node| {
        let own = own(node);
        let candidates = candidates(&cluster.index, own, None);
        let mut layer2 = Layer2::new(&cluster.index, own, candidates, options);
        let answer = layer2.verdicts(service, &addresses, &pools).pop().map(|it| it.answer);
        match answer.map(|it| it.map(|it| it.interfaces)) {
            None => "-".to_owned(),
            Some(Ok(None)) => "+".to_owned(),
            Some(Ok(Some(interfaces))) => {
                let interfaces: Vec<_> = interfaces.into_iter().collect();
                format!("+ {}", interfaces.join(" "))
            }
            Some(Err(Reason::NotOwner { owner, .. })) => format!("notOwner {owner}"),
            Some(Err(reason)) => reason.word().to_owned(),
        }
    };
    cluster.index.nodes.values().map(verdict).collect()
}

const TEN: &[&str] = &["198.51.100.10"];

#[test]
fn the_lowest_hash_answers_as_in_metallb() {
    let mut cluster = four_nodes();
    cluster.add(Object::Layer2Advertisement(advertised("all")));
    let owners = |addresses: &[&str]| verdicts(&cluster, &service("web"), addresses);
    assert_eq!(owners(TEN), ["notOwner n3", "notOwner n3", "+", "notOwner n3"]);
    assert_eq!(owners(&["198.51.100.11"]), ["+", "notOwner n1", "notOwner n1", "notOwner n1"]);
    assert_eq!(owners(&["2001:db8::a"]), ["notOwner n2", "+", "notOwner n2", "notOwner n2"]);
}

#[test]
fn the_hash_is_that_of_other_programs() {
    let digest = |called: &str, address: &str| -> String {
        let hash = hash(&node(called), ip(address));
        hash.iter().take(8).map(|byte| format!("{byte:02x}")).collect()
    };
    assert_eq!(digest("n3", "198.51.100.10"), "95112f4664ab758d");
    assert_eq!(digest("n2", "2001:db8::a"), "169845a786220869");
    // As an IPv4 address, as Go writes it.
    assert_eq!(digest("n4", "::ffff:192.0.2.7"), "8a58f293207ca271");
}

#[test]
fn addresses_are_written_as_go_writes_them() {
    let pairs = [
        ("2001:db8::1", "2001:db8::1"),
        ("2001:db8:0:0:1:0:0:1", "2001:db8::1:0:0:1"),
        ("2001:db8:0:1:1:1:1:1", "2001:db8:0:1:1:1:1:1"),
        ("2001:0:0:1:0:0:0:1", "2001:0:0:1::1"),
        ("::ffff:192.0.2.7", "192.0.2.7"),
        ("::192.0.2.7", "::c000:207"),
        ("::1:2", "::1:2"),
        ("2001:DB8::A:0:0:B", "2001:db8::a:0:0:b"),
        ("64:ff9b::192.0.2.33", "64:ff9b::c000:221"),
        ("1:0:0:2:0:0:3:4", "1::2:0:0:3:4"),
        ("fe80::", "fe80::"),
        ("::", "::"),
    ];
    for (text, written) in pairs {
        assert_eq!(ip(text).to_canonical().to_string(), written);
    }
}

#[test]
fn both_families_move_as_one_and_the_status_says_which_is_first() {
    let mut cluster = four_nodes();
    cluster.add(Object::Layer2Advertisement(advertised("all")));
    let mut web = service("web");
    let both = ["198.51.100.11", "2001:db8::a"];
    let by_first = ["+", "notOwner n1", "notOwner n1", "notOwner n1"];
    assert_eq!(verdicts(&cluster, &web, &both), by_first);
    web.status_addresses = vec![ip("2001:db8::a"), ip("198.51.100.11")];
    let by_second = ["notOwner n2", "+", "notOwner n2", "notOwner n2"];
    assert_eq!(verdicts(&cluster, &web, &both), by_second);
    web.status_addresses = vec![ip("2001:db8::a"), ip("198.51.100.99")];
    assert_eq!(verdicts(&cluster, &web, &both), by_first, "an address that it no longer has");
}

#[test]
fn where_each_family_has_a_pool_of_its_own_each_pool_needs_an_advertisement() {
    let mut cluster = Cluster::empty();
    cluster.pool(pool("four", &["198.51.100.10-198.51.100.20"]));
    cluster.pool(pool("six", &["2001:db8::a-2001:db8::b"]));
    let requested_pools = vec!["four".to_owned(), "six".to_owned()];
    let families = FamilyPolicy::RequireDual(V4);
    cluster.service(Service { families, requested_pools, ..service("web") });
    let with = |cluster: &mut Cluster, called: &str, interface: &str| {
        let (pools, interfaces) = (names(&[called]), names(&[interface]));
        let it = Layer2Advertisement { pools, interfaces, ..advertised(called) };
        cluster.add(Object::Layer2Advertisement(it));
        let plan = cluster.plan();
        let answers = plan.layer2.into_iter().map(|it| (it.address, it.interfaces.unwrap()));
        answers.collect::<Vec<_>>()
    };
    let (four, six) = (ip("198.51.100.10"), ip("2001:db8::a"));
    // The first address has no advertisement, which does not affect the other one.
    assert_eq!(with(&mut cluster, "six", "eth6"), [(six, names(&["eth6"]))]);
    let both = [(four, names(&["eth4"])), (six, names(&["eth6"]))];
    assert_eq!(with(&mut cluster, "four", "eth4"), both);
    let key = ObjectKey { kind: Kind::Layer2Advertisement, name: name("six") };
    cluster.index.delete(&key);
    assert_eq!(with(&mut cluster, "four", "eth4"), [(four, names(&["eth4"]))]);
}

#[test]
fn nodes_that_are_out_of_service_are_no_candidates() {
    let mut cluster = four_nodes();
    cluster.add(Object::Layer2Advertisement(advertised("all")));
    let mut n3 = cluster.index.nodes["n3"].clone();
    n3.network_unavailable = true;
    cluster.add(Object::Node(n3));
    let mut n4 = cluster.index.nodes["n4"].clone();
    n4.labels.insert(Node::EXCLUDE_LABEL.to_owned(), String::new());
    cluster.add(Object::Node(n4));
    let expected = ["+", "notOwner n1", "nodeNetworkUnavailable", "nodeLabeledExcludeBalancers"];
    assert_eq!(verdicts(&cluster, &service("web"), TEN), expected);
    let options = PlanOptions { ignore_exclude_label: true, ..PlanOptions::default() };
    let expected = ["notOwner n4", "notOwner n4", "nodeNetworkUnavailable", "+"];
    assert_eq!(verdicts_with(&cluster, &service("web"), TEN, options), expected);
}

#[test]
fn a_node_that_no_advertisement_selects_says_so() {
    let mut cluster = four_nodes();
    let mut rack = advertised("rack-a");
    rack.node_selectors = selecting("rack=a");
    cluster.add(Object::Layer2Advertisement(rack));
    let none = "noMatchingAdvertisement";
    assert_eq!(verdicts(&cluster, &service("web"), TEN), ["+", "notOwner n1", none, none]);
}

#[test]
fn nobody_answers_where_nothing_is_served() {
    let mut cluster = four_nodes();
    cluster.add(Object::Layer2Advertisement(advertised("all")));
    cluster.slice(slice("web-1", "web", "!n1 !n3"));
    let mut web = service("web");
    assert_eq!(verdicts(&cluster, &web, TEN), ["noEndpoints"; 4]);
    let options = PlanOptions { unsliced_services_are_served: false, ..PlanOptions::default() };
    assert_eq!(verdicts(&cluster, &service("dns"), TEN)[2], "+");
    assert_eq!(verdicts_with(&cluster, &service("dns"), TEN, options), ["noEndpoints"; 4]);
    cluster.slice(slice("web-1", "web", "n1 !n3 n4"));
    assert_eq!(verdicts(&cluster, &web, TEN)[2], "+", "traffic policy Cluster");
    web.traffic_policy = TrafficPolicy::Local;
    let none = "noLocalEndpoints";
    assert_eq!(verdicts(&cluster, &web, TEN), ["notOwner n4", none, none, "+"]);
}

#[test]
fn a_shared_address_and_service_selectors_do_not_go_together() {
    let mut cluster = four_nodes();
    let mut selective = advertised("web");
    selective.service_selectors = selecting("app=web");
    cluster.add(Object::Layer2Advertisement(selective));
    let mut web = service("web");
    assert_eq!(verdicts(&cluster, &web, TEN)[2], "+");
    // Even with an empty key, which shares nothing.
    web.sharing_key = Some(String::new());
    assert_eq!(verdicts(&cluster, &web, TEN), ["sharedIPWithServiceSelector"; 4]);
    assert_eq!(
        verdicts(&cluster, &service("dns"), TEN),
        ["-"; 4],
        "it does not select this Service"
    );
}

#[test]
fn interfaces_of_the_advertisements_of_this_node_add_up() {
    let mut cluster = four_nodes();
    let mut one = advertised("one");
    one.interfaces = names(&["eth1", "eth0"]);
    let mut two = advertised("two");
    (two.interfaces, two.node_selectors) = (names(&["bond0"]), selecting("rack=b"));
    cluster.add(Object::Layer2Advertisement(one)).add(Object::Layer2Advertisement(two));
    assert_eq!(verdicts(&cluster, &service("web"), TEN)[2], "+ bond0 eth0 eth1");
    let eleven = verdicts(&cluster, &service("web"), &["198.51.100.11"]);
    assert_eq!(eleven[0], "+ eth0 eth1", "the other one is for rack b");
    let mut open = advertised("open");
    open.node_selectors = selecting("rack=b");
    cluster.add(Object::Layer2Advertisement(open));
    assert_eq!(verdicts(&cluster, &service("web"), TEN)[2], "+", "no list means all interfaces");
}

#[test]
fn preferences_add_up_over_advertisements_and_count_only_for_nodes_that_may() {
    let prefer =
        |labels: &str, weight| PreferredNodes { weight, preference: selecting(labels).remove(0) };
    let mut cluster = four_nodes();
    let mut one = advertised("one");
    one.preferred_nodes = vec![prefer("rack=a", 30), prefer("n2=here", 20)];
    let mut two = advertised("two");
    two.preferred_nodes = vec![prefer("n1=here", 15), prefer("n4=here", 45)];
    cluster.add(Object::Layer2Advertisement(one));
    cluster.add(Object::Layer2Advertisement(two.clone()));
    // n1 45, n2 50, n3 0, n4 45.
    let owner = |cluster: &Cluster| {
        let all = verdicts(cluster, &service("web"), TEN);
        format!("n{}", 1 + all.iter().position(|it| it.starts_with('+')).unwrap())
    };
    assert_eq!(owner(&cluster), "n2");
    // Equal scores: the hash decides, which is n4's.
    two.preferred_nodes = vec![prefer("n1=here", 20), prefer("n4=here", 50)];
    cluster.add(Object::Layer2Advertisement(two.clone()));
    assert_eq!(owner(&cluster), "n4");
    // Nodes that it does not select gain nothing from it, though another one selects them.
    two.node_selectors = selecting("rack=a");
    cluster.add(Object::Layer2Advertisement(two));
    assert_eq!(owner(&cluster), "n1");
}

#[test]
fn a_node_that_nobody_described_is_a_candidate() {
    let mut cluster = Cluster::small();
    cluster.add(Object::Layer2Advertisement(advertised("all")));
    let (alone, pools) = (node("n9"), PoolLookup::new(&cluster.index));
    let mut layer2 = Layer2::new(
        &cluster.index,
        own(&alone),
        candidates(&cluster.index, own(&alone), None),
        PlanOptions::default(),
    );
    let verdict = layer2.verdicts(&service("web"), &[ip("198.51.100.1")], &pools).remove(0);
    assert_eq!(
        (verdict.answer, verdict.advertisements),
        (Ok(Answer::default()), vec![name("all")])
    );
}

#[test]
fn who_answers_instead_and_why_is_said() {
    let mut cluster = four_nodes();
    let mut all = advertised("all");
    let preference = selecting("rack=b").remove(0);
    cluster.add(Object::Layer2Advertisement(all.clone()));
    let text = |cluster: &Cluster| {
        let n1 = &cluster.index.nodes["n1"];
        let mut layer2 = Layer2::new(
            &cluster.index,
            own(n1),
            candidates(&cluster.index, own(n1), None),
            PlanOptions::default(),
        );
        let pools = PoolLookup::new(&cluster.index);
        let verdict = layer2.verdicts(&service("web"), &[ip(TEN[0])], &pools).remove(0);
        verdict.answer.unwrap_err().to_string()
    };
    let by_hash = "notOwner: node n3 answers for 198.51.100.10, since its hash with that address \
                   is the lowest among the eligible nodes";
    assert_eq!(text(&cluster), by_hash);
    all.preferred_nodes = vec![PreferredNodes { weight: 7, preference }];
    cluster.add(Object::Layer2Advertisement(all));
    let by_weight = "notOwner: node n3 answers for 198.51.100.10, since its preference weight is \
                     7, and that of this node 0";
    assert_eq!(text(&cluster), by_weight);
}

/// What Kubernetes says of a node counts where the nodes themselves do not tell each other who is alive.
#[test]
fn nodes_that_kubernetes_takes_for_dead_own_nothing() {
    let mut cluster = four_nodes();
    cluster.add(Object::Layer2Advertisement(advertised("all")));
    let set = |cluster: &mut Cluster, called: &str, change: fn(&mut Node)| {
        let mut changed = cluster.index.nodes[called].clone();
        change(&mut changed);
        cluster.add(Object::Node(changed));
    };
    let owner = |cluster: &Cluster, members: Option<&[&str]>| -> Vec<String> {
        let member = |name: &str| Member { assumed: node(name), abstentions: BTreeSet::new() };
        let assumed = |name: &&str| ((*name).to_owned(), member(name));
        let members = members.map(|it| it.iter().map(assumed).collect::<BTreeMap<_, _>>());
        let n1 = &cluster.index.nodes["n1"];
        let all = candidates(&cluster.index, own(n1), members.as_ref());
        all.into_iter().map(|it| it.node.name.clone()).collect()
    };
    set(&mut cluster, "n3", |it| it.is_unready = true);
    assert_eq!(owner(&cluster, None), ["n2", "n4", "n1"]);
    assert_eq!(owner(&cluster, Some(&["n1", "n3"])), ["n1", "n3"], "its heartbeats say more");
    set(&mut cluster, "n3", |it| it.is_out_of_service = true);
    assert_eq!(owner(&cluster, Some(&["n1", "n3"])), ["n1"]);
    for called in ["n1", "n2", "n4"] {
        set(&mut cluster, called, |it| it.is_unready = true);
    }
    assert_eq!(owner(&cluster, None), ["n2", "n4", "n1"], "the control plane hears no node");
}

/// A member that is a candidate for everything.
fn able(name: &str) -> (String, BTreeSet<Abstention>) {
    (name.to_owned(), BTreeSet::new())
}

/// The members that are alive decide, whatever nodes there are; a member without a Node object is assumed.
#[test]
fn only_members_that_are_alive_own_addresses() {
    let mut cluster = four_nodes();
    cluster.add(Object::Layer2Advertisement(advertised("all")));
    let requested_addresses = vec![ip("198.51.100.10")];
    cluster.add(Object::from(Service { requested_addresses, ..service("web") }));
    let owner = |members: Option<&[&str]>| -> Vec<String> {
        let members = members.map(|it| it.iter().map(|it| able(it)).collect());
        let of = |node: &Node| {
            let mut planner = NodePlanner::new(node.clone(), PlanOptions::default());
            planner.set_members(members.as_ref());
            planner.update(&cluster.index, &cluster.outcomes(), &PlanChanges::everything());
            (!planner.plan().layer2.is_empty()).then(|| node.name.clone())
        };
        cluster.index.nodes.values().filter_map(of).collect()
    };
    assert_eq!(owner(None), ["n3"]);
    assert_eq!(owner(Some(&["n1", "n2", "n3", "n4"])), ["n3"]);
    let second = owner(Some(&["n1", "n2", "n4"]));
    assert_eq!(second.len(), 1);
    assert_ne!(second, ["n3"]);
    assert_eq!(owner(Some(&["n2"])), ["n2"]);
    assert!(owner(Some(&[])).is_empty(), "nobody has joined");
}

/// What each of four members plans for `web`, where n3, the first one, knows this of itself and tells the others.
fn plans_with(cluster: &Cluster, of_n3: &Local) -> BTreeMap<String, NodePlan> {
    plans_after(cluster, of_n3, None)
}

/// Likewise, where the service proxy of n3 says this.
fn plans_after(
    cluster: &Cluster,
    of_n3: &Local,
    update: Option<&DeliveryUpdate>,
) -> BTreeMap<String, NodePlan> {
    let follow = |planner: &mut NodePlanner| {
        planner.set_local(of_n3.clone());
        if let Some(update) = update {
            planner.follow_data_path(update.clone());
        }
    };
    let mut planner = NodePlanner::new(cluster.index.nodes["n3"].clone(), PlanOptions::default());
    follow(&mut planner);
    planner.update(&cluster.index, &cluster.outcomes(), &PlanChanges::everything());
    let said = planner.abstentions().clone();
    let mut members: BTreeMap<_, _> = ["n1", "n2", "n4"].into_iter().map(able).collect();
    members.insert("n3".to_owned(), said);
    let plan = |node: &Node| {
        let mut planner = NodePlanner::new(node.clone(), PlanOptions::default());
        planner.set_members(Some(&members));
        if node.name == "n3" {
            follow(&mut planner);
        }
        planner.update(&cluster.index, &cluster.outcomes(), &PlanChanges::everything());
        (node.name.clone(), planner.plan().clone())
    };
    cluster.index.nodes.values().map(plan).collect()
}

/// The owners, and why n3 is none.
fn owners_with(cluster: &Cluster, of_n3: &Local) -> (Vec<String>, String) {
    let plans = plans_with(cluster, of_n3);
    let owners = plans.iter().filter(|(_, it)| !it.layer2.is_empty());
    let owners = owners.map(|(name, _)| name.clone()).collect();
    let verdict = plans["n3"].services[&name("web")].layer2[0].answer.as_ref();
    (owners, verdict.err().map(ToString::to_string).unwrap_or_default())
}

#[test]
fn a_member_that_does_not_serve_a_service_leaves_it_to_another_one() {
    let mut cluster = four_nodes();
    cluster.add(Object::Layer2Advertisement(advertised("all")));
    let requested_addresses = vec![ip("198.51.100.10")];
    cluster.add(Object::from(Service { requested_addresses, ..service("web") }));
    assert_eq!(owners_with(&cluster, &Local::default()).0, ["n3"]);
    let failing = BTreeMap::from([(name("web"), "connection refused".to_owned())]);
    let (owners, why) = owners_with(&cluster, &Local { failing, ..Local::default() });
    assert_eq!(owners.len(), 1);
    assert_ne!(owners, ["n3"]);
    let said = format!(
        "notOwner: node {} answers for 198.51.100.10, since the health check of the Service fails on \
         this node: connection refused",
        owners[0]
    );
    assert_eq!(why, said);
    // A check of another Service moves nothing.
    let failing = BTreeMap::from([(name("mail"), String::new())]);
    assert_eq!(owners_with(&cluster, &Local { failing, ..Local::default() }).0, ["n3"]);
}

#[test]
fn a_member_whose_proxy_does_not_deliver_leaves_the_address_to_another_one() {
    let mut cluster = four_nodes();
    cluster.add(Object::Layer2Advertisement(advertised("all")));
    let address = ip("198.51.100.10");
    cluster.add(Object::from(Service { requested_addresses: vec![address], ..service("web") }));
    let owner = |delivery: Delivery| {
        let of_address = BTreeMap::from([(name("web"), delivery)]);
        let deliveries = BTreeMap::from([(address, of_address)]);
        let update = DeliveryUpdate::All(deliveries);
        let plans = plans_after(&cluster, &Local::default(), Some(&update));
        let why = plans["n3"].services[&name("web")].layer2[0].answer.clone();
        let owners = plans.iter().filter(|(_, it)| !it.layer2.is_empty());
        let owners: Vec<String> = owners.map(|(name, _)| name.clone()).collect();
        (owners, why.err().map(|it| it.to_string()).unwrap_or_default())
    };
    assert_eq!(owner(Delivery::Delivered).0, ["n3"]);
    let (owners, why) = owner(Delivery::Obstructed("another program has it".to_owned()));
    assert_eq!(owners.len(), 1);
    assert_ne!(owners, ["n3"]);
    let said = format!(
        "notOwner: node {} answers for {address}, since the service proxy of this node does not \
         deliver to it: another program has it (fairway show proxy)",
        owners[0]
    );
    assert_eq!(why, said);
}

/// Services `web` and `mail` share an address. Returns who answers for it, where the proxy of n3, the first one, says this of
/// each; and what n3 abstains from.
fn owners_of_shared(web: Option<Delivery>, mail: Option<Delivery>) -> (Vec<String>, usize) {
    let mut cluster = four_nodes();
    cluster.add(Object::Layer2Advertisement(advertised("all")));
    let address = ip("198.51.100.10");
    for (called, port) in [("web", 80), ("mail", 25)] {
        cluster.add(Object::from(Service {
            requested_addresses: vec![address],
            sharing_key: Some("both".to_owned()),
            ports: vec![ServicePort { protocol: "TCP".to_owned(), port }],
            ..service(called)
        }));
    }
    let said = [("web", web), ("mail", mail)];
    let of_address = said.into_iter().filter_map(|(called, it)| Some((name(called), it?)));
    let update = DeliveryUpdate::All(BTreeMap::from([(address, of_address.collect())]));
    let plans = plans_after(&cluster, &Local::default(), Some(&update));
    let owners = plans.iter().filter(|(_, it)| !it.layer2.is_empty());
    let mut planner = NodePlanner::new(cluster.index.nodes["n3"].clone(), OPTIONS);
    planner.follow_data_path(update);
    planner.update(&cluster.index, &cluster.outcomes(), &PlanChanges::everything());
    (owners.map(|(name, _)| name.clone()).collect(), planner.abstentions().len())
}

#[test]
fn a_member_leaves_an_address_to_another_one_only_if_no_service_there_works() {
    let obstructed = || Some(Delivery::Obstructed("no space".to_owned()));
    let none = || Some(Delivery::NoEndpoint("none".to_owned()));
    let own = (vec!["n3".to_owned()], 0);
    assert_eq!(owners_of_shared(Some(Delivery::Delivered), obstructed()), own);
    assert_eq!(owners_of_shared(Some(Delivery::Delivered), none()), own);
    assert_eq!(owners_of_shared(none(), none()), own, "others see endpoints themselves");
    assert_eq!(owners_of_shared(None, None), own, "what is new is new to all");
    let (owners, abstentions) = owners_of_shared(obstructed(), obstructed());
    assert!(owners != ["n3"] && owners.len() == 1 && abstentions == 1, "{owners:?}");
}

#[test]
fn a_member_whose_proxy_is_silent_leaves_new_services_to_others() {
    let mut cluster = four_nodes();
    cluster.add(Object::Layer2Advertisement(advertised("all")));
    let address = ip("198.51.100.10");
    cluster.add(Object::from(Service { requested_addresses: vec![address], ..service("web") }));
    let mut planner = NodePlanner::new(cluster.index.nodes["n3"].clone(), OPTIONS);
    planner.follow_data_path(DeliveryUpdate::All(BTreeMap::new()));
    let mut abstentions = |update: DeliveryUpdate| {
        planner.follow_data_path(update);
        planner.update(&cluster.index, &cluster.outcomes(), &PlanChanges::default());
        (planner.abstentions().len(), planner.plan().layer2.len())
    };
    assert_eq!(abstentions(DeliveryUpdate::Changed(BTreeMap::new())), (0, 1));
    assert_eq!(abstentions(DeliveryUpdate::Silent), (1, 0));
    let of_address = BTreeMap::from([(name("web"), Delivery::Delivered)]);
    let delivered = BTreeMap::from([(address, of_address)]);
    assert_eq!(abstentions(DeliveryUpdate::Changed(delivered)), (0, 1));
    assert_eq!(abstentions(DeliveryUpdate::Silent), (0, 1), "what it said last stands");
}

#[test]
fn a_member_without_the_interfaces_of_an_advertisement_leaves_it_to_another_one() {
    let mut cluster = four_nodes();
    cluster.add(Object::Layer2Advertisement(Layer2Advertisement {
        interfaces: names(&["eth1", "eth2"]),
        ..advertised("one")
    }));
    let requested_addresses = vec![ip("198.51.100.10")];
    cluster.add(Object::from(Service { requested_addresses, ..service("web") }));
    let reaching = |all: &[&str]| Local { interfaces: Some(names(all)), ..Local::default() };
    assert_eq!(owners_with(&cluster, &reaching(&["eth0", "eth2"])).0, ["n3"]);
    let (owners, why) = owners_with(&cluster, &reaching(&["eth0"]));
    assert_eq!(owners.len(), 1);
    assert_ne!(owners, ["n3"]);
    let said = format!(
        "notOwner: node {} answers for 198.51.100.10, since this node can answer on no interface of \
         L2Advertisement default/one (fairway show l2)",
        owners[0]
    );
    assert_eq!(why, said);
    // Another advertisement that has one of its interfaces is enough.
    cluster.add(Object::Layer2Advertisement(advertised("two")));
    assert_eq!(owners_with(&cluster, &reaching(&["eth0"])).0, ["n3"]);
}

#[test]
fn a_service_that_is_not_served_here_is_not_announced_over_bgp_either() {
    let mut cluster = Cluster::small();
    cluster.service(service("web"));
    let plan = |failing: BTreeMap<ObjectName, String>| {
        let mut planner = NodePlanner::new(node("n1"), PlanOptions::default());
        planner.set_local(Local { failing, ..Local::default() });
        planner.update(&cluster.index, &cluster.outcomes(), &PlanChanges::everything());
        planner.plan().clone()
    };
    assert_eq!(plan(BTreeMap::new()).routes.len(), 1);
    let failing = BTreeMap::from([(name("web"), "status 503".to_owned())]);
    let silent = plan(failing);
    assert_eq!(silent.routes.len(), 0);
    assert_eq!(why(&silent, "web"), ["noEndpoints"]);
}

#[test]
fn an_address_is_bound_where_an_advertisement_of_the_owner_says_so() {
    let mut cluster = four_nodes();
    cluster.add(Object::Layer2Advertisement(advertised("all")));
    let elsewhere = Layer2Advertisement {
        node_selectors: selecting("n1=here"),
        bind: true,
        ..advertised("elsewhere")
    };
    cluster.add(Object::Layer2Advertisement(elsewhere.clone()));
    let requested_addresses = vec![ip("198.51.100.10")];
    cluster.add(Object::from(Service { requested_addresses, ..service("web") }));
    let is_bound = |cluster: &Cluster| plans_with(cluster, &Local::default())["n3"].layer2[0].bind;
    assert!(!is_bound(&cluster), "it is for another node");
    cluster.add(Object::Layer2Advertisement(Layer2Advertisement {
        node_selectors: Vec::new(),
        ..elsewhere
    }));
    assert!(is_bound(&cluster));
}

#[test]
fn services_that_share_an_address_keep_one_owner_when_one_is_not_served() {
    let mut cluster = four_nodes();
    cluster.add(Object::Layer2Advertisement(advertised("all")));
    let sharing = |called: &str, port: u16| Service {
        requested_addresses: vec![ip("198.51.100.10")],
        sharing_key: Some("key".to_owned()),
        ports: vec![ServicePort { protocol: "TCP".to_owned(), port }],
        ..service(called)
    };
    cluster.add(Object::from(sharing("web", 80)));
    cluster.add(Object::from(sharing("mail", 25)));
    let failing = BTreeMap::from([(name("mail"), "refused".to_owned())]);
    let plans = plans_with(&cluster, &Local { failing, ..Local::default() });
    let owners: Vec<_> = plans.iter().filter(|(_, it)| !it.layer2.is_empty()).collect();
    assert_eq!(owners.len(), 1);
    assert_ne!(owners[0].0, "n3");
    assert_eq!(owners[0].1.layer2[0].services.len(), 2, "both are there");
    let why = plans["n3"].services[&name("web")].layer2[0].answer.as_ref().unwrap_err();
    assert!(why.to_string().ends_with("fails on this node: refused"), "{why}");
}

#[test]
fn a_check_that_has_not_ended_makes_no_other_member_an_owner() {
    let mut cluster = four_nodes();
    cluster.add(Object::Layer2Advertisement(advertised("all")));
    let requested_addresses = vec![ip("198.51.100.10")];
    cluster.add(Object::from(Service { requested_addresses, ..service("web") }));
    let pending = BTreeSet::from([name("web")]);
    let plans = plans_with(&cluster, &Local { pending, ..Local::default() });
    assert!(plans.values().all(|it| it.layer2.is_empty()), "it is about to be known");
    let why = |node: &str| {
        let verdict = &plans[node].services[&name("web")].layer2[0];
        verdict.answer.as_ref().unwrap_err().to_string()
    };
    assert!(why("n1").starts_with("notOwner: node n3 answers"), "{}", why("n1"));
    assert!(why("n3").contains("has not ended yet"), "{}", why("n3"));
}

#[test]
fn members_are_told_only_of_what_would_concern_the_node() {
    let mut cluster = four_nodes();
    for number in 0..100 {
        cluster.add(Object::Layer2Advertisement(Layer2Advertisement {
            interfaces: names(&["vlan7"]),
            node_selectors: selecting("n1=here"),
            service_selectors: selecting("tier=gold"),
            ..advertised(&format!("elsewhere-{number}"))
        }));
    }
    let requested_addresses = vec![ip("198.51.100.10")];
    cluster.add(Object::from(Service { requested_addresses, ..service("web") }));
    let failing = BTreeMap::from([(name("web"), "refused".to_owned())]);
    let local = Local { failing, interfaces: Some(names(&["eth0"])), ..Local::default() };
    let abstentions = |node: &str| {
        let node = cluster.index.nodes[node].clone();
        let mut planner = NodePlanner::new(node, PlanOptions::default());
        planner.set_local(local.clone());
        planner.update(&cluster.index, &cluster.outcomes(), &PlanChanges::everything());
        planner.abstentions().len()
    };
    assert_eq!(abstentions("n3"), 0);
    assert_eq!(abstentions("n1"), 100);
}
