//! The certificates of what a controller serves to the API server, and of what speakers serve to a controller.
//!
//! ```text
//!  API server ── caBundle ◄── keeper ◄──► Secret: one certificate for all holders, its CA, its key
//! ```

mod certificate;
mod keeper;
mod registration;

use crate::http_server::HttpListen;

pub(super) use certificate::{Identity, Profile, roots_of};
#[cfg(test)]
pub(super) use certificate::{issue, tests::stored};
pub(super) use keeper::{Kept, keep};
pub(super) use registration::Registration;

/// The hosts of a certificate: the name of the Service in `namespace`, and an address that is listened on.
pub(super) fn hosts(service: &str, namespace: &str, listen: HttpListen) -> Vec<String> {
    let service = format!("{service}.{namespace}.svc");
    let address = match listen {
        HttpListen::At(address) if !address.ip().is_unspecified() => Some(address.ip()),
        _ => None,
    };
    [service].into_iter().chain(address.map(|it| it.to_string())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_certificate_names_the_service_and_the_address() {
        let hosts =
            |listen: &str| hosts("fairway-webhook", "metallb-system", listen.parse().unwrap());
        let service = "fairway-webhook.metallb-system.svc";
        assert_eq!(hosts(":9443"), [service]);
        assert_eq!(hosts("0.0.0.0:9443"), [service]);
        assert_eq!(hosts("192.0.2.1:9443"), [service, "192.0.2.1"]);
    }
}
