//! What is legal, or legal and odd: no faults, at most warnings.

use fairway_ground::GracefulRestart;
use fairway_model::Object;
use fairway_resources::Catalog;

use super::{GOOD, SOUND_PEER, advertisement, beside_good, check, good, one_fault, peer, pool};

#[rustfmt::skip] // One line for each input.
#[test]
fn inputs_that_are_fine_are_not_faults() {
    for (what, text, skipped) in [
        ("empty", "", 0),
        ("comment", "# nothing here\n", 0),
        ("markers", "---\n---\n...\n", 0),
        ("other group", "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: x}\n", 1),
        ("Calico", "apiVersion: crd.projectcalico.org/v1\nkind: BGPPeer\nmetadata: {name: x}\n", 1),
        ("other type", "apiVersion: v1\nkind: Service\nmetadata: {name: x}\nspec: {type: ClusterIP}\n", 0),
        ("external", "apiVersion: v1\nkind: Service\nmetadata: {name: x}\nspec: {type: ExternalName}\n", 0),
        ("no type", "apiVersion: v1\nkind: Service\nmetadata: {name: x}\nspec: {ports: [{port: 1}]}\n", 0),
        ("not spoken of", "apiVersion: v1\nkind: ServiceList\nitems: []\n", 0),
        ("status", "apiVersion: metallb.io/v1beta1\nkind: ServiceL2Status\nmetadata: {name: x}\n", 1),
        ("other secret", "apiVersion: v1\nkind: Secret\nmetadata: {name: x}\ndata: {a: '!'}\n", 0),
        ("list", "apiVersion: v1\nkind: List\nitems: []\n", 0),
    ] {
        let resolution = beside_good(what, text);
        assert_eq!(resolution.findings, [], "{what}");
        assert_eq!(resolution.skipped, skipped, "{what}");
        assert_eq!(resolution.objects.len(), 6, "{what}");
    }
}

#[test]
fn route_policies_are_read_in_the_words_of_the_manual() {
    for policy in [
        "toReceive: {allowed: {mode: all}}",
        "toAdvertise: {allowed: {mode: all}}",
        "toReceive: {allowed: {mode: filtered, prefixes: [{prefix: 10.0.0.0/8, le: 24}]}}",
        "toReceive: {allowed: {mode: all}, maxPrefixes: {limit: 100, warnPercent: 80, attributeBytes: 65536}}",
    ] {
        let resolution = beside_good(policy, &peer(&format!("{SOUND_PEER}{policy}")));
        assert_eq!(resolution.findings, [], "{policy}");
        assert_eq!(resolution.objects.len(), 7, "{policy}");
    }
}

#[rustfmt::skip] // One line for each input.
#[test]
fn legal_but_odd_inputs_are_warnings() {
    let with = |more: &str| peer(&format!("{SOUND_PEER}{more}"));
    let old = "apiVersion: v1\nkind: Service\nmetadata:\n  name: new\n  annotations:\n    \
               metallb.universe.tf/address-pool: public\nspec: {type: LoadBalancer}\n";
    for (what, text, line, field, says) in [
        ("unknown peer", advertisement("peers: [tor, nobody]"), 6, "spec.peers[1]", "no BGPPeer nobody"),
        ("unknown pool", advertisement("ipAddressPools: [nobody]"), 6, "spec.ipAddressPools[0]", "no IPAddressPool nobody"),
        ("idle pool", pool("addresses: [10.0.0.0/24]"), 1, "", "no BGPAdvertisement and no \
          L2Advertisement covers"),
        ("no hold timer", with("holdTime: 0s"), 9, "spec.holdTime", "never detected"),
        ("disableMP", with("disableMP: true"), 9, "spec.disableMP", "has no effect"),
        ("fractions", with("holdTime: 9500ms"), 9, "spec.holdTime", "whole seconds"),
        ("restart times", with("gracefulRestart: {restartTime: 5m}"), 9, "spec.gracefulRestart", "no effect without spec.enableGracefulRestart: true"),
        ("no restart", with("enableGracefulRestart: false\ngracefulRestart: {}"), 10, "spec.gracefulRestart", "no effect without"),
        ("annotation", old.replace("universe.tf/address-pool", "io/adress-pool"), 6, "metadata.annotations[metallb.io/adress-pool]", "did you mean metallb.io/address-pool?"),
        ("old annotation", old.replace("address-pool", "loadBalancerIP"), 6, "metadata.annotations[metallb.universe.tf/loadBalancerIP]", "did you mean metallb.io/loadBalancerIPs?"),
        ("odd annotation", old.replace("address-pool", "weight"), 6, "metadata.annotations[metallb.universe.tf/weight]", "expected one of metallb.io/loadBalancerIPs"),
        ("old prefix", old.to_owned(), 6, "metadata.annotations[metallb.universe.tf/address-pool]", "metallb.io/address-pool"),
    ] {
        let resolution = beside_good(what, &text);
        let [warning] = resolution.findings.as_slice() else {
            panic!("{what}: {:#?}", resolution.findings)
        };
        assert!(!warning.is_fault(), "{warning}");
        check(what, warning, line, field, says);
    }
}

