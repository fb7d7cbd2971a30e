//! JSON, key by key and in order, against what FRR 8.4 prints in the same state.
//!
//! An expectation lists FRR's keys with the type of each value: `n`umber, `s`tring, `b`oolean,
//! `o`bject, `a`rray. A key that we leave out has a `-` in front, one that is ours a `+`.

use fairway_ground::Role;
use fairway_seam::capability::Capability;
use serde_json::{Value, json};

use super::super::ShowCommand;
use super::lab::{self, Lab};
use super::{advertised, json as shown, neighbors, text};

/// The keys of an object, in order, each with the type of its value.
fn shape(value: &Value) -> Vec<String> {
    let letter = |value: &Value| match value {
        Value::Null => '0',
        Value::Bool(_) => 'b',
        Value::Number(_) => 'n',
        Value::String(_) => 's',
        Value::Array(_) => 'a',
        Value::Object(_) => 'o',
    };
    let object = value.as_object().unwrap_or_else(|| panic!("no object: {value}"));
    object.iter().map(|(key, value)| format!("{key}:{}", letter(value))).collect()
}

pub(super) fn assert_shape(value: &Value, expected: &str) {
    let expected = expected.split_whitespace().filter(|word| !word.starts_with('-'));
    let expected: Vec<_> = expected.map(|word| word.trim_start_matches('+')).collect();
    assert_eq!(shape(value), expected, "{value:#}");
}

#[test]
fn a_summary_has_the_keys_of_frr() {
    let summary = shown(&Lab::new(), &super::summary());
    assert_shape(&summary, "ipv4Unicast:o ipv6Unicast:o");
    let family = &summary["ipv4Unicast"];
    assert_shape(
        family,
        "routerId:s as:n vrfId:n vrfName:s tableVersion:n ribCount:n ribMemory:n peerCount:n \
         peerMemory:n -peerGroupCount:n -peerGroupMemory:n peers:o failedPeers:n \
         displayedPeers:n totalPeers:n dynamicPeers:n bestPath:o",
    );
    assert_eq!(family["as"], 65001);
    assert_eq!((&family["peerCount"], &family["failedPeers"]), (&json!(4), &json!(3)));
    assert_eq!(family["ribCount"], 2);
    let peers = family["peers"].as_object().unwrap();
    let order: Vec<_> = peers.keys().map(String::as_str).collect();
    assert_eq!(order, ["10.1.1.2", "10.1.1.97", "10.1.2.2", "10.9.9.9"]);
    assert_shape(
        &peers["10.1.1.2"],
        "+hostname:s remoteAs:n localAs:n version:n msgRcvd:n msgSent:n tableVersion:n outq:n \
         inq:n peerUptime:s peerUptimeMsec:n peerUptimeEstablishedEpoch:n pfxRcd:n pfxSnt:n \
         +pfxRefused:n state:s peerState:s connectionsEstablished:n connectionsDropped:n desc:s \
         idType:s",
    );
    let never = "remoteAs:n localAs:n version:n msgRcvd:n msgSent:n tableVersion:n outq:n inq:n \
         peerUptime:s peerUptimeMsec:n pfxRcd:n pfxSnt:n +pfxRefused:n state:s peerState:s \
         connectionsEstablished:n connectionsDropped:n desc:s idType:s";
    assert_shape(&peers["10.1.1.97"], never);
    assert_shape(&peers["10.9.9.9"], &never.replace("desc:s", ""));
    let down = never.replace("pfxRcd:n", "peerUptimeEstablishedEpoch:n pfxRcd:n");
    assert_shape(&peers["10.1.2.2"], &down);
}

#[test]
fn the_values_of_a_summary_are_those_of_each_state() {
    let summary = shown(&Lab::new(), &super::summary());
    let peers = &summary["ipv4Unicast"]["peers"];
    let up = &peers["10.1.1.2"];
    assert_eq!(up["state"], "Established");
    assert_eq!(
        (&up["pfxRcd"], &up["pfxSnt"], &up["pfxRefused"]),
        (&json!(0), &json!(2), &json!(6))
    );
    assert_eq!((&up["msgRcvd"], &up["msgSent"]), (&json!(20), &json!(13)));
    assert_eq!((&up["peerUptime"], &up["peerUptimeMsec"]), (&json!("00:00:21"), &json!(21_000)));
    assert_eq!(up["peerUptimeEstablishedEpoch"], 1_795_192_662);
    assert_eq!(up["hostname"], "r1");
    assert_eq!(
        (&peers["10.1.1.97"]["state"], &peers["10.1.1.97"]["peerUptime"]),
        (&json!("Connect"), &json!("never"))
    );
    assert_eq!(
        (&peers["10.1.2.2"]["state"], &peers["10.1.2.2"]["pfxSnt"]),
        (&json!("Idle"), &json!(0))
    );
    assert_eq!(summary["ipv6Unicast"]["peers"]["2001:db8:1:1::2"]["idType"], "ipv6");
}

