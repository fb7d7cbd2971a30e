//! keepalived.

use super::{compare, imported};

fn untranslated(text: &str) -> Vec<String> {
    imported(text).untranslated_lines().iter().map(ToString::to_string).collect()
}

fn notes(text: &str) -> Vec<String> {
    imported(text).notes().iter().map(ToString::to_string).collect()
}

#[test]
fn samples_come_to_what_is_written_beside_them() {
    for name in ["simple", "checks", "unicast", "sync", "lvs", "shared-file"] {
        compare("keepalived", name, "conf");
    }
}

#[test]
fn a_shared_address_is_a_pool_an_l2_advertisement_and_a_service() {
    let text =
        "vrrp_instance VI_1 {\n interface eth0\n virtual_ipaddress {\n  192.0.2.100/24\n }\n}\n";
    let outcome = imported(text);
    let expected = "\
---
apiVersion: metallb.io/v1beta1
kind: IPAddressPool
metadata:
  name: vi-1
spec:
  addresses:
    - \"192.0.2.100/32\"
  autoAssign: false
---
apiVersion: metallb.io/v1beta1
kind: L2Advertisement
metadata:
  name: vi-1
spec:
  ipAddressPools:
    - vi-1
  interfaces:
    - eth0
  bind: true
---
# It has no ports: packets reach what listens on the host.
apiVersion: v1
kind: Service
metadata:
  name: vi-1
  annotations:
    metallb.io/loadBalancerIPs: \"192.0.2.100\"
spec:
  type: LoadBalancer
";
    assert_eq!(outcome.yaml(), expected);
    assert!(outcome.untranslated_lines().is_empty());
    assert!(outcome.notes().is_empty());
}

#[test]
fn comments_begin_with_a_hash_or_an_exclamation_mark_anywhere() {
    let text = "vrrp_instance a { # one\n interface eth0 ! two\n virtual_ipaddress {\n 192.0.2.1 # three\n #192.0.2.2\n }\n}";
    let yaml = imported(text).yaml();
    assert!(yaml.contains("192.0.2.1/32") && !yaml.contains("192.0.2.2"), "{yaml}");
    assert_eq!(untranslated(text), [""; 0]);
}

#[test]
fn a_password_is_not_repeated_in_messages() {
    let text = "vrrp_instance a {\n interface eth0\n authentication {\n auth_pass s3cret\n }\n virtual_ipaddress {\n 192.0.2.1\n }\n}";
    let notes = notes(text);
    assert_eq!(notes.len(), 1, "{notes:?}");
    assert!(notes[0].contains("--member-key-file") && !notes[0].contains("s3cret"), "{notes:?}");
}

#[test]
fn unicast_peers_are_named_as_members() {
    let text = "vrrp_instance a {\n interface eth0\n unicast_peer {\n 10.0.0.2\n 10.0.0.3\n }\n virtual_ipaddress {\n 192.0.2.1\n }\n}";
    assert_eq!(
        notes(text),
        [
            "sample:3: vrrp_instance a: unicast_peer: is an option of the daemon: --members 10.0.0.2,10.0.0.3 \
          --member-key-file PATH"
        ]
    );
}

#[test]
fn a_block_that_is_not_closed_is_named_and_its_addresses_are_kept() {
    let text = "vrrp_instance a {\n interface eth0\n virtual_ipaddress {\n 192.0.2.1\n";
    let named = untranslated(text);
    assert_eq!(
        named,
        [
            "sample:1: vrrp_instance a: its block is not closed",
            "sample:3: virtual_ipaddress: its block is not closed",
        ]
    );
    assert!(imported(text).yaml().contains("192.0.2.1/32"));
}

#[test]
fn a_brace_too_many_and_a_block_of_nothing_are_named() {
    let text =
        "{\n x\n}\n}\nvrrp_instance a {\n interface eth0\n virtual_ipaddress {\n 192.0.2.1\n }\n}";
    let named = untranslated(text);
    assert!(named.iter().any(|it| it.contains(":1: {: opens a block")), "{named:?}");
    assert!(named.iter().any(|it| it.contains(":4: }: closes no block")), "{named:?}");
}

#[test]
fn thousands_of_braces_are_refused_without_a_crash() {
    let text = format!("vrrp_instance a {}", "{ b ".repeat(50_000));
    assert!(!untranslated(&text).is_empty());
}

#[test]
fn a_parameter_that_stands_for_itself_is_named() {
    let text = "vrrp_instance a {\n$A=${A}\n interface ${A}\n}";
    let named = untranslated(text);
    assert!(named.iter().any(|it| it.contains("parameter: stands for itself")), "{named:?}");
}

#[test]
fn a_line_of_one_host_is_left_out_and_named() {
    let text = "vrrp_instance a {\n interface eth0\n@main interface eth1\n virtual_ipaddress {\n 192.0.2.1\n }\n}";
    assert_eq!(
        untranslated(text),
        [
            "sample:3: @main interface eth1: is for some hosts: translate the configuration of each host, without such lines"
        ]
    );
}
