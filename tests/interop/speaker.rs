//! Which daemon speaks BGP on the node: fairway itself, or FRR beside it (`--bgp frr8|frr10`)? Which cases do
//! not apply then, and why. Used by main, the matrix and the scene.

use std::path::Path;

use anyhow::{Context, Result};

use lab::fairway::Fairway;
use lab::frr_speaker::Speaker as Frr;
use lab::make_directory;
use lab::namespace::Namespace;
use lab::routers::{Release, RouterKind};

/// The speaker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SpeakerKind {
    Fairway,
    Frr(Release),
}

/// The FRRs.
pub(crate) const FRR: [SpeakerKind; 2] =
    [SpeakerKind::Frr(Release::Bookworm), SpeakerKind::Frr(Release::Trixie)];

/// Which cases do not apply with which of them towards which routers (none named: all), and why.
type Lack = (&'static [SpeakerKind], &'static [RouterKind], &'static [&'static str], &'static str);

const FRR_ROUTERS: [RouterKind; 2] =
    [RouterKind::Frr(Release::Bookworm), RouterKind::Frr(Release::Trixie)];

const LACKS: &[Lack] = &[
    (
        &FRR,
        &[],
        &[
            "bfd_packets_are_signed",
            "bfd_packets_are_signed_meticulously",
            "bfd_packets_with_a_wrong_key_are_not_heard",
        ],
        "its BFD signs nothing",
    ),
    (
        &FRR,
        &[],
        &["rpki_decides_over_received_routes", "rpki_decides_over_advertised_routes"],
        "asks no RPKI cache for fairway: the peer is left out",
    ),
    (
        &FRR,
        &[],
        &[
            "learned_routes_are_in_the_kernel",
            "what_nobody_takes_of_an_aggregate_is_dropped",
            "a_route_moves_when_an_interface_goes_down",
            "a_killed_fairway_leaves_its_routes_for_the_next_one",
        ],
        "installs routes its own way, with its own metric, and nothing of our own",
    ),
    (
        &FRR,
        &[],
        &["sixty_decisions_have_the_winner_of_the_router"],
        "decides itself: the case is about the native selection",
    ),
    (&FRR, &[], &["bfd_in_strict_mode_comes_before_the_session"], "has no strict mode of BFD"),
    (
        &FRR,
        &[],
        &["a_fairway_that_stays_away_is_the_last_resort"],
        "goes on with all sessions when fairway is away",
    ),
    (
        &FRR,
        &[],
        &["bfd_leaves_the_routes_of_a_frozen_router"],
        "drops the routes of who fails by BFD",
    ),
    (
        &FRR,
        &FRR_ROUTERS,
        &["bfd_leaves_the_routes_of_a_crashed_router"],
        "drops them if it reads that BFD is down before the end of the connection, which is chance",
    ),
    (
        &FRR,
        &[RouterKind::Frr(Release::Bookworm)],
        &["a_cleared_session_keeps_the_routes_of_both_sides"],
        "dials as 8.4 does, which now and then ends the new session as the loser of a collision",
    ),
    (
        &[SpeakerKind::Frr(Release::Bookworm)],
        &[RouterKind::Frr(Release::Trixie)],
        &["a_cleared_session_keeps_the_routes_of_both_sides"],
        "now and then ends the new session as the loser of a collision, when both dial",
    ),
    (
        &[SpeakerKind::Frr(Release::Bookworm)],
        &[],
        &["several_paths_of_a_router_are_received", "several_paths_are_sent_to_a_router"],
        "8.4 cannot limit the paths that it sends (9.1 can): the peer is left out",
    ),
    (
        &[SpeakerKind::Frr(Release::Trixie)],
        &FRR_ROUTERS,
        &["several_paths_are_sent_to_a_router"],
        "10.3 now and then takes our own path back, too, when another one goes",
    ),
    (
        &[SpeakerKind::Frr(Release::Trixie)],
        &[],
        &["bfd_that_is_passive_waits_for_the_router"],
        "10.3 begins no session of a neighbor whose BFD is down, which the case begins with",
    ),
    (
        &[SpeakerKind::Frr(Release::Bookworm)],
        &[RouterKind::Frr(Release::Bookworm)],
        &["too_many_received_prefixes_end_the_session_for_a_while"],
        "8.4 keeps one prefix too many of 8.4, and the session",
    ),
    (
        &FRR,
        &[RouterKind::Bird(Release::Bookworm), RouterKind::Bird(Release::Trixie)],
        &["bfd_crosses_a_middle_hop"],
        "does not hear BIRD's BFD over several hops, which begins with a TTL of 64",
    ),
    (
        &FRR,
        &[RouterKind::Bird(Release::Trixie)],
        &["bfd_that_we_take_away_ends_no_session"],
        "takes its BFD away so that BIRD sees a failure",
    ),
    (
        &FRR,
        &FRR_ROUTERS,
        &["bfd_that_is_taken_down_ends_no_session"],
        "takes AdminDown for Down, and ends its session",
    ),
    (
        &FRR,
        &[],
        &["ttl_security_refuses_a_router_further_away"],
        "lets in who dials from further away: 8.4 nearly always, 10.3 now and then",
    ),
    (
        &FRR,
        &FRR_ROUTERS,
        &["a_softly_cleared_session_receives_again_without_a_reset"],
        "asks twice for each refresh, which the case counts",
    ),
    (
        &FRR,
        &[RouterKind::Frr(Release::Bookworm)],
        &[
            "received_routes_follow_a_live_change_of_the_filter",
            "a_path_with_our_own_as_is_accepted_where_that_is_allowed",
            "rules_decide_what_is_received_and_passed_on",
        ],
        "8.4 answers no refresh before an End-of-RIB that it does not send to who has no graceful restart",
    ),
];