/// Keys of `show bgp neighbors`, cut where the states differ.
const IDENTITY: &str = "remoteAs:n localAs:n nbrExternalLink:b localRole:s remoteRole:s";
const ROUTER_IDS: &str = "bgpVersion:n remoteRouterId:s localRouterId:s bgpState:s";
const LAST_MESSAGES: &str = "bgpTimerLastRead:n bgpTimerLastWrite:n";
const TIMERS: &str = "-bgpInUpdateElapsedTimeMsecs:n bgpTimerConfiguredHoldTimeMsecs:n \
    bgpTimerConfiguredKeepAliveIntervalMsecs:n bgpTimerHoldTimeMsecs:n \
    bgpTimerKeepAliveIntervalMsecs:n -extendedOptionalParametersLength:b \
    -bgpTimerConfiguredConditionalAdvertisementsSec:n";
const COUNTERS: &str = "gracefulRestartInfo:o messageStats:o \
    minBtwnAdvertisementRunsTimerMsecs:n addressFamilyInfo:o connectionsEstablished:n \
    connectionsDropped:n";
const NOTIFICATION: &str = "lastResetTimerMsecs:n lastErrorCodeSubcode:s \
    lastNotificationReason:s lastNotificationHardReset:b";
const RESET: &str = "lastResetDueTo:s lastResetCode:n";
const ENDS: &str = "externalBgpNbrMaxHopsAway:n hostLocal:s portLocal:n hostForeign:s \
    portForeign:n -nexthop:s -nexthopGlobal:s -nexthopLocal:s -bgpConnection:s \
    connectRetryTimer:n -estimatedRttInMsecs:n";
const REFUSALS: &str = "-readThread:s -writeThread:s +malformedUpdates:o +refusedPrefixes:o \
                        +unannounced:a";

#[test]
fn an_established_neighbor_has_the_keys_of_frr() {
    let neighbors = shown(&Lab::new(), &neighbors("10.1.1.2"));
    let peer = &neighbors["10.1.1.2"];
    assert_shape(
        peer,
        &format!(
            "{IDENTITY} nbrDesc:s +hostname:s {ROUTER_IDS} bgpTimerUpMsec:n bgpTimerUpString:s \
             bgpTimerUpEstablishedEpoch:n {LAST_MESSAGES} {TIMERS} neighborCapabilities:o \
             {COUNTERS} {NOTIFICATION} {RESET} +lastNotification:o +lastErrorText:s {ENDS} \
             authenticationEnabled:n -peerBfdInfo:o {REFUSALS}"
        ),
    );
    assert_shape(
        &peer["messageStats"],
        "depthInq:n depthOutq:n opensSent:n opensRecv:n notificationsSent:n notificationsRecv:n \
         updatesSent:n updatesRecv:n keepalivesSent:n keepalivesRecv:n routeRefreshSent:n \
         routeRefreshRecv:n capabilitySent:n capabilityRecv:n totalSent:n totalRecv:n",
    );
    assert_shape(
        &peer["addressFamilyInfo"]["ipv4Unicast"],
        "-updateGroupId:n -subGroupId:n -packetQueueLength:n commAttriSentToNbr:s \
         inboundPathPolicyConfig:b outboundPathPolicyConfig:b acceptedPrefixCounter:n \
         sentPrefixCounter:n +prefixesRefused:n",
    );
    assert_eq!(peer["lastErrorCodeSubcode"], "0600");
    assert_eq!(peer["lastNotificationReason"], "Cease/Unspecific");
    assert_eq!((&peer["hostLocal"], &peer["portLocal"]), (&json!("10.1.1.1"), &json!(50_296)));
    assert_eq!(peer["authenticationEnabled"], 1);
    assert_eq!(peer["bgpTimerKeepAliveIntervalMsecs"], 3_000);
}

