//! `fairway check` as users call it: from standard input, and for FRR.

use std::io::Write;
use std::process::{Command, Output, Stdio};

use super::{SOUND_PEER, manifest, peer};

fn check(arguments: &[&str], input: &str) -> Output {
    check_into(Stdio::piped(), arguments, input)
}

fn check_into(stdout: Stdio, arguments: &[&str], input: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_fairway"));
    command.arg("check").args(arguments).arg("-");
    command.stdin(Stdio::piped()).stdout(stdout).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    // The child may end before it reads anything.
    let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    child.wait_with_output().unwrap()
}

#[test]
fn what_kubectl_shows_is_checked_from_standard_input() {
    let output = check(&[], include_str!("dump.json"));
    let (said, counted) =
        (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap());
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert!(said.lines().all(|line| line.contains(": warning: ")), "{said}");
    assert!(counted.contains("4 of other kinds skipped, 0 faults"), "{counted}");
}

#[test]
fn a_folder_with_nothing_to_read_is_a_fault_and_one_with_a_comment_is_not() {
    let root = tempfile::tempdir().unwrap();
    let folder = |name: &str| {
        let folder = root.path().join(name);
        std::fs::create_dir(&folder).unwrap();
        folder
    };
    let check = |folder: &std::path::Path| {
        let output =
            Command::new(env!("CARGO_BIN_EXE_fairway")).arg("check").arg(folder).output().unwrap();
        (output.status.code(), String::from_utf8(output.stdout).unwrap())
    };
    let (code, said) = check(&folder("empty"));
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("empty: holds nothing to read: it is empty; expected files"), "{said}");
    let nested = folder("nested");
    std::fs::create_dir(nested.join("peers")).unwrap();
    std::fs::write(nested.join("bird.conf"), "router id 192.0.2.1;\n").unwrap();
    std::fs::write(nested.join("frr.conf"), "hostname a\n").unwrap();
    let (code, said) = check(&nested);
    assert_eq!(code, Some(1), "{said}");
    let has = "it has 1 folder, peers, and 2 other files, such as bird.conf; expected files";
    assert!(said.contains(has), "{said}");
    std::fs::write(nested.join("later.yaml"), "# nothing yet\n").unwrap();
    assert_eq!(check(&nested), (Some(0), String::new()));
}

#[test]
fn a_reader_that_has_seen_enough_is_no_failure() {
    let faulty = manifest("v1", "Service", "spec: {type: Loadbalancer, ports: [{port: 80}]}");
    for format in [[].as_slice(), &["--json"]] {
        let (reader, stdout) = std::io::pipe().unwrap();
        drop(reader);
        let output = check_into(stdout.into(), format, &faulty);
        assert_eq!(output.status.code(), Some(1), "{output:?}");
    }
}

#[test]
fn what_frr_cannot_do_is_a_fault_only_where_frr_is_to_do_it() {
    let keys = "tcpAO:\n  keys:\n  - {sendID: 1, recvID: 1, algorithm: hmac-sha-1-96, secret: \
                {name: new, key: a}}\naddPath: {send: 2}";
    let secret = manifest("v1", "Secret", "stringData: {a: one}");
    let text = format!("{}---\n{secret}", peer(&format!("{SOUND_PEER}{keys}")));
    assert_eq!(check(&["--bgp", "native"], &text).status.code(), Some(0));
    let output = check(&["--bgp", "frr", "--frr-version", "8.4"], &text);
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(said.contains("stdin:9: BGPPeer/new: spec.tcpAO: is not supported with FRR"), "{said}");
    assert!(said.contains("BGPPeer/new: spec.addPath.send: needs FRR 9.1 or newer"), "{said}");
    // What no version supports stays a fault.
    let newer = check(&["--bgp", "frr", "--frr-version", "10.4.1"], &text);
    let said = String::from_utf8(newer.stdout).unwrap();
    assert!(said.contains("spec.tcpAO") && !said.contains("needs FRR 9.1"), "{said}");
    assert_eq!(check(&["--bgp", "frr", "--frr-version", "ten"], &text).status.code(), Some(2));
}

#[test]
fn what_frr_does_itself_is_not_asked_of_us_as_well() {
    for (option, who) in [(&["--bgp-listen", "none"][..], "bgpd"), (&["--bfd-realtime"], "bfdd")] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_fairway"));
        command.args(["run", "--config", "/nonexistent", "--bgp", "frr"]).args(option);
        let output = command.output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains(option.first().unwrap()) && said.contains(who), "{said}");
    }
}

