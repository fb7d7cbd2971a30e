//! Which program a text was written for.

use crate::Program;

fn all_are(texts: &[&str], program: Option<Program>) {
    for text in texts {
        assert_eq!(Program::of(text), program, "{text}");
    }
}

#[test]
fn objects_are_recognized_in_yaml_and_in_json_of_one_line_or_many() {
    all_are(
        &[
            "# routers\n---\nkind: List\nitems: []\n",
            "data: {}\napiVersion: v1\n",
            "{\"apiVersion\":\"cilium.io/v2\",\"kind\":\"CiliumBGPPeerConfig\"}\n",
            "{\"items\":[{\"apiVersion\":\"cilium.io/v2\"}],\"kind\":\"List\"}",
            "{\n    \"apiVersion\": \"v1\",\n    \"items\": []\n}\n",
            "{ \"kind\": \"List\", \"apiVersion\": \"v1\" }",
            "---\n{\"apiVersion\":\"v1\"}\n",
            "{apiVersion: v1, kind: Secret}\n",
            "apiVersion: v1\nkind: ConfigMap\ndata:\n  frr.conf: |\n    frr version 8.4\n",
        ],
        Some(Program::Kubernetes),
    );
}

#[test]
fn keepalived_is_recognized_by_its_blocks_and_by_its_includes() {
    all_are(
        &[
            "vrrp_instance VI_1 {\n}\n",
            "! lists of files\ninclude /etc/keepalived/conf.d/*.conf\nvrrp_track_process haproxy {\n}\n",
            "# all of it\ninclude /etc/keepalived/a.conf\n\ninclude /etc/keepalived/b.conf\n",
            "virtual_server_group web {\n}\n",
            "global_defs {\n router_id lb1\n}\n",
        ],
        Some(Program::Keepalived),
    );
}

#[test]
fn frr_is_recognized_by_lines_that_others_do_not_have() {
    all_are(
        &[
            "frr version 8.4\n",
            "hostname a\nfrr defaults traditional\n",
            "log syslog\nrouter bgp 65001\n neighbor 192.0.2.1 remote-as 65002\n",
            "router bgp 65001\n address-family ipv4 unicast\n  network 10.0.0.0/8\n",
            "Building configuration...\n\nCurrent configuration:\n!\nfrr version 10.2\n",
        ],
        Some(Program::Frr),
    );
}

#[test]
fn a_line_that_many_programs_have_is_no_evidence() {
    all_are(
        &[
            "",
            "hostname a\n",
            "log file /var/log/x\n",
            "service timestamps debug datetime msec\nhostname r1\n",
            "version 15.2\nservice timestamps log datetime\nrouter bgp 65001\n neighbor 192.0.2.1 remote-as 65002\n",
            "interface Loopback0\n ip address 10.0.0.1 255.255.255.255\nrouter bgp 1\n neighbor 10.0.0.2 remote-as 1\n",
            "ip route 0.0.0.0 0.0.0.0 192.0.2.1\n",
            "route-map X permit 10\n",
            "router bgp 65001\n",
            "include \"/etc/bird/peers.conf\";\n",
            "{\"name\": \"something\"}\n",
        ],
        None,
    );
}
