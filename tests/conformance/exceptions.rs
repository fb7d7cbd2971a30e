//! Requirements that apply to what we speak, and that we meet differently or not yet, each with
//! its reason. A table to be read; the page prints it.

use crate::annotation::{Level, Row};
use crate::page;

/// One requirement that no test shows, and why.
pub(crate) struct Exception {
    pub(crate) rfc: u32,
    pub(crate) section: &'static str,
    pub(crate) level: Level,
    pub(crate) requirement: &'static str,
    pub(crate) reason: &'static str,
}

const fn except(
    rfc: u32,
    section: &'static str,
    level: Level,
    requirement: &'static str,
    reason: &'static str,
) -> Exception {
    Exception { rfc, section, level, requirement, reason }
}

use Level::{May, Must, MustNot, Should, ShouldNot};

#[rustfmt::skip]
pub(crate) const EXCEPTIONS: &[Exception] = &[
    // What a session does.
    except(4271, "4.2", Must, "the BGP identifier is the same for every peer",
        "`routerID` belongs to a BGPPeer, as in MetalLB, so an operator can give each session its own; without it all are the same."),
    except(4271, "6.8", May, "connections in OpenSent are looked at when the identifier of the peer is known by other means",
        "We look at them when an OPEN came over the other connection: it has said who the neighbor is. Deciding then keeps either side from being Established on the connection that the other is about to close."),
    except(4271, "8.2.2", Must, "connections are refused in Idle",
        "They are accepted: a neighbor that has just restarted would else wait for our timer for nothing."),
    except(4271, "8.2.2", Must, "a dial that fails in Connect leads to Idle",
        "It leads to Active, since we go on listening; the next dial waits for ConnectRetryTimer all the same."),
    except(4271, "8.2.2", Must, "ConnectRetryTimer that expires in Connect leads to another dial at once",
        "It leads to Active, and the next dial waits as after any dial that failed: one that nobody answered is not helped by haste."),
    except(4271, "8.2.2", Must, "TCP that fails or a message that does not fit leads from Active to Idle",
        "Active stays Active, and our own dial stays due when it was: who dials us and leaves, or talks out of turn, must not put it off."),
    except(4271, "8.2.2", Must, "TCP that fails in OpenSent, or in Connect while DelayOpenTimer runs, leads to Active",
        "It leads to Idle and waits like every session that ends: a neighbor that accepts and closes would else be dialled without damping."),
    except(4271, "8.2.2", Must, "a NOTIFICATION in OpenSent that is not about the version is answered with Finite State Machine Error",
        "It leads to Idle without an answer, like one about the version: who sent it has closed the connection, and hears no more."),
    except(4271, "8.2.2", Must, "with a hold time of zero no hold timer runs in OpenConfirm",
        "One of 30 s runs until the KEEPALIVE comes: a neighbor that never sends it would else hold its slot for ever. In Established none runs."),
    except(4271, "8.2.2", Should, "the hold timer before an OPEN is four minutes",
        "It is 30 s: who is silent after connecting will not begin to talk later, and holds a slot."),
    except(4271, "9.2.1.1", Must, "UPDATEs about the same destination are MinRouteAdvertisementInterval apart",
        "There is no such interval: a Service that moves must not wait for it. Changes that wait for a busy socket are merged, so a prefix that flaps costs one message at a time."),
    except(4271, "9.2.1.2", Must, "UPDATEs about our own destinations are MinASOriginationInterval apart",
        "There is no such interval, for the same reason."),
    except(4271, "9.1.3", MustNot, "a route is told that our routing table cannot forward",
        "The addresses of Services are in no routing table: kube-proxy takes their packets. What says that a node can forward them is its endpoints."),
    except(4271, "10", Should, "ConnectRetryTime is 120 s",
        "It is 5 s, or `connectTime`: a router that comes back should have its routes soon."),
    // What is heard.
    except(4271, "5.1.4", Must, "configuration can remove MULTI_EXIT_DISC from a route",
        "Not yet: `toReceive` says which prefixes are taken, and changes none of their attributes. Towards other systems the MULTI_EXIT_DISC of a route that was heard is always left out."),
    except(4271, "6.3", Must, "a next hop of an external peer next door is refused where we have no subnet of its family",
        "It is taken: an address that DHCP or a cloud gave without its network, or none at all yet, says nothing about who is next door."),
    except(4271, "9.1.2", Must, "a route whose next hop cannot be resolved is not chosen",
        "Where routes are installed (`installRoutes`) it is not. Where they are not, it is not asked: no packet is sent there by Fairway, and other systems are told a next hop of ours."),
    except(4271, "9.1.2.2", Must, "the lowest cost to the next hop wins",
        "No cost is known, so all are equal, as the step allows where none can be determined."),
    except(2545, "3", Must, "a link-local address goes along with the next hop on a subnet that is shared",
        "On a session between global addresses it is left out: routers prefer it where it is there, also where it is wrong; a global address is right on every topology. On an unnumbered session it is there."),
    except(5492, "3", Should, "who refuses the optional parameter is tried again without capabilities",
        "No: without capabilities neither AS numbers of four octets nor IPv6 would work, and no router of this century asks for it."),
    except(5492, "3", ShouldNot, "a peering that was ended with 2/7 comes back by itself",
        "It is tried again, at most every 30 s: the other side may be corrected, and nobody should have to touch ours."),
    except(4724, "4.1", Must, "route selection waits until all neighbors have sent End-of-RIB",
        "Routes are passed on as they come, and installed beside those of the earlier run, which stay in the kernel until all are known. End-of-RIB to a neighbor waits for that of those whose routes it is told, and it keeps what it has from before until then."),
    except(4724, "4.1", Must, "the bound on that wait can be configured",
        "It is half of `restartTime`, which can: the neighbors count with that."),
    except(9494, "5", Must, "the long-lived procedures are asked for by family",
        "`gracefulRestart.longLivedStaleTime` is for all families of a peer: who wants one family less has a peer for each."),
    except(7313, "5", Should, "a ROUTE-REFRESH of a subtype that does not exist is logged",
        "It is counted like any other and ignored: a line for each would be a log that a neighbor can fill as fast as it likes."),
    except(8654, "4", Should, "a message that is too long for a peer is made shorter by leaving attributes out",
        "A route goes out as it is or not at all, and `show bgp neighbors` says why: what was left out would be missed where nobody looks for it."),
    except(7606, "4", Must, "an attribute that may not be empty is malformed when it is",
        "This holds for the attributes that we know. Of others nobody can say whether they may be empty; they are kept as they came."),
    except(7606, "6", Must, "the log has the prefixes and all of a malformed UPDATE",
        "It has them at most once in 10 s for each neighbor, with the number of those between. A log that a neighbor can fill as fast as it likes would be a fault of its own."),
    // How sessions end.
    except(4486, "4", Should, "a connection from somebody who is no peer is ended with Connection Rejected",
        "It is reset before a byte is read: who is not configured learns nothing, and costs nothing."),
    except(4486, "4", Should, "automatic retries come to an end",
        "They never do: they are damped to one in 30 s, and a node must find its router again without anybody's help."),
    // How far away a neighbour is.
    except(5082, "6.1", Must, "related ICMP errors leave with a TTL of 255 and must arrive with one",
        "They are the kernel's. Linux holds ICMPv6 errors of a session to its hop limit and lets ICMP errors of IPv4 be: they can slow a session down and not end it. It sends none about TCP of its own, unless a firewall is told to."),
    // RPKI.
    except(6811, "3", Must, "the policy can set the state of a route",
        "Nothing reads it but rules of toReceive, which can give the route a community instead."),
    except(8210, "5.1", Must, "all data of a cache is dropped when its session is another one",
        "It stays until the cache has said all of the new session, seconds later, or until it expires: a restarted cache takes no state from a route."),
    except(8210, "10", Should, "of several caches the most preferred one is used",
        "What any of them says counts, as in BIRD."),
    // What BMP stations are told.
    except(7854, "3.2", May, "attempts to connect to a station are 30 s apart at first, and 720 s at most",
        "From 1 s to 2 minutes: what happens meanwhile is lost to the station, and an attempt costs little."),
    except(7854, "4.4", Must, "sysDescr and sysName are those of MIB-II",
        "Nothing here speaks SNMP. They are the name and version of Fairway, and the host name, which an SNMP agent would report, too."),
    except(7854, "5", Must, "the end of a neighbor's pre-policy routes is marked",
        "It is marked where the neighbor marks it (RFC 7313) or sends End-of-RIB itself: its routes are not kept as it announced them, and without a mark of its own nobody knows which was the last."),
    except(7854, "5", May, "routes that changed together are in one UPDATE",
        "They are in what a neighbor sends and is sent. Of other tables each route is an UPDATE of its own, made when the station takes it: grouping them would need a copy of the table."),
    except(8671, "7.2", Must, "what a station is told changes between a Peer Down and a Peer Up",
        "It changes between two connections: the station is sent a Termination and told all there is on a new one, as when it connects for the first time."),
    except(8671, "8", Should, "stations are authorized and trusted",
        "They are by their address: who configures one trusts it, and the network to it. There is no authentication in the protocol."),
    except(9069, "5.4.2", Should, "changes of the Loc-RIB are compressed and throttled",
        "They are told as they happen: a station keeps the history of the table, too. One that does not take them in time loses its connection and begins again with what is there."),
    except(9069, "6.1.3", Must, "the names and filters of the Loc-RIB change between a Peer Down and a Peer Up",
        "Neither can be changed. Another AS or BGP identifier of this node ends the connection, and so does another choice of tables; the next one begins with all there is. The Loc-RIB itself never goes down before."),
    except(9069, "7", Should, "only stations that are authorized and trusted are told the Loc-RIB",
        "They are by their address, as for all tables."),
];

/// What is wrong with the table.
pub(crate) fn faults(rows: &[Row]) -> Vec<String> {
    let mut faults = Vec::new();
    for (position, Exception { rfc, section, requirement, reason, .. }) in
        EXCEPTIONS.iter().enumerate()
    {
        let name = format!("RFC {rfc} §{section}: {requirement}");
        if reason.len() < 20 || !reason.ends_with('.') {
            faults.push(format!("{name}: expected a reason, ending with a full stop"));
        }
        if !page::is_known(*rfc) {
            faults.push(format!("{name}: the page has no section for this RFC"));
        }
        let sentence = format!("{requirement}.");
        let is_shown = |row: &Row| row.requirement.rfc == *rfc && row.requirement.text == sentence;
        if rows.iter().any(is_shown) {
            faults.push(format!("{name}: a test shows it"));
        }
        let earlier = EXCEPTIONS.iter().take(position);
        if earlier.into_iter().any(|it| it.rfc == *rfc && it.requirement == *requirement) {
            faults.push(format!("{name}: is there twice"));
        }
    }
    faults
}
