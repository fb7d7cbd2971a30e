//! Addresses that this process assigns to Services of files, which no status has.

use std::collections::BTreeMap;
use std::sync::Arc;

use fairway_model::{Kind, Object, ObjectChange, ObjectKey, ObjectName, ProxiedService};
use tokio::sync::watch;

use super::options::Assigned;

/// See the module.
pub(super) struct AssignedAddresses {
    assigned: watch::Receiver<Option<Assigned>>,
    now: Option<Assigned>,
    /// As the files have them.
    services: BTreeMap<ObjectName, ProxiedService>,
}

impl AssignedAddresses {
    pub(super) fn new(assigned: watch::Receiver<Option<Assigned>>) -> Self {
        Self { assigned, now: None, services: BTreeMap::new() }
    }

    /// Whether addresses have been assigned once: before, those of an earlier run are not to go.
    pub(super) fn is_known(&self) -> bool {
        self.now.is_some()
    }

    /// The changes, with assigned addresses beside those that Services have.
    pub(super) fn over(&mut self, changes: Vec<ObjectChange>) -> Vec<ObjectChange> {
        changes.into_iter().map(|change| self.one_over(change)).collect()
    }

    fn one_over(&mut self, (key, object): ObjectChange) -> ObjectChange {
        match object.as_deref() {
            Some(Object::ProxiedService(service)) => {
                self.services.insert(key.name.clone(), (**service).clone());
                (key, Some(self.with_addresses(service)))
            }
            _ => {
                if key.kind == Kind::Service {
                    self.services.remove(&key.name);
                }
                (key, object)
            }
        }
    }

    fn with_addresses(&self, service: &ProxiedService) -> Arc<Object> {
        let mut service = service.clone();
        let now = self.now.as_ref().and_then(|it| it.get(&service.name));
        for address in now.into_iter().flatten() {
            if !service.balancer_addresses.contains(address) {
                service.balancer_addresses.push(*address);
            }
        }
        Arc::new(Object::ProxiedService(Box::new(service)))
    }

    /// Waits until some Service has other addresses; returns those Services. Cancel-safe.
    pub(super) async fn changed(&mut self) -> Vec<ObjectChange> {
        if self.assigned.changed().await.is_err() {
            // The other half of the process is ending.
            std::future::pending::<()>().await;
        }
        let before = std::mem::replace(&mut self.now, self.assigned.borrow_and_update().clone());
        let (before, now) = (before.unwrap_or_default(), self.now.clone().unwrap_or_default());
        let names = before.keys().chain(now.keys());
        let mut others: Vec<&ObjectName> =
            names.filter(|it| before.get(*it) != now.get(*it)).collect();
        others.sort();
        others.dedup();
        let services = others.into_iter().filter_map(|it| self.services.get(it));
        let change = |it: &ProxiedService| {
            let key = ObjectKey { kind: Kind::Service, name: it.name.clone() };
            (Arc::new(key), Some(self.with_addresses(it)))
        };
        services.map(change).collect()
    }
}

#[cfg(test)]
mod tests {
    use fairway_resources::{BackendKind, Catalog};

    use super::*;

    fn addresses(changes: &[ObjectChange]) -> Vec<String> {
        let of = |object: &Object| match object {
            Object::ProxiedService(it) => format!("{} {:?}", it.name, it.balancer_addresses),
            other => panic!("{other:?}"),
        };
        changes.iter().filter_map(|(_, it)| it.as_deref().map(of)).collect()
    }

    #[tokio::test]
    async fn a_service_has_what_it_is_assigned_however_late() {
        let mut catalog = Catalog::for_backend(BackendKind::Proxy);
        let text = "apiVersion: v1\nkind: Service\nmetadata: {name: web}\nspec: {type: LoadBalancer, ports: [{port: 80}]}\n\
                    status: {loadBalancer: {ingress: [{ip: 192.0.2.1}]}}\n";
        catalog.file_read("a.yaml", text);
        let (tell, assigned) = watch::channel(None);
        let mut over = AssignedAddresses::new(assigned);
        let changes = over.over(catalog.resolve_changes().objects);
        assert_eq!(addresses(&changes), ["default/web [192.0.2.1]"]);
        let web = ObjectName::new("default", "web");
        let some = BTreeMap::from([(web.clone(), vec!["192.0.2.2".parse().unwrap()])]);
        assert!(!over.is_known());
        tell.send_replace(Some(Arc::new(some)));
        assert_eq!(addresses(&over.changed().await), ["default/web [192.0.2.1, 192.0.2.2]"]);
        assert!(over.is_known());
        tell.send_replace(Some(Assigned::default()));
        assert_eq!(addresses(&over.changed().await), ["default/web [192.0.2.1]"]);
    }
}