#[test]
fn what_means_not_set_is_accepted() {
    let text = peer(&format!(
        "{SOUND_PEER}enableGracefulRestart: false\nvrf: ''\npasswordSecret: {{}}\npassive: false\n\
         bfdProfile:\ndisableMP: false\nkeepaliveTime: 20s\nconnectTime: 1m"
    ));
    let resolution = beside_good("not set", &text);
    assert_eq!(resolution.findings, []);
    assert_eq!(resolution.objects.len(), 7);
}

#[test]
fn how_long_routes_outlive_a_session_is_read_as_it_is_written() {
    let on = "enableGracefulRestart: true\n";
    for (more, expected) in [
        ("", None),
        ("enableGracefulRestart: false\n", None),
        (on, GracefulRestart::new(120, 0)),
        ("enableGracefulRestart: true\ngracefulRestart:\n", GracefulRestart::new(120, 0)),
        (&format!("{on}gracefulRestart: {{restartTime: 1s}}"), GracefulRestart::new(1, 0)),
        (&format!("{on}gracefulRestart: {{restartTime: 1h8m15s}}"), GracefulRestart::new(4095, 0)),
        (
            &format!("{on}gracefulRestart: {{restartTime: 5m, longLivedStaleTime: 16777215s}}"),
            GracefulRestart::new(300, 16_777_215),
        ),
        (&format!("{on}gracefulRestart: {{longLivedStaleTime: 0s}}"), GracefulRestart::new(120, 0)),
    ] {
        let resolution = beside_good(more, &peer(&format!("{SOUND_PEER}{more}")));
        assert_eq!(resolution.findings, [], "{more}");
        let found = resolution.objects.iter().find_map(|object| match object {
            Object::Peer(peer) if peer.name.name == "new" => Some(peer.graceful_restart),
            _ => None,
        });
        assert_eq!(found, Some(expected), "{more}");
    }
}

#[test]
fn a_pool_entry_with_host_bits_is_the_network_around_it() {
    let text = pool("addresses:\n- 10.1.0.5/24\n- 2001:db8::1/64");
    let advertised =
        "---\napiVersion: metallb.io/v1beta1\nkind: BGPAdvertisement\nmetadata: {name: b}\n";
    let resolution = beside_good("host bits", &format!("{text}{advertised}"));
    let [first, second] = resolution.findings.as_slice() else { panic!("{resolution:#?}") };
    let expected = "has host bits set; it is read as 10.1.0.0/24";
    assert!(!first.is_fault() && !second.is_fault());
    check("host bits", first, 7, "spec.addresses[0]", expected);
    check("host bits", second, 8, "spec.addresses[1]", "read as 2001:db8::/64");
    let pools = resolution.objects.iter().filter_map(|object| match object {
        Object::Pool(pool) if pool.name.name == "new" => Some(pool.ranges.clone()),
        _ => None,
    });
    let expected = ["10.1.0.0/24", "2001:db8::/64"].map(|range| range.parse().unwrap());
    assert_eq!(pools.collect::<Vec<_>>(), [expected]);
    // Entries that MetalLB masks may overlap then.
    let twice = "addresses:\n- 10.1.0.5/24\n- 10.1.0.6/24";
    assert!(beside_good("twice", &pool(twice)).has_faults());
}

