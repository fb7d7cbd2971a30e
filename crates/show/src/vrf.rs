//! The view of the backend, VRF by VRF: FRR runs an instance in each, and shows one at a time.
//!
//! Pure. `query` asks.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::Arc;

use fairway_ground::InterfaceName;
use fairway_seam::BgpView;

use crate::VRF_DEFAULT;

/// The instances by name, the main one first. Without neighbours in a VRF the view is borrowed and nothing is
/// copied.
pub(super) fn instances(view: &BgpView) -> Vec<(String, Cow<'_, BgpView>)> {
    let vrfs: BTreeSet<InterfaceName> =
        view.peers.iter().filter_map(|peer| peer.config.key.vrf).collect();
    if vrfs.is_empty() {
        return vec![(VRF_DEFAULT.to_owned(), Cow::Borrowed(view))];
    }
    let main = (VRF_DEFAULT.to_owned(), Cow::Owned(part(view, None)));
    let others = vrfs.into_iter();
    let others = others.map(|vrf| (vrf.as_str().to_owned(), Cow::Owned(part(view, Some(vrf)))));
    std::iter::once(main).chain(others).collect()
}

/// Only the BFD sessions of one VRF.
pub(super) fn watched(view: &BgpView, vrf_name: &str) -> BgpView {
    let mut bfd = view.bfd.clone();
    if let Some(bfd) = &mut bfd {
        bfd.sessions.retain(|it| match it.path.vrf {
            Some(vrf) => vrf.as_str() == vrf_name,
            None => vrf_name == VRF_DEFAULT,
        });
    }
    BgpView { bfd, ..BgpView::default() }
}

/// The neighbours of one VRF, named without it, and the routes from them and for them. Routes that are
/// planned for no neighbour belong to the main one.
fn part(view: &BgpView, vrf: Option<InterfaceName>) -> BgpView {
    let mut part = view.clone();
    part.peers.retain(|peer| peer.config.key.vrf == vrf);
    for peer in &mut part.peers {
        peer.config.key.vrf = None;
    }
    part.listen_ranges.retain(|range| range.config.key.vrf == vrf);
    for range in &mut part.listen_ranges {
        range.config.key.vrf = None;
    }
    part.routes.retain(|route| match route.peers.is_empty() {
        true => vrf.is_none(),
        false => route.peers.iter().any(|peer| peer.vrf == vrf),
    });
    part.learned.retain(|learned| learned.path.source.key.vrf == vrf);
    for learned in &mut part.learned {
        Arc::make_mut(&mut learned.path.source).key.vrf = None;
    }
    part
}