#[test]
fn capabilities_say_who_offered_what() {
    let mut lab = Lab::new();
    let of = |lab: &Lab| {
        let neighbors = shown(lab, &neighbors("10.1.1.2"));
        neighbors["10.1.1.2"]["neighborCapabilities"].clone()
    };
    let expected = json!({
        "4byteAs": "advertisedAndReceived",
        "routeRefresh": "advertisedAndReceivedOldNew",
        "enhancedRouteRefresh": "received",
        "multiprotocolExtensions": {"ipv4Unicast": {"advertisedAndReceived": true}},
        "hostName": {"rcvHostName": "r1", "rcvDomainName": "n/a"},
        "unknownCapabilities": [{"code": 99, "valueHex": "01ff"}],
    });
    assert_eq!(of(&lab).to_string(), expected.to_string());
    lab.router_one().session.as_mut().unwrap().capabilities_received.clear();
    let expected = json!({
        "4byteAs": "advertised",
        "routeRefresh": "advertised",
        "multiprotocolExtensions": {"ipv4Unicast": {"advertised": true}},
    });
    assert_eq!(of(&lab).to_string(), expected.to_string());
}

#[test]
fn names_versions_and_roles_are_shown_in_the_words_of_frr() {
    let mut lab = Lab::new();
    let peer = lab.router_one();
    peer.config.role = Some(Role::Provider);
    let session = peer.session.as_mut().unwrap();
    session.capabilities_sent.push(Capability::Role(0));
    session.capabilities_received.retain(|it| !matches!(it, Capability::HostName { .. }));
    session.capabilities_received.extend([
        Capability::Role(3),
        Capability::HostName { host: b"r1\x1b".to_vec(), domain: b"lab".to_vec() },
        Capability::SoftwareVersion(b"FRRouting/10.3".to_vec()),
    ]);
    let peer = &shown(&lab, &neighbors("10.1.1.2"))["10.1.1.2"];
    let roles = (&peer["localRole"], &peer["remoteRole"]);
    assert_eq!(roles, (&json!("provider"), &json!("customer")));
    assert_eq!(peer["softwareVersion"], "FRRouting/10.3");
    let capabilities = &peer["neighborCapabilities"];
    assert_eq!(capabilities["role"], "advertisedAndReceived");
    let name = json!({"rcvHostName": "r1\\u{1b}", "rcvDomainName": "lab"});
    assert_eq!(capabilities["hostName"].to_string(), name.to_string());
    let version = json!({"receivedSoftwareVersion": "FRRouting/10.3"});
    assert_eq!(capabilities["softwareVersion"], version);
    let lines = text(&lab, &neighbors("10.1.1.2")).unwrap();
    for line in [
        "  Local Role: provider\n  Remote Role: customer\n",
        "    Role: advertised and received\n",
        "    Hostname Capability: not advertised received (name: r1\\u{1b},domain name: lab)\n",
        "    Version Capability: not advertised received software version (FRRouting/10.3)\n",
    ] {
        assert!(lines.contains(line), "{line}{lines}");
    }
}

#[test]
fn a_neighbor_that_was_never_up_has_the_keys_of_frr() {
    let lab = Lab::new();
    let neighbors_shown = shown(&lab, &ShowCommand::BgpNeighbors { peer: None, family: None });
    let silent = &neighbors_shown["10.1.1.97"];
    assert_shape(
        silent,
        &format!(
            "{IDENTITY} nbrDesc:s {ROUTER_IDS} {TIMERS} {COUNTERS} lastResetTimerMsecs:n {RESET} \
             +lastErrorText:s {ENDS} nextConnectTimerDueInMsecs:n +nextConnectInMsec:n {REFUSALS}"
        ),
    );
    assert_eq!((&silent["hostLocal"], &silent["portForeign"]), (&json!("Unknown"), &json!(-1)));
    assert_eq!(silent["remoteRouterId"], "0.0.0.0");
    assert_eq!(silent["lastResetCode"], 32);
    let family = &silent["addressFamilyInfo"]["ipv4Unicast"];
    assert_eq!(family["acceptedPrefixCounter"], 0);
    assert!(family.get("sentPrefixCounter").is_none());
    let untried = &neighbors_shown["10.9.9.9"];
    assert_eq!(untried["lastReset"], "never");
    assert!(untried.get("lastResetDueTo").is_none());
    assert_eq!(untried["nextConnectTimerDueInMsecs"], 98_000);
}