#[test]
fn what_metallb_writes_into_a_service_is_no_news() {
    let text = "apiVersion: v1\nkind: Service\nmetadata:\n  name: new\n  annotations:\n    \
                metallb.io/ip-allocated-from-pool: public\n    metallb.universe.tf/ip-allocated-from-pool: \
                public\nspec: {type: LoadBalancer}\n";
    let resolution = beside_good("status", text);
    assert_eq!((resolution.findings.len(), resolution.objects.len()), (0, 7));
}

#[test]
fn lists_of_one_kind_are_read_item_by_item() {
    for list in [
        "apiVersion: v1\nkind: ServiceList\nitems:\n- apiVersion: v1\n  kind: Service\n  metadata: \
         {name: one}\n  spec: {type: LoadBalancer}\n",
        // As the API server answers: the items do not repeat the kind and version of the list.
        "apiVersion: v1\nkind: ServiceList\nmetadata: {resourceVersion: '7'}\nitems:\n- metadata: \
         {name: one}\n  spec: {type: LoadBalancer}\n",
        "apiVersion: metallb.io/v1beta2\nkind: BGPPeerList\nitems:\n- metadata: {name: one}\n  spec: \
         {myASN: 1, peerASN: 2, peerAddress: 192.0.2.9}\n",
    ] {
        let (mut catalog, _) = good();
        catalog.file_read("list.yaml", list);
        let resolution = catalog.resolve();
        assert_eq!((resolution.findings.len(), resolution.objects.len()), (0, 7), "{list}");
        let mut restarted = Catalog::new();
        restarted.restore(&catalog.last_good().to_json()).unwrap();
        restarted.file_unreadable("list.yaml", "is not text");
        restarted.file_read("good.yaml", GOOD);
        assert_eq!(restarted.resolve().objects.len(), 7, "{list}");
    }
    let faulty = "apiVersion: metallb.io/v1beta2\nkind: BGPPeerList\nitems:\n- metadata: {name: \
                  new}\n  spec:\n    myASN: 1\n    peerASN: 0\n    peerAddress: 192.0.2.9\n";
    one_fault("item", faulty, 7, "spec.peerASN", "1 to 4294967295");
    let foreign =
        "apiVersion: crd.projectcalico.org/v1\nkind: BGPPeerList\nitems:\n- metadata: {name: x}\n";
    assert_eq!(beside_good("foreign", foreign).skipped, 1);
}

#[test]
fn lists_of_kubectl_are_read_item_by_item() {
    let list = "apiVersion: v1\nkind: List\nitems:\n- apiVersion: v1\n  kind: Service\n  metadata:\n    \
                name: one\n  spec:\n    type: LoadBalancer\n- apiVersion: metallb.io/v1beta1\n  \
                kind: IPAddressPool\n  metadata: {name: two}\n  spec:\n    addresses: [x]\n    addresses: []\n";
    let resolution = beside_good("list", list);
    assert_eq!(resolution.objects.len(), 7);
    let faults: Vec<_> = resolution.findings.iter().map(ToString::to_string).collect();
    assert_eq!(faults.len(), 2, "{faults:#?}");
    assert!(
        faults[0].starts_with("bad.yaml:14: IPAddressPool/two: spec.addresses[0]: "),
        "{faults:#?}"
    );
    assert!(
        faults[1].starts_with("bad.yaml:15: IPAddressPool/two: spec.addresses: is given twice"),
        "{faults:#?}"
    );
}
