//! What a change of each setting of a neighbour does to a session that is up.
//!
//! One table: [`PeerConfig::needs_reset`] follows it, a test holds it against live sessions, and the
//! documentation prints it.

use fairway_ground::PeerKind;

use crate::PeerConfig;

/// What happens to a session when a setting becomes another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChangeEffect {
    /// It is another neighbour: the old one is removed.
    OtherPeer,
    /// A new session, as Cease 6/6 tells the neighbour: an OPEN or a socket fixed what it was.
    NewSession,
    /// The same for an external neighbour, and nothing for an internal one.
    NewExternalSession,
    /// The key is exchanged on the session; where keys begin or end, or an ID of a key is to mean
    /// another secret, there is a new session.
    ExchangesKeys,
    /// The session ends, and there is no other until the setting is taken back.
    Down,
    /// The neighbour is asked for its routes (RFC 2918); one that cannot be asked gets a new
    /// session.
    AsksAgain,
    /// Routes that are to be told otherwise now are told, or withdrawn.
    SaysAgain,
    /// Nothing that the neighbour would notice.
    Nothing,
}

/// A setting of a neighbour.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PeerSetting {
    /// The field of [`PeerConfig`].
    pub field: &'static str,
    /// What operators write to set it.
    pub written: &'static str,
    /// What a change of it does.
    pub effect: ChangeEffect,
}

/// Makes the table, and what compares all fields that are in it. A field that is missing here does
/// not compile.
macro_rules! settings {
    ($($field:ident, $written:literal => $effect:ident;)*) => {
        impl PeerSetting {
            /// All of them, in the order of [`PeerConfig`].
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
    role, "`role`" => NewSession;
    role_strict, "`roleStrict`" => NewSession;
    import, "`toReceive`" => AsksAgain;
    pass_on, "`toAdvertise.allowed`" => SaysAgain;
    next_hops, "`toAdvertise.nextHop`" => SaysAgain;
    bfd, "`bfdProfile`, `bfdStrict`" => Nothing;
}

impl PeerConfig {
    /// Whether a session under the keys of `self` can go on under those of `wanted`.
    fn keys_can_become(&self, wanted: &Self) -> bool {
        self.password.is_some() == wanted.password.is_some()
            && self.tcp_ao.can_become(&wanted.tcp_ao)
    }

    /// Whether going from `self` to `wanted` needs a new session, whoever the neighbour is.
    pub fn needs_reset(&self, wanted: &Self) -> bool {
        self.differences(wanted).iter().any(|setting| match setting.effect {
            ChangeEffect::OtherPeer | ChangeEffect::NewSession => true,
            ChangeEffect::NewExternalSession => self.kind() == PeerKind::External,
            ChangeEffect::ExchangesKeys => !self.keys_can_become(wanted),
            // One text for another says nothing to anybody.
            ChangeEffect::Down => self.shutdown.is_some() != wanted.shutdown.is_some(),
            ChangeEffect::AsksAgain | ChangeEffect::SaysAgain | ChangeEffect::Nothing => false,
        })
    }
}
