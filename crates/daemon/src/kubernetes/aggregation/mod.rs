//! The node API of a controller: the API server passes on what a user asks of all nodes, and this asks the speakers.
//!
//! ```text
//!  user ─► API server: who is it, may it? ── front proxy, mutual TLS ──► server ─► call: what is asked
//!                                                                         │ access: may this user (RBAC)
//!                                                                         ▼
//!                                                                      fan_out ─► node_api: all speakers at once
//! ```
//!
//! Off unless an address is given. Every controller answers; the leading one keeps the certificates. Holds no state of
//! the network: each answer is made by the speakers.

mod access;
mod call;
mod endpoints;
mod fan_out;
mod front_proxy;
mod seats;
mod server;

use tokio::sync::watch;
use tokio::task::JoinSet;

use super::api::Api;
use super::serving::{Kept, Profile, Registration, hosts, keep};
use crate::http_server::HttpListen;
use crate::node_api::SPEAKER;

/// The group of the node API, and its version.
pub(super) const GROUP: &str = "nodes.fairway.dev";
pub(super) const VERSION: &str = "v1alpha1";

/// The address and the name of the node API.
#[derive(Debug, Clone)]
pub struct AggregationOptions {
    /// The address to listen on.
    pub listen: HttpListen,
    /// The name of its Service. That of the speakers is NAME-speakers; the Secrets are NAME-cert and
    /// NAME-speakers-cert.
    pub name: String,
}

/// Serves the node API until the result is dropped, if there is an address. Must be called inside a tokio runtime.
pub(super) fn start(
    api: &Api,
    options: &AggregationOptions,
    is_leading: &watch::Receiver<bool>,
) -> JoinSet<()> {
    let mut tasks = JoinSet::new();
    if options.listen == HttpListen::Nowhere {
        return tasks;
    }
    let (tell_own, own) = watch::channel(None);
    let (tell_speakers, speakers) = watch::channel(None);
    let (tell_proxy, front_proxy) = watch::channel(None);
    let name = &options.name;
    let of_controllers = Kept {
        what: "the node API",
        secret: format!("{name}-cert"),
        profile: Profile {
            name: "Fairway node API",
            hosts: hosts(name, &api.namespace, options.listen),
            is_client: true,
        },
        registration: Some(Registration::ApiService {
            name: format!("{VERSION}.{GROUP}"),
            service: name.clone(),
        }),
        clients: None,
    };
    let of_speakers = Kept {
        what: "the node API of the speakers",
        secret: format!("{name}-speakers-cert"),
        profile: Profile {
            name: "Fairway speakers",
            hosts: vec![SPEAKER.to_owned()],
            is_client: false,
        },
        registration: None,
        clients: Some(format!("{name}-cert")),
    };
    tasks.spawn(keep(api.clone(), of_controllers, is_leading.clone(), tell_own));
    tasks.spawn(keep(api.clone(), of_speakers, is_leading.clone(), tell_speakers));
    tasks.spawn(front_proxy::follow(api.clone(), tell_proxy));
    let parts = server::Parts { own, speakers, front_proxy };
    tasks.spawn(server::run(api.clone(), options.clone(), parts));
    tasks
}
