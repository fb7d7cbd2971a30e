//! Which routes would leak? ONLY_TO_CUSTOMER keeps routes that were received from a provider or a peer from
//! being sent to one again (RFC 9234 §5).
//!
//! It is not configurable: no field of the operator sets, changes or removes it.

use fairway_ground::Role;

/// A route that was sent against its ONLY_TO_CUSTOMER.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Leak;

/// The ONLY_TO_CUSTOMER of a route received from a neighbour in `remote_asn` with `mark`, if our role towards
/// it is `role`.
pub(super) fn received(
    role: Option<Role>,
    remote_asn: u32,
    mark: Option<u32>,
) -> Result<Option<u32>, Leak> {
    match (role, mark) {
        (None, mark) => Ok(mark),
        (Some(Role::Provider | Role::RouteServer), Some(_)) => Err(Leak),
        (Some(Role::Peer), Some(asn)) if asn != remote_asn => Err(Leak),
        (Some(Role::Provider | Role::RouteServer), None) => Ok(None),
        (Some(Role::Customer | Role::RouteServerClient | Role::Peer), mark) => {
            Ok(mark.or(Some(remote_asn)))
        }
    }
}

/// The ONLY_TO_CUSTOMER that a route with `mark` is sent with to a neighbour, if we are in `local_asn` with
/// `role`.
pub(super) fn told(
    role: Option<Role>,
    local_asn: u32,
    mark: Option<u32>,
) -> Result<Option<u32>, Leak> {
    match (role, mark) {
        (None, mark) => Ok(mark),
        (Some(Role::Customer | Role::RouteServerClient | Role::Peer), Some(_)) => Err(Leak),
        (Some(Role::Customer | Role::RouteServerClient), None) => Ok(None),
        (Some(Role::Provider | Role::RouteServer | Role::Peer), mark) => {
            Ok(mark.or(Some(local_asn)))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WE: u32 = 65_001;
    const NEIGHBOUR: u32 = 65_002;
    const FAR: u32 = 7;

    //= RFC 9234 §5 MUST: a route with OTC from a customer or a client of our route server is not used.
    //= RFC 9234 §5 MUST: a route from a peer with another AS than the peer's in OTC is not used.
    //= RFC 9234 §5 MUST: a route without OTC from a provider, a peer or a route server is marked with its AS.
    #[test]
    fn what_is_received_is_judged_and_marked_by_who_said_it() {
        for (role, unmarked, by_neighbour, by_another) in [
            (Role::Provider, Ok(None), Err(Leak), Err(Leak)),
            (Role::RouteServer, Ok(None), Err(Leak), Err(Leak)),
            (Role::Peer, Ok(Some(NEIGHBOUR)), Ok(Some(NEIGHBOUR)), Err(Leak)),
            (Role::Customer, Ok(Some(NEIGHBOUR)), Ok(Some(NEIGHBOUR)), Ok(Some(FAR))),
            (Role::RouteServerClient, Ok(Some(NEIGHBOUR)), Ok(Some(NEIGHBOUR)), Ok(Some(FAR))),
        ] {
            let received = |mark| received(Some(role), NEIGHBOUR, mark);
            assert_eq!(received(None), unmarked, "{role}");
            assert_eq!(received(Some(NEIGHBOUR)), by_neighbour, "{role}");
            assert_eq!(received(Some(FAR)), by_another, "{role}");
        }
        assert_eq!(received(None, NEIGHBOUR, Some(FAR)), Ok(Some(FAR)), "no role was negotiated");
        assert_eq!(received(None, NEIGHBOUR, None), Ok(None));
    }

    //= RFC 9234 §5 MUST: a route without OTC is marked with our AS towards a customer, a peer and a client of our route server.
    //= RFC 9234 §5 MUST NOT: a route with OTC goes to a provider, a peer or a route server.
    #[test]
    fn what_is_told_is_marked_downwards_and_kept_from_going_up() {
        for (role, unmarked, marked) in [
            (Role::Provider, Ok(Some(WE)), Ok(Some(FAR))),
            (Role::RouteServer, Ok(Some(WE)), Ok(Some(FAR))),
            (Role::Peer, Ok(Some(WE)), Err(Leak)),
            (Role::Customer, Ok(None), Err(Leak)),
            (Role::RouteServerClient, Ok(None), Err(Leak)),
        ] {
            assert_eq!(told(Some(role), WE, None), unmarked, "{role}");
            assert_eq!(told(Some(role), WE, Some(FAR)), marked, "{role}");
        }
        assert_eq!(told(None, WE, Some(FAR)), Ok(Some(FAR)));
        assert_eq!(told(None, WE, None), Ok(None));
    }
}