#[test]
fn a_neighbor_that_was_shut_down_says_so_in_the_words_of_frr() {
    let neighbors = shown(&Lab::new(), &neighbors("router-two"));
    let peer = &neighbors["10.1.2.2"];
    assert_shape(
        peer,
        &format!(
            "{IDENTITY} nbrDesc:s {ROUTER_IDS} {LAST_MESSAGES} {TIMERS} {COUNTERS} \
             {NOTIFICATION} lastShutdownDescription:s {RESET} +lastNotification:o \
             +lastErrorText:s {ENDS} nextStartTimerDueInMsecs:n +nextConnectInMsec:n {REFUSALS}"
        ),
    );
    assert_eq!(peer["lastResetDueTo"], "BGP Notification received");
    assert_eq!(peer["lastResetCode"], 13);
    assert_eq!(peer["lastErrorCodeSubcode"], "0602");
    assert_eq!(peer["lastShutdownDescription"], "planned work");
    assert_eq!(peer["nextStartTimerDueInMsecs"], 1_500);
    let notification = json!({
        "direction": "received",
        "code": 6,
        "subcode": 2,
        "reason": "Cease/Administrative Shutdown",
        "text": "planned work",
    });
    assert_eq!(peer["lastNotification"], notification);
}

#[test]
fn a_table_has_the_keys_of_frr() {
    let lab = Lab::new();
    let table = shown(&lab, &lab::table_ipv4(None));
    assert_shape(
        &table,
        "vrfId:n vrfName:s tableVersion:n routerId:s defaultLocPrf:n localAS:n routes:o totalRoutes:n totalPaths:n",
    );
    let path = &table["routes"]["203.0.113.10/32"][0];
    assert_shape(
        path,
        "valid:b bestpath:b selectionReason:s pathFrom:s prefix:s prefixLen:n network:s \
         version:n metric:n weight:n peerId:s path:s origin:s nexthops:a",
    );
    assert_shape(&path["nexthops"][0], "ip:s hostname:s afi:s used:b");
    assert_eq!((&path["peerId"], &path["weight"]), (&json!("(unspec)"), &json!(32_768)));
    let second = &table["routes"]["203.0.113.11/32"][1];
    assert_eq!((&second["multipath"], &second["locPrf"]), (&json!(true), &json!(200)));
    assert!(second.get("bestpath").is_none());
    let family = fairway_ground::AddressFamily::Ipv6Unicast;
    let table = shown(&lab, &ShowCommand::BgpUnicast { family, prefix: None });
    let next_hop = &table["routes"]["2001:db8:aaaa::10/128"][0]["nexthops"][0];
    assert_shape(next_hop, "ip:s hostname:s afi:s scope:s used:b");
}

#[test]
fn an_entry_has_the_keys_of_frr_and_its_communities() {
    let entry = shown(&Lab::new(), &lab::table_ipv4(Some("203.0.113.10")));
    assert_shape(&entry, "prefix:s version:n advertisedTo:o paths:a");
    assert_eq!(entry["advertisedTo"], json!({"10.1.1.2": {}}));
    let path = &entry["paths"][0];
    assert_shape(
        path,
        "aspath:o origin:s metric:n weight:n valid:b version:n sourced:b local:b bestpath:o \
         +community:o +largeCommunity:o -lastUpdate:o nexthops:a peer:o",
    );
    assert_shape(&path["nexthops"][0], "ip:s hostname:s afi:s metric:n accessible:b used:b");
    assert_eq!(path["peer"], json!({"peerId": "0.0.0.0", "routerId": "10.0.0.1"}));
    let community = json!({"string": "65001:100 no-export", "list": ["65001:100", "noExport"]});
    assert_eq!(path["community"], community);
    assert_eq!(path["largeCommunity"]["list"], json!(["65001:1:10"]));
}

#[test]
fn advertised_routes_have_the_keys_of_frr_and_what_was_sent() {
    let lab = Lab::new();
    let table = shown(&lab, &advertised("10.1.1.2"));
    assert_shape(
        &table,
        "bgpTableVersion:n bgpLocalRouterId:s defaultLocPrf:n localAS:n bgpStatusCodes:o \
         bgpOriginCodes:o advertisedRoutes:o totalPrefixCounter:n filteredPrefixCounter:n",
    );
    let route = &table["advertisedRoutes"]["203.0.113.10/32"];
    assert_shape(
        route,
        "addrPrefix:s prefixLen:n network:s nextHop:s -metric:n weight:n path:s bgpOriginCode:s \
         appliedStatusSymbols:o +community:o +largeCommunity:o",
    );
    assert_eq!((&route["nextHop"], &route["path"]), (&json!("10.1.1.1"), &json!("65001")));
    let table = shown(&lab, &advertised("2001:db8:1:1::2"));
    let route = &table["advertisedRoutes"]["2001:db8:aaaa::10/128"];
    assert_eq!(route["nextHopGlobal"], "2001:db8:1:1::1");
    let nobody = shown(&lab, &advertised("10.1.1.97"));
    assert_shape(&nobody, "advertisedRoutes:o totalPrefixCounter:n filteredPrefixCounter:n");
}
