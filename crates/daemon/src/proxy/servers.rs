//! The servers of metrics and health, which start with the settings of the kernel once options are known.

use std::sync::Arc;

use super::Proxy;
use super::inputs::Inputs;
use crate::metrics::{ProxyMetrics, Server};

/// See the module.
pub(super) struct Servers {
    metrics: ProxyMetrics,
    metrics_server: Option<Server>,
}

impl Servers {
    pub(super) fn new(metrics: ProxyMetrics) -> Self {
        Self { metrics, metrics_server: None }
    }

    pub(super) fn start(&mut self, proxy: &mut Proxy, inputs: &Inputs) {
        if self.metrics_server.is_some() {
            return;
        }
        proxy.follow_configuration();
        let (overrides, configuration) = (&proxy.options.overrides, proxy.planner.configuration());
        let (healthz, metrics) =
            (overrides.healthz(configuration), overrides.metrics(configuration));
        proxy.health.serve(healthz);
        let counters = Arc::clone(inputs.counters());
        self.metrics_server = Some(Server::start(metrics, None, counters, self.metrics.clone()));
    }
}
