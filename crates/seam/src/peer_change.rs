//! What does a change of each setting of a neighbour do to an established session?
//!
//! One table: [`PeerConfig::needs_reset`] follows it, a test checks it against live sessions, and the
//! documentation is generated from it.

use fairway_ground::PeerKind;

use crate::PeerConfig;

/// The effect of a changed setting on a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChangeEffect {
    /// It is another neighbour: the old one is removed.
    OtherPeer,
    /// The session is reset with Cease 6/6: the setting is part of OPEN or of the socket.
    NewSession,
    /// The same for an external neighbour, no effect for an internal one.
    NewExternalSession,
    /// The keys are exchanged within the session; it is reset if authentication is enabled or disabled, or if
    /// a key ID gets another secret.
    ExchangesKeys,
    /// The session ends, and stays down until the setting is removed.
    Down,
    /// The neighbour is asked for its routes again (RFC 2918); the session is reset if it does not support
    /// that.
    AsksAgain,
    /// Routes that are affected are announced again, or withdrawn.
    SaysAgain,
    /// No effect that the neighbour notices.
    Nothing,
}

/// A setting of a neighbour.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PeerSetting {
    /// The field of [`PeerConfig`].
    pub field: &'static str,
    /// The fields of resources that set it.
    pub written: &'static str,
    /// The effect of a change.
    pub effect: ChangeEffect,
}

/// Generates the table and the comparison of all its fields. A missing field does not compile.
macro_rules! settings {
    ($($field:ident, $written:literal => $effect:ident;)*) => {
        impl PeerSetting {
            /// All settings, in the order of [`PeerConfig`].
            pub const ALL: &[Self] = &[$(Self {
                field: stringify!($field),
                written: $written,
                effect: ChangeEffect::$effect,
            }),*];
        }

        impl PeerConfig {
            /// The settings in which the two differ.
            pub fn differences(&self, wanted: &Self) -> Vec<&'static PeerSetting> {
                let Self { $($field),* } = self;
                let differs = [$(*$field != wanted.$field),*];
                let settings = PeerSetting::ALL.iter().zip(differs);
                settings.filter(|(_, differs)| *differs).map(|(setting, _)| setting).collect()
            }
        }
    };
}

settings! {
    key, "`peerAddress`, `interface`, `listenRange`, `vrf`" => OtherPeer;
    name, "`metadata.name`" => Nothing;
    listen_range, "`listenLimit`" => Nothing;
    local_asn, "`myASN`, `localASN`" => NewSession;
    router_asn, "`myASN` beside a `localASN`" => NewSession;
    remote_as, "`peerASN`, `dynamicASN`" => NewSession;
    router_id, "`routerID`" => NewSession;
    passive, "`passive`" => Nothing;
    shutdown, "`shutdown`" => Down;
    port, "`peerPort`" => NewSession;
    source_address, "`sourceAddress`" => NewSession;
    hold_time, "`holdTime`, `keepaliveTime` without it" => NewSession;
    keepalive_interval, "`keepaliveTime` beside a `holdTime`" => Nothing;
    connect_retry_interval, "`connectTime`" => Nothing;
    delay_open_time, "" => Nothing;
    password, "`password`, `passwordSecret`" => ExchangesKeys;
    tcp_ao, "`tcpAO`" => ExchangesKeys;
    multihop, "`ebgpMultiHop`" => NewExternalSession;
    ttl_security_hops, "`ttlSecurityHops`" => NewSession;
    families, "`dualStackAddressFamily`" => NewSession;
    extended_next_hop, "`extendedNexthop`" => NewSession;
    add_path, "`addPath`" => NewSession;
    enhanced_refresh, "" => NewSession;
    graceful_restart, "`enableGracefulRestart`, `gracefulRestart`" => NewSession;
    client, "`routeReflectorClient`, `routeServerClient`" => NewSession;
    cluster_id, "`clusterID`" => AsksAgain;
    role, "`role`" => NewSession;
    role_strict, "`roleStrict`" => NewSession;
    import, "`toReceive`, `allowASIn`" => AsksAgain;
    pass_on, "`toAdvertise.allowed`" => SaysAgain;
    pass_on_rules, "`toAdvertise.rules`" => SaysAgain;
    next_hops, "`toAdvertise.nextHop`" => SaysAgain;
    install_routes, "`installRoutes`" => Nothing;
    bfd, "`bfdProfile`, `bfdStrict`" => Nothing;
}

impl PeerConfig {
    /// Whether a session with the keys of `self` can continue with those of `wanted`.
    fn keys_can_become(&self, wanted: &Self) -> bool {
        self.password.is_some() == wanted.password.is_some()
            && self.tcp_ao.can_become(&wanted.tcp_ao)
    }

    /// Whether a change from `self` to `wanted` resets the session, whatever the kind of neighbour.
    pub fn needs_reset(&self, wanted: &Self) -> bool {
        self.differences(wanted).iter().any(|setting| match setting.effect {
            ChangeEffect::OtherPeer | ChangeEffect::NewSession => true,
            ChangeEffect::NewExternalSession => self.kind() == PeerKind::External,
            ChangeEffect::ExchangesKeys => !self.keys_can_become(wanted),
            // A changed message alone is not sent.
            ChangeEffect::Down => self.shutdown.is_some() != wanted.shutdown.is_some(),
            ChangeEffect::AsksAgain | ChangeEffect::SaysAgain | ChangeEffect::Nothing => false,
        })
    }
}