#[test]
fn members_need_a_key_and_hosts_and_expressions_are_checked() {
    let key = ["--member-key-file", "/nonexistent"];
    for (options, words) in [
        (&["--members", "host-b"][..], "--members needs --member-key-file"),
        (&key, "--member-key-file needs --members"),
        (&["--members", "host b"], "expected HOST or HOST:PORT"),
        (&["--layer2-exclude", "("], "unclosed group"),
    ] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_fairway"));
        command.args(["run", "--config", "/nonexistent"]).args(options);
        let output = command.output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains(words), "{said}");
    }
}

#[test]
fn what_metallb_would_take_away_is_a_fault_and_what_it_would_forget_a_warning() {
    let service = |name: &str, pools: &str, status: &str| {
        format!(
            "apiVersion: v1\nkind: Service\nmetadata:\n  name: {name}\n  annotations: {{{pools}}}\n\
             spec: {{type: LoadBalancer, ipFamilyPolicy: RequireDualStack, ports: [{{port: 80}}]}}\n\
             status: {{loadBalancer: {{ingress: [{status}]}}}}\n---\n"
        )
    };
    let pools = [
        "four: 192.0.2.0/28",
        "six: '2001:db8::/124'",
        "both: 198.51.100.0/28, '2001:db8:1::/124'",
    ];
    let pools = pools.map(|pool| {
        let (name, addresses) = pool.split_once(": ").unwrap();
        let spec = format!("{{addresses: [{addresses}], reserved: []}}");
        let kind = "apiVersion: metallb.io/v1beta1\nkind: IPAddressPool";
        format!(
            "{kind}\nmetadata: {{name: {name}, namespace: metallb-system}}\nspec: {spec}\n---\n"
        )
    });
    let two = service("two", "fairway.dev/address-pools: 'four,six'", "");
    let one = service("one", "", "{ip: 198.51.100.1}, {ip: '2001:db8:1::1'}");
    let blackhole = manifest(
        "metallb.io/v1beta1",
        "BGPAdvertisement",
        "spec: {prefixes: [192.0.2.0/24], med: 5}",
    );
    let text = format!("{}{two}{one}{blackhole}", pools.concat());
    let said = |arguments: &[&str]| {
        let output = check(arguments, &text);
        (output.status.code(), String::from_utf8(output.stdout).unwrap())
    };
    let (code, before) = said(&[]);
    assert_eq!(code, Some(0), "{before}");
    assert!(!before.contains("Service/"), "{before}");
    let (code, said) = said(&["--for", "metallb"]);
    assert_eq!(code, Some(1), "{said}");
    for part in [
        "Service/two: MetalLB would take 192.0.2.0 and 2001:db8:: away: they are in the pools four and six",
        "BGPAdvertisement/new: spec.prefixes: MetalLB has no such field: without it",
        "BGPAdvertisement/new: spec.med: warning: MetalLB has no such field",
        "IPAddressPool/four: spec.reserved: warning: MetalLB has no such field",
    ] {
        assert!(said.contains(part), "{part}\n{said}");
    }
    assert!(!said.contains("Service/one"), "{said}");
    assert_eq!(said.matches("spec.prefixes").count(), 1, "it is said once: {said}");
}