impl SpeakerKind {
    /// `native`, `frr8` or `frr10`.
    pub(crate) fn called(word: &str) -> Option<Self> {
        match word {
            "native" => Some(Self::Fairway),
            "frr8" => Some(Self::Frr(Release::Bookworm)),
            "frr10" => Some(Self::Frr(Release::Trixie)),
            _ => None,
        }
    }

    /// Whether it runs with a router where none is named: FRR is one thing that many tests
    /// are about already, and the routers that people have beside it are BIRD and FRR.
    pub(crate) fn meets(self, router: RouterKind) -> bool {
        match self {
            Self::Fairway => true,
            Self::Frr(_) => !matches!(router, RouterKind::Gobgp | RouterKind::Openbgpd),
        }
    }

    /// Why a case says nothing with it, towards this router.
    pub(crate) fn not_applicable(self, case: &str, router: RouterKind) -> Option<&'static str> {
        let lack = |(kinds, routers, names, _): &&Lack| {
            kinds.contains(&self)
                && (routers.is_empty() || routers.contains(&router))
                && names.contains(&case)
        };
        LACKS.iter().find(lack).map(|(.., reason)| *reason)
    }

    /// Lets `fairway`, which runs in `node` and has its files in `directory`, speak by way of it: it
    /// runs from now on.
    pub(crate) fn join(
        self,
        fairway: &mut Fairway,
        node: &Namespace,
        directory: &Path,
    ) -> Result<Option<Frr>> {
        let Self::Frr(release) = self else { return Ok(None) };
        let folder = directory.join("speaker");
        make_directory(&folder)?;
        let mut frr = Frr::prepare(release, &folder)?;
        frr.start(node).context("starting FRR beside fairway")?;
        let sockets = frr.directory().to_string_lossy().into_owned();
        fairway.extra_arguments =
            ["--bgp", "frr", "--frr-socket-dir", &sockets].map(str::to_owned).to_vec();
        Ok(Some(frr))
    }
}
