//! Rules for what the service proxy reads.

use crate::row::{KUBERNETES, OURS, Row, row};

fn service(spec: &str) -> String {
    annotated("", spec)
}

fn annotated(annotation: &str, spec: &str) -> String {
    let metadata = format!("{{name: new, annotations: {{{annotation}}}}}");
    let spec = format!("{{clusterIP: 10.96.0.1, {spec}}}");
    format!("apiVersion: v1\nkind: Service\nmetadata: {metadata}\nspec: {spec}\n")
}

fn slice(endpoints: &str) -> String {
    let labels = "labels: {kubernetes.io/service-name: new}";
    format!(
        "apiVersion: discovery.k8s.io/v1\nkind: EndpointSlice\nmetadata: {{name: new, {labels}}}\n\
         addressType: IPv4\nendpoints: [{endpoints}]\n"
    )
}

fn options(fields: &str) -> String {
    format!(
        "apiVersion: kubeproxy.config.k8s.io/v1alpha1\nkind: KubeProxyConfiguration\n{fields}\n"
    )
}

#[rustfmt::skip] // One line for each rule.
pub(crate) fn rows() -> Vec<Row> {
    let rows = vec![
        row("proxy-port", KUBERNETES, "A port is 1 to 65535", service("ports: [{port: 0}]")).refused("from 1 to 65535"),
        row("proxy-node-port", KUBERNETES, "A node port of 0 is none", service("ports: [{port: 80, nodePort: 0}]")),
        row("proxy-port-twice", KUBERNETES, "A port is given once for each protocol", service("ports: [{name: a, port: 1}, {name: b, port: 1}]")).refused("once more"),
        row("proxy-port-names", KUBERNETES, "Each of several ports has a name of its own", service("ports: [{port: 1}, {port: 2}]")).refused("has no name"),
        row("proxy-cluster-address", KUBERNETES, "There is one address of each family", service("clusterIPs: [10.96.0.1, 10.96.0.2]")).refused("second IPv4 address"),
        row("proxy-external-address", KUBERNETES, "An external address is one that hosts have", service("externalIPs: [224.0.0.1]")).refused("cannot be the address of a host"),
        row("proxy-external-loopback", KUBERNETES, "It is no loopback and no link-local address", service("externalIPs: [127.0.0.1]")).refused("loopback or link-local"),
        row("proxy-balancer-loopback", OURS, "Nor is that of a load balancer: it is left out", service("") + "status: {loadBalancer: {ingress: [{ip: '127.0.0.1'}, {ip: 'fe80::1'}]}}\n").warned("is ignored"),
        row("proxy-source-range", KUBERNETES, "A source range is a network", service("loadBalancerSourceRanges: [10.0.0.0]")).refused("is not a network"),
        row("proxy-source-range-bits", KUBERNETES, "Spaces around a source range and bits behind its length count for nothing", service("loadBalancerSourceRanges: [' 10.0.0.1/8 ']")),
        row("proxy-affinity", KUBERNETES, "Affinity is by the client's address, or there is none", service("sessionAffinity: Cookie")).refused("None or ClientIP"),
        row("proxy-affinity-timeout", KUBERNETES, "A client stays for a day at most", service("sessionAffinityConfig: {clientIP: {timeoutSeconds: 86401}}")).refused("from 1 to 86400"),
        row("proxy-scheduler", OURS, "A scheduler is one of IPVS", annotated("fairway.dev/ipvs-scheduler: best", "")).refused("is not a scheduler of IPVS"),
        row("proxy-direct-return", OURS, "Direct server return is refused", annotated("kube-router.io/service.dsr: tunnel", "")).refused("direct server return"),
        row("proxy-endpoint-family", KUBERNETES, "The addresses of a slice are of its family", slice("{addresses: ['2001:db8::1']}")).refused("addressType"),
        row("proxy-endpoint-address", KUBERNETES, "An endpoint has the address of a host", slice("{addresses: [web.example]}")).refused("is not an IP address"),
        row("proxy-options", KUBERNETES, "Fields of kube-proxy's other modes have no effect", options("conntrack: {min: 0}\nnftables: {masqueradeAll: true}\nipvs: {strictARP: true}")),
        row("proxy-options-unknown", KUBERNETES, "An option is one of kube-proxy's", options("clusterCidr: 10.1.0.0/16")).refused("did you mean clusterCIDR?"),
        row("proxy-options-version", KUBERNETES, "The version of options is v1alpha1", options("").replace("v1alpha1", "v1")).refused("use kubeproxy.config.k8s.io/v1alpha1"),
        row("proxy-options-mode", OURS, "The mode is ipvs", options("mode: nftables")).warned("has no effect"),
        row("proxy-options-scheduler", KUBERNETES, "A scheduler of options is one of IPVS", options("ipvs: {scheduler: best}")).refused("is not a scheduler of IPVS"),
        row("proxy-options-network", KUBERNETES, "The networks of Pods are networks", options("clusterCIDR: 10.1.0.0")).refused("is not a network"),
        row("proxy-options-node-ports", KUBERNETES, "Node ports are on networks, or on the primary addresses", options("nodePortAddresses: [primary, 10.0.0.0/8]")).refused("stands alone"),
        row("proxy-options-excluded", KUBERNETES, "Excluded networks are networks", options("ipvs: {excludeCIDRs: [10.1.0.0]}")).refused("is not a network"),
        row("proxy-options-timeout", KUBERNETES, "A timeout of IPVS is a duration, in seconds", options("ipvs: {udpTimeout: 10ms}")).refused("1s to 576h"),
        row("proxy-options-bit", KUBERNETES, "The bit of a mark is 0 to 31", options("iptables: {masqueradeBit: 32}")).refused("from 0 to 31"),
        row("proxy-options-address", KUBERNETES, "The server of metrics has an address", options("metricsBindAddress: localhost")).refused("is not an address"),
        row("proxy-options-hostname", OURS, "The node is named on the command line", options("hostnameOverride: a")).warned("--node"),
        row("proxy-options-bridge", KUBERNETES, "Detection by a bridge names it", options("detectLocalMode: BridgeInterface")).refused("detectLocalMode asks for it"),
    ];
    rows.into_iter().map(Row::proxied).collect()
}