#[test]
fn what_metallb_refuses_in_one_of_its_modes_is_a_fault_for_that_mode_alone() {
    let peer = "spec: {myASN: 64500, peerASN: 64501, peerAddress: 192.0.2.1, enableGracefulRestart: true, \
                connectTime: 5s, disableMP: true}";
    let other = "spec: {myASN: 64502, peerASN: 64501, peerAddress: 192.0.2.3, disableMP: false}";
    let pool = "spec: {addresses: ['2001:db8::/124']}";
    let advertisement = "spec: {communities: ['large:64500:1:2'], asPathPrepend: 2}";
    let manifests = [
        manifest("metallb.io/v1beta2", "BGPPeer", peer),
        manifest("metallb.io/v1beta2", "BGPPeer", other).replace("name: new", "name: other"),
        manifest("metallb.io/v1beta1", "IPAddressPool", pool),
        manifest("metallb.io/v1beta1", "BGPAdvertisement", advertisement),
    ];
    let text = manifests.join("---\n");
    let faults = |takeover: &str| -> Vec<String> {
        let output = check(&["--for", takeover], &text);
        let said = String::from_utf8(output.stdout).unwrap();
        let faults = said.lines().filter(|it| it.contains("apply no configuration"));
        faults
            .filter_map(|it| {
                Some(it.split_once(": ")?.1.rsplit_once(": MetalLB refuses")?.0.to_owned())
            })
            .collect()
    };
    assert_eq!(faults("metallb"), [""; 0]);
    assert_eq!(
        faults("metallb-native"),
        [
            "BGPAdvertisement/new: spec.asPathPrepend: only the mode frr-k8s has it",
            "BGPPeer/new: spec.connectTime: the native mode has no such setting",
            "BGPPeer/new: spec.enableGracefulRestart: the native mode has no such setting",
            "BGPPeer/new: spec.disableMP: the native mode has no such setting",
            "IPAddressPool/new: spec.addresses: has IPv6 addresses that a BGPAdvertisement announces, which the native \
             mode cannot",
            "BGPAdvertisement/new: spec.communities: the native mode has no large communities",
        ]
    );
    assert_eq!(
        faults("metallb-frr"),
        [
            "BGPAdvertisement/new: spec.asPathPrepend: only the mode frr-k8s has it, not that with FRR in the speaker's Pod",
            "BGPPeer/other: spec.myASN: has another AS of its own than the peer new on the same node",
        ]
    );
}

#[test]
fn an_address_that_would_be_added_to_a_status_is_reported() {
    let dual = "spec: {type: LoadBalancer, ipFamilyPolicy: PreferDualStack, ports: [{port: 80}]}\n\
                status: {loadBalancer: {ingress: [{ip: 192.0.2.7}]}}";
    let pool = manifest(
        "metallb.io/v1beta1",
        "IPAddressPool",
        "spec: {addresses: [192.0.2.0/28, '2001:db8::/124']}",
    );
    let output = check(&[], &format!("{pool}---\n{}", manifest("v1", "Service", dual)));
    let said = String::from_utf8(output.stdout).unwrap();
    let expected = "Service/new: warning: gets 2001:db8:: beside 192.0.2.7, which is not what its \
                    status says";
    assert!(said.contains(expected), "{said}");
}

#[test]
fn what_a_migration_leaves_behind_is_a_fault() {
    let configuration = |name: &str| {
        format!(
            "apiVersion: frrk8s.metallb.io/v1beta1\nkind: FRRConfiguration\nmetadata: {{name: {name}, \
             namespace: frr-k8s-system}}\nspec: {{bgp: {{routers: [{{asn: 64512}}]}}}}\n---\n"
        )
    };
    let input = configuration("receive-all") + &configuration("metallb-worker-1");
    let output = check(&[], &input);
    let said = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.starts_with("stdin:1: FRRConfiguration/receive-all: is not read: "), "{said}");
    let own = "stdin:6: FRRConfiguration/metallb-worker-1: warning: is not read";
    assert!(said.contains(own), "MetalLB's own repeats what is said elsewhere: {said}");
    assert_eq!(check(&[], &configuration("metallb-worker-1")).status.code(), Some(0));

    let pool = |namespace: &str| {
        format!(
            "apiVersion: metallb.io/v1beta1\nkind: IPAddressPool\nmetadata: {{name: {namespace}-pool, \
             namespace: {namespace}}}\nspec: {{addresses: [203.0.113.0/28]}}\n"
        )
    };
    let service = "---\napiVersion: v1\nkind: Service\nmetadata: {name: web, namespace: shop}\nspec: \
                   {type: LoadBalancer, ports: [{port: 80}]}\n";
    let inside = ["--namespace", "metallb-system"];
    assert_eq!(check(&inside, &(pool("metallb-system") + service)).status.code(), Some(0));
    let output = check(&inside, &(pool("shop") + service));
    let said = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(1), "{said}");
    let fault = "IPAddressPool/shop-pool: metadata.namespace: is shop; expected metallb-system";
    assert!(said.contains(fault), "{said}");
    assert_eq!(
        check(&[], &(pool("shop") + service)).status.code(),
        Some(0),
        "files have no namespace"
    );
}
