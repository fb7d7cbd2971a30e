#!/usr/bin/env bash
# Does what is in deploy/ do what docs/kubernetes.md says? Rendered, linted, taken by a real API server, its
# permissions asked about, its alerts fed with series, its image built and started. `make test-deploy`.
set -euo pipefail
cd "$(dirname "$0")/../.."

usage() {
    cat <<'EOT'
Usage: tests/deploy/run.sh [CHECK...]      default: all

  rendered    what is made from the chart is fresh
  chart       helm lint; good values are taken, bad ones refused
  alerts      promtool on the rules, with series; each expression of the dashboard is one
  quickstart  examples/quickstart beside two routers: no alert fires, and one does when a router goes
  server      kustomize and the chart on a real API server; permissions; Pod Security Standards; published values
  image       the image is built, and starts with every set of capabilities (needs a container engine)
  pods        controller and speaker in it, with the account of a pod, on a real API server (the same)

  FAIRWAY_IMAGE  an archive of `make dist`: it is loaded, and no image is built
EOT
}

folder=$(mktemp -d)
containers=() daemons=()
clean_up() {
    leave_quickstart
    ((${#containers[@]} == 0)) || docker rm -f "${containers[@]}" >/dev/null 2>&1 || true
    containers=()
    [[ $(type -t stop_api_server) != function ]] || stop_api_server
}
trap 'clean_up; rm -rf "$folder"' EXIT
passed=0
say() { echo "deploy: $*" >&2; }
fail() {
    say "FAILED: $*"
    exit 1
}
ok() {
    say "ok: $*"
    passed=$((passed + 1))
}

chart=deploy/helm/fairway image=fairway-deploy-test
helm() { "$helm" "$@"; }

# refused WORDS COMMAND...: it fails, and says these words.
refused() {
    local words=$1 said
    shift
    if said=$("$@" 2>&1); then fail "not refused: $*"; fi
    [[ $said == *"$words"* ]] || fail "refused without saying '$words': $said"
    ok "refused: $words"
}

rendered() {
    scripts/manifests.sh --check || fail "scripts/manifests.sh --check"
    ok "manifests and tables are those of the chart"
    local version
    version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1)
    [[ $(grep -cx "\(version\|appVersion\): $version" "$chart/Chart.yaml") == 2 ]] || fail "Chart.yaml is not of $version"
    grep -qx "    newTag: $version" deploy/base/kustomization.yaml || fail "deploy/base names another version than $version"
    ok "the version is $version everywhere"
}

chart() {
    helm lint --strict --quiet "$chart" && helm lint --strict --quiet "$chart" -f tests/deploy/values.yaml
    ok "helm lint"
    refused "additional properties 'bgp'" helm template x "$chart" --set speaker.bgp.listen=none
    refused "additional properties 'replica'" helm template x "$chart" --set controller.replica=1
    refused "value must be one of" helm template x "$chart" --set speaker.logLevel=loud
    refused "/prometheus/metricsPort" helm template x "$chart" --set prometheus.metricsPort=70000
    refused "/speaker/secretNames" helm template x "$chart" --set speaker.secretNames=tor-1
    refused "does not match pattern" helm template x "$chart" --set speaker.stateHostPath=var/lib
    refused "an image of MetalLB" helm template x "$chart" --set speaker.image.repository=quay.io/metallb/speaker
    refused "lacks Fairway's agent" helm template x "$chart" --set speaker.frr.enabled=true,speaker.frr.image.repository=quay.io/frrouting/frr
    refused "speaker.bfdRealtime has no effect" helm template x "$chart" --set speaker.frr.enabled=true,speaker.bfdRealtime=true
    refused "proxy.enabled needs apiServer.host" helm template x "$chart" --set proxy.enabled=true
    refused "/proxy/healthzPort" helm template x "$chart" --set proxy.healthzPort=0
    helm template x "$chart" --set proxy.enabled=true,proxy.takeOver=true,apiServer.host=2001:db8::10,proxy.config.clusterCIDR=10.1.0.0/16,proxy.metricsAddress=:: \
        --show-only templates/proxy.yaml >"$folder/proxy.yaml"
    grep -q 'clusterCIDR: 10.1.0.0/16' "$folder/proxy.yaml" && grep -q 'value: "\[::\]:10249"' "$folder/proxy.yaml" ||
        fail "the options of the service proxy"
    local follows
    for follows in true false; do
        helm template x "$chart" --set proxy.enabled=true,apiServer.host=api.example,proxy.announceDelivered=$follows >"$folder/proxy.yaml"
        [[ $(grep -c 'value: /run/fairway-proxy/proxy.sock' "$folder/proxy.yaml") == $([[ $follows == true ]] && echo 1 || echo 0) ]] ||
            fail "proxy.announceDelivered=$follows"
    done
    ok "the service proxy"
    refused "/ipam/pluginFolder" helm template x "$chart" --set ipam.pluginFolder=opt/cni/bin
    helm template x "$chart" --set ipam.enabled=true,speaker.stateHostPath= >"$folder/ipam.yaml"
    [[ $(grep -c 'name: FAIRWAY_IPAM$' "$folder/ipam.yaml") == 2 && $(grep -c 'resources: \[ipamblocks, blockaffinities, ipamhandles\]' "$folder/ipam.yaml") == 2 ]] ||
        fail "ipam.enabled: speakers and controllers give addresses and take them back"
    grep -q 'args: \[ipam, install-plugin, --warn-only, --to, /plugins, --owner, "65532:65532"\]' "$folder/ipam.yaml" && ! grep -q 'args: \[state-dir' "$folder/ipam.yaml" ||
        fail "ipam.enabled: the plugin is installed"
    ! helm template x "$chart" | grep -q 'FAIRWAY_IPAM\|projectcalico' || fail "ipam is off by default"
    ok "addresses for Pods"
    refused "prometheus.namespace" helm template x "$chart" --set prometheus.podMonitor.enabled=true,prometheus.serviceAccount=p
    helm template x "$chart" -f tests/deploy/metallb-values.yaml >/dev/null
    ok "values of MetalLB's chart are taken"
    helm template x "$chart" --values examples/kind/values.yaml >"$folder/kind.yaml"
    [[ $(grep -c 'imagePullPolicy: Never' "$folder/kind.yaml") == $(grep -c ' image: ' "$folder/kind.yaml") ]] ||
        fail "examples/kind pulls images"
    ok "values of examples/kind are taken"

    # The folder of the chart by itself, and images of a registry.
    cp -r "$chart" "$folder/chart"
    local rendered definitions=(deploy/crds/*_*.yaml)
    rendered=$(helm template x "$folder/chart" --set image.repository=registry.example/fairway,speaker.frr.enabled=true)
    [[ $(grep -c '^kind: CustomResourceDefinition' <<<"$rendered") == ${#definitions[@]} ]] ||
        fail "the chart alone has not all definitions"
    [[ $(sed -n 's/^ *image: "\(.*\):.*/\1/p' <<<"$rendered" | sort -u | tr '\n' ' ') == \
        "registry.example/fairway registry.example/fairway-frr " ]] || fail "images are not of the registry"
    ok "the chart is whole by itself, and its images are of one registry"

    refused "/controller/webhookFailOn" helm template x "$chart" --set controller.webhookFailOn=everything
    rendered=$(helm template x "$chart" --set 'controller.webhookMode=enabled,controller.webhookFailOn=withdraw\,5,speaker.ignoreExcludeLB=true')
    for text in 'value: "withdraw,5"' 'resources: \[endpointslices\]' 'name: FAIRWAY_IGNORE_EXCLUDE_LB'; do
        grep -q "$text" <<<"$rendered" || fail "the budget of the webhook lacks $text"
    done
    [[ $(helm template x "$chart" --set controller.webhookMode=enabled) != *FAIL_ON* ]] || fail "a budget is not off by default"
    ok "the budget of the webhook"
}

find_promtool() {
    if type -P promtool; then return; fi
    local at=${XDG_CACHE_HOME:-$HOME/.cache}/fairway/promtool
    if [[ ! -x $at/usr/bin/promtool ]]; then
        # Debian has it in the package of the whole server, which nothing here needs installed.
        mkdir -p "$at"
        (cd "$at" && apt-get -qq download prometheus && dpkg-deb -x prometheus_*.deb . && rm prometheus_*.deb) >&2
    fi
    echo "$at/usr/bin/promtool"
}

alerts() {
    local promtool
    promtool=$(find_promtool)
    sed -n '/^spec:/,$p' deploy/components/prometheus/prometheusrule.yaml | sed '1d; s/^  //' >"$folder/rules.yaml"
    cp tests/deploy/alerts.yaml "$folder"
    "$promtool" check rules "$folder/rules.yaml" >/dev/null && "$promtool" test rules "$folder/alerts.yaml" >&2
    ok "alerts say what they should of some series"
    # Each expression of the dashboard as a rule, with something for its variables.
    jq '[.panels[].targets[]?.expr | gsub("\\$__rate_interval"; "5m") | gsub("\\$[a-z]+"; ".*")]
        | to_entries | {groups: [{name: "dashboard", rules: map({record: "panel_\(.key)", expr: .value})}]}' \
        "$chart/files/dashboard.json" >"$folder/dashboard.json"
    "$promtool" check rules "$folder/dashboard.json" >/dev/null
    ok "each of the dashboard's $(jq '[.panels[].targets[]?] | length' "$chart/files/dashboard.json") expressions is one"
    # And is about metrics that there are.
    local name missing=
    [[ -e docs/metrics.md ]] || fail "there is no docs/metrics.md"
    while read -r name; do
        grep -qF "\`$name\`" docs/metrics.md || missing+=" $name"
    done < <(grep -ohE '(metallb|fairway|process)_[a-z0-9_]+' "$folder/rules.yaml" "$folder/dashboard.json" |
        sed -E 's/_(bucket|count|sum)$//' | sort -u)
    [[ -z $missing ]] || fail "docs/metrics.md does not know$missing"
    ok "alerts and dashboard are about metrics of docs/metrics.md"
}

# The page of metrics as series of promtool, each with the same value for an hour, and no alert that may fire then.
# silent PAGE RULES
silent() {
    jq -Rn --arg rules "$2" --argjson alerts "$(jq -Rn '[inputs]' < <(sed -n 's/^ *- alert: //p' "$2" | sort -u))" '
        [inputs | select(startswith("#") | not) | capture("^(?<series>.*[^ ]) (?<value>[^ ]+)$")
            | (if .series | endswith("}") then .series[:-1] + "," else .series + "{" end) as $start
            | {series: ($start + "job=\"fairway\",instance=\"node\",pod=\"node\"}"), values: "\(.value | tonumber)+0x60"}]
        | {rule_files: [$rules], evaluation_interval: "1m", tests: [{interval: "1m", input_series: .,
            alert_rule_test: ($alerts | map({alertname: ., eval_time: "59m", exp_alerts: []}))}]}' <"$1" >"$1.json"
    "$promtool" test rules "$1.json" >"$1.said" 2>&1
}

# A router of the quickstart: AS, its address, that of the node, more of the spec.
router() {
    mkdir "$folder/$1"
    cat >"$folder/$1/peer.yaml" <<EOT
apiVersion: metallb.io/v1beta2
kind: BGPPeer
metadata: {name: node}
spec: {myASN: $1, peerASN: 64500, peerAddress: "$3", routerID: 192.0.2.1${1#6450}, dualStackAddressFamily: true, $4}
EOT
    ip netns exec "$space-routers" "$fairway" run --config "$folder/$1" --node "$1" --bgp-listen "$2:179" \
        --metrics-listen none --socket "$folder/$1.sock" --state-dir "$folder/$1.state" 2>"$folder/$1.log" &
    daemons+=($!)
}

# Until the node has so many sessions: sessions NUMBER
sessions() {
    local left=300
    until [[ $("$fairway" show bgp summary json --socket "$folder/node.sock" 2>/dev/null |
        jq '[.[].peers | to_entries[] | select(.value.state == "Established") | .key] | unique | length') == "$1" ]]; do
        ((left-- > 0)) || fail "the quickstart has no $1 sessions: $(tail -n 3 "$folder/node.log")"
        sleep 0.1
    done
}

quickstart() {
    local promtool fairway=${FAIRWAY_BIN:-$PWD/docker/bin/fairway} space=fairway-quickstart-$$ page
    promtool=$(find_promtool)
    sed -n '/^spec:/,$p' deploy/components/prometheus/prometheusrule.yaml | sed '1d; s/^  //' >"$folder/rules.yaml"
    ip netns add "$space-node" && ip netns add "$space-routers"
    ip -n "$space-node" link add eth0 type veth peer name eth0 netns "$space-routers"
    local name number
    for name in node routers; do
        number=$([[ $name == node ]] && echo 9 || echo 1)
        ip -n "$space-$name" link set lo up && ip -n "$space-$name" link set eth0 up
        ip -n "$space-$name" address add "192.0.2.$number/24" dev eth0
        ip -n "$space-$name" address add "2001:db8:0:2::$number/64" dev eth0 nodad
    done
    router 64501 192.0.2.1 192.0.2.9 "password: change-me"
    router 64502 '[2001:db8:0:2::1]' 2001:db8:0:2::9 "holdTime: 90s"
    ip netns exec "$space-node" "$fairway" run --config examples/quickstart --node node --bgp-listen none \
        --metrics-listen 127.0.0.1:7472 --socket "$folder/node.sock" --state-dir "$folder/node.state" 2>"$folder/node.log" &
    daemons+=($!)
    sessions 2
    page=$folder/healthy
    ip netns exec "$space-node" curl -sf http://127.0.0.1:7472/metrics >"$page"
    silent "$page" "$folder/rules.yaml" || fail "an alert fires on a healthy quickstart: $(cat "$page.said")"
    ok "no alert fires on a healthy quickstart"
    kill "${daemons[1]}"
    sessions 1
    page=$folder/without
    ip netns exec "$space-node" curl -sf http://127.0.0.1:7472/metrics >"$page"
    if silent "$page" "$folder/rules.yaml"; then fail "no alert fires although a router is gone"; fi
    grep -q FairwayBGPSessionDown "$page.said" || fail "another alert fires: $(cat "$page.said")"
    ok "FairwayBGPSessionDown fires when a router of the quickstart is gone"
    leave_quickstart
}

leave_quickstart() {
    ((${#daemons[@]} == 0)) || kill "${daemons[@]}" 2>/dev/null || true
    daemons=()
    local name
    for name in node routers; do ip netns delete "fairway-quickstart-$$-$name" 2>/dev/null || true; done
}

# Whether an account may: may controller|speaker yes|no VERB RESOURCE [WHERE...]
may() {
    local who=system:serviceaccount:metallb-system:fairway-$1 answer
    answer=$(kubectl auth can-i --as="$who" "${@:3}" 2>/dev/null || true)
    [[ $answer == "$2" ]] || fail "$1 ${*:3}: $answer instead of $2"
    passed=$((passed + 1))
}

permissions() {
    local ours=(-n metallb-system) other=(-n default) verb
    may controller yes patch services --subresource=status "${other[@]}"
    may controller no patch services "${other[@]}"
    may controller no update services --subresource=status "${other[@]}"
    may controller no get services/any "${other[@]}"
    may controller yes watch ipaddresspools "${ours[@]}"
    may controller no watch ipaddresspools "${other[@]}"
    may controller yes patch ipaddresspools/any --subresource=status "${ours[@]}"
    may controller no patch ipaddresspools/any "${ours[@]}"
    may controller no list bgppeers "${ours[@]}"
    may controller no list endpointslices "${other[@]}"
    may controller yes create configurationstates/controller "${ours[@]}"
    may controller yes patch configurationstates/controller "${ours[@]}"
    may controller no create configurationstates/speaker-node-a "${ours[@]}"
    may controller yes patch configurationstates/controller --subresource=status "${ours[@]}"
    may controller no patch configurationstates/speaker-node-a "${ours[@]}"
    may controller yes update leases/fairway-controller "${ours[@]}"
    may controller no update leases/another "${ours[@]}"
    may controller no delete leases/fairway-controller "${ours[@]}"
    may controller yes create events "${other[@]}"
    for verb in get list watch; do may controller no $verb secrets "${ours[@]}"; done
    may speaker yes get secrets/any "${ours[@]}"
    for verb in list watch create update patch delete; do may speaker no $verb secrets "${ours[@]}"; done
    may speaker no get secrets/any "${other[@]}"
    may speaker yes watch services "${other[@]}"
    may speaker yes watch endpointslices "${other[@]}"
    may speaker yes get nodes/node-a
    for verb in patch update; do may speaker no $verb nodes/node-a; done
    may speaker no patch services --subresource=status "${other[@]}"
    may speaker yes patch servicebgpstatuses/any --subresource=status "${ours[@]}"
    may speaker yes patch servicel2statuses/any --subresource=status "${ours[@]}"
    may speaker yes delete bgpsessionstates/any "${ours[@]}"
    may speaker no patch servicebgpstatuses/any "${other[@]}"
    may speaker no delete configurationstates/controller "${ours[@]}"
    may speaker no patch bgppeers/any "${ours[@]}"
    may speaker yes get daemonsets/fairway-speaker "${ours[@]}"
    may speaker no get daemonsets/another "${ours[@]}"
    may speaker no delete daemonsets/fairway-speaker "${ours[@]}"
    may speaker no get leases/fairway-controller "${ours[@]}"
    for verb in create delete patch; do
        may controller no $verb pods "${ours[@]}"
        may speaker no $verb pods "${ours[@]}"
    done
    ok "permissions"
}

# pod KIND/NAME: a Pod as this workload makes it.
pod() {
    kubectl get -n metallb-system "$1" -o json | jq '.spec.template
        | {apiVersion: "v1", kind: "Pod", metadata: (.metadata + {name: "pod"}), spec: .spec}'
}

server() {
    # shellcheck source=tests/deploy/api_server.sh
    . tests/deploy/api_server.sh
    start_api_server
    kubectl apply -k deploy >/dev/null
    kubectl wait --for=condition=Established --timeout=30s crd --all >/dev/null
    [[ $(kubectl apply -k deploy | grep -cv unchanged) -le 5 ]] || fail "a second apply -k changes things"
    ok "kubectl apply -k deploy"
    permissions

    local name
    for name in default restricted; do
        kubectl create namespace "in-$name" >/dev/null
    done
    kubectl label namespace in-restricted pod-security.kubernetes.io/enforce=restricted >/dev/null
    pod deployment/fairway-controller | kubectl create --dry-run=server -n in-restricted -f - >/dev/null
    ok "the controller's pod is of the standard restricted"
    pod daemonset/fairway-speaker | kubectl create --dry-run=server -n in-default -f - >/dev/null
    refused "violates PodSecurity" kubectl create --dry-run=server -n in-restricted -f <(pod daemonset/fairway-speaker)
    pod daemonset/fairway-speaker | jq -e '([.spec.containers[], .spec.initContainers[] | .securityContext
            | .readOnlyRootFilesystem and .allowPrivilegeEscalation == false and .capabilities.drop == ["ALL"]] | all)
        and .spec.securityContext.runAsNonRoot
        and .spec.containers[0].securityContext.capabilities.add == ["NET_BIND_SERVICE"]' >/dev/null ||
        fail "the speaker's pod may more than it should"
    ok "the speaker's pod"

    # Overlays, from where a user has them.
    mkdir -p "$folder/overlay"
    cat >"$folder/overlay/kustomization.yaml" <<EOT
apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
resources: [$(realpath --relative-to="$folder/overlay" deploy)]
components:
$(for name in network-policy net-raw bfd-realtime webhook; do echo "  - $(realpath --relative-to="$folder/overlay" "deploy/components/$name")"; done)
images: [{name: fairway, newName: registry.example/fairway}]
$(sed -n '/^  # The same with kustomize/,/^  ```$/{/```/d; /same with/d; s/^  //; p}' docs/kubernetes.md)
EOT
    kubectl apply -k "$folder/overlay" >/dev/null
    pod daemonset/fairway-speaker | jq -e '.spec.containers[0] | .image == "registry.example/fairway:0.1.0"
        and .securityContext.capabilities.add == ["NET_BIND_SERVICE", "NET_RAW", "SYS_NICE", "IPC_LOCK"]' >/dev/null || fail "the overlay is not in force"
    pod deployment/fairway-controller | jq -e '.spec.containers[0] | any(.env[]; .name == "FAIRWAY_WEBHOOK_NAME")
        and any(.ports[]; .containerPort == 9443)' >/dev/null || fail "the controller has no webhook"
    kubectl get networkpolicy fairway-controller -n metallb-system -o json |
        jq -e '[.spec.ingress[0].ports[].port] == [7472, 9443]' >/dev/null || fail "the webhook cannot be reached"
    may controller yes get secrets/fairway-webhook-cert -n metallb-system
    may controller no get secrets/tor-1 -n metallb-system
    may controller yes patch validatingwebhookconfigurations/fairway-webhook
    may controller no patch validatingwebhookconfigurations/another
    may controller no create validatingwebhookconfigurations
    # What the leader wrote stays over an apply.
    kubectl patch validatingwebhookconfiguration fairway-webhook --type=json \
        -p '[{"op": "add", "path": "/webhooks/0/clientConfig/caBundle", "value": "'"$(base64 -w0 "$folder/certificates/apiserver.crt")"'"}]' >/dev/null
    kubectl patch secret fairway-webhook-cert -n metallb-system -p '{"data": {"tls.key": "c29tZQ=="}}' >/dev/null
    kubectl apply -k "$folder/overlay" >/dev/null
    [[ -n $(kubectl get validatingwebhookconfiguration fairway-webhook -o jsonpath='{.webhooks[0].clientConfig.caBundle}') &&
        -n $(kubectl get secret fairway-webhook-cert -n metallb-system -o jsonpath='{.data.tls\.key}') ]] ||
        fail "an apply takes the certificate away"
    may speaker yes get secrets/tor-1 -n metallb-system
    may speaker no get secrets/tor-3 -n metallb-system
    kubectl apply -k deploy >/dev/null
    kubectl kustomize deploy/components/prometheus >/dev/null
    sed -i 's|components/net-raw|components/layer2|' "$folder/overlay/kustomization.yaml"
    kubectl apply --dry-run=server -k "$folder/overlay" >/dev/null
    kubectl kustomize "$folder/overlay" | grep -A1 'name: FAIRWAY_MEMBER_KEY_FILE' | grep -qx ' *value: /etc/fairway/members/key' ||
        fail "the speaker has no key of members"
    sed -i 's|^\( *- .*components/layer2\)$|\1\n\1-bind|' "$folder/overlay/kustomization.yaml"
    kubectl kustomize "$folder/overlay" | grep -qx ' *- NET_ADMIN' || fail "the speaker may not bind addresses"
    kubectl apply --dry-run=server -f deploy/static-pod/fairway.yaml >/dev/null
    sed -i 's|components/layer2-bind|components/proxy|' "$folder/overlay/kustomization.yaml"
    kubectl apply -k "$folder/overlay" >/dev/null
    [[ $(kubectl get daemonset fairway-speaker -n metallb-system -o jsonpath='{..env[?(@.name=="FAIRWAY_PROXY_SOCKET")].value}') == \
        /run/fairway-proxy/proxy.sock ]] || fail "the speaker does not follow the proxy"
    may proxy yes watch endpointslices.discovery.k8s.io
    may proxy no patch services/status
    may proxy no get secrets/tor-1 -n metallb-system
    kubectl apply --dry-run=server -k deploy/migration >/dev/null
    ok "components, and the page's patch for Secrets"

    may speaker no get configmaps/bgpextras -n metallb-system
    local way
    for way in component chart; do
        if [[ $way == component ]]; then
            cat >"$folder/overlay/kustomization.yaml" <<EOT
apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
resources: [$(realpath --relative-to="$folder/overlay" deploy)]
components: [$(realpath --relative-to="$folder/overlay" deploy/components/frr)]
EOT
            kubectl apply -k "$folder/overlay" >/dev/null
        else
            helm template fairway "$chart" -n metallb-system --set speaker.frr.enabled=true --no-hooks |
                kubectl apply -n metallb-system -f - >/dev/null
        fi
        for verb in get list watch; do may speaker yes $verb configmaps/bgpextras -n metallb-system; done
        may speaker no get configmaps/another -n metallb-system
        pod daemonset/fairway-speaker | jq -e '.spec.containers as [$speaker, $frr]
            | ($speaker.securityContext.capabilities == {"drop": ["ALL"]})
            and any($speaker.env[]; .name == "FAIRWAY_BGP" and .value == "frr")
            and ($frr.securityContext.capabilities.drop == ["ALL"])
            and ($frr.securityContext.capabilities.add | index("SYS_ADMIN"))
            and ([$speaker, $frr] | all(any(.volumeMounts[]; .mountPath == "/run/fairway-frr")))' >/dev/null ||
            fail "FRR by the $way is not as it should be"
        kubectl apply -k deploy >/dev/null
    done
    ok "FRR as the speaker, by component and by chart"

    kubectl delete --wait=false -n metallb-system daemonset,deployment,pdb,role,rolebinding,serviceaccount,secret,service,networkpolicy --all >/dev/null
    kubectl delete clusterrole,clusterrolebinding,validatingwebhookconfiguration -l app.kubernetes.io/name=fairway >/dev/null
    kubectl apply -f - >/dev/null <<'EOT'
apiVersion: metallb.io/v1beta1
kind: IPAddressPool
metadata: {name: public, namespace: metallb-system}
spec: {addresses: [198.51.100.0/24]}
EOT
    refused "invalid ownership metadata" helm install fairway "$chart" -n metallb-system
    helm install fairway "$chart" -n metallb-system --take-ownership --set speaker.secretNames='{tor-1}' >"$folder/notes"
    may speaker yes get secrets/tor-1 -n metallb-system
    may speaker no get secrets/tor-2 -n metallb-system
    helm upgrade fairway "$chart" -n metallb-system -f tests/deploy/metallb-values.yaml \
        --set prometheus.podMonitor.enabled=false,prometheus.prometheusRule.enabled=false >"$folder/notes"
    grep -qF "have no effect here: frrk8s, speaker.excludeInterfaces, speaker.memberlist, speaker.startupProbe" \
        "$folder/notes" || fail "the notes do not name what is unused: $(<"$folder/notes")"
    helm uninstall fairway -n metallb-system >/dev/null
    kubectl get ipaddresspool public -n metallb-system >/dev/null || fail "helm uninstall took the definitions along"
    ok "helm: install over what is there, upgrade, uninstall; the objects stay"
    monitoring_kinds
    helm template lb "$chart" -n metallb-system -f tests/deploy/values.yaml --no-hooks |
        kubectl apply --dry-run=server -f - >/dev/null
    ok "an API server takes all values at once"
    published
    clean_up
}

# The kinds of the Prometheus operator, with any fields.
monitoring_kinds() {
    local kind plural
    for kind in PodMonitor ServiceMonitor PrometheusRule; do
        plural=${kind,,}s
        kubectl apply -f - >/dev/null <<EOT
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: $plural.monitoring.coreos.com}
spec:
  group: monitoring.coreos.com
  scope: Namespaced
  names: {kind: $kind, plural: $plural, singular: ${kind,,}}
  versions:
    - name: v1
      served: true
      storage: true
      schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
EOT
    done
    kubectl wait --for=condition=Established --timeout=30s crd --all >/dev/null
}

# Values that users of MetalLB's chart have published: what they get monitors the daemons, and may.
published() {
    local promtool values file secure account path
    promtool=$(find_promtool)
    for values in tests/deploy/published/*.yaml; do
        file=$folder/$(basename "$values" .yaml).json
        helm template metallb "$chart" -n metallb-system -f "$values" --no-hooks |
            kubectl apply -n metallb-system -f - >/dev/null || fail "$values: refused"
        kubectl get -n metallb-system -o json \
            deployments,daemonsets,services,podmonitors,servicemonitors,prometheusrules >"$file"
        secure=$(sed -n 's/^  secureMetricsPort: //p' "$values")
        # Each monitor finds pods of both daemons, and a port that they have.
        if grep -q 'Monitor: {enabled: true\|Monitor:$' "$values"; then
            jq -e --arg port "$([[ -n $secure ]] && echo metricshttps || echo metrics)" '
                def fits($selector): . as $labels | $selector | to_entries | all($labels[.key] == .value);
                .items as $all
                | [$all[] | select(.kind == "Deployment" or .kind == "DaemonSet") | .spec.template
                    | {labels: .metadata.labels, ports: [.spec.containers[].ports[]?.name]}] as $pods
                | ([$all[] | select(.kind == "PodMonitor") | .spec
                        | {selector: .selector.matchLabels, port: .podMetricsEndpoints[].port}]
                    + [$all[] | select(.kind == "ServiceMonitor") | .spec as $monitor | $all[]
                        | select(.kind == "Service") | select(.metadata.labels | fits($monitor.selector.matchLabels))
                        | {selector: .spec.selector, port: $monitor.endpoints[].port}]) as $targets
                | $pods | length == 2 and all(. as $pod
                    | any($targets[]; .selector as $selector | .port == $port
                        and ($pod.ports | index($port)) and ($pod.labels | fits($selector))))' "$file" >/dev/null ||
                fail "$values: a daemon is not monitored"
            account=system:serviceaccount:$(sed -n 's/^  namespace: //p' "$values"):$(sed -n 's/^  serviceAccount: //p' "$values")
            kubectl auth can-i list pods -n metallb-system --as "$account" >/dev/null || fail "$values: Prometheus finds no pods"
            [[ -z $secure ]] || kubectl auth can-i get /metrics --as "$account" >/dev/null || fail "$values: Prometheus may not read"
        fi
        if [[ -n $secure ]]; then
            for path in tokenreviews.authentication.k8s.io subjectaccessreviews.authorization.k8s.io; do
                kubectl auth can-i create "$path" --as system:serviceaccount:metallb-system:metallb-fairway-controller >/dev/null ||
                    fail "$values: the controller may not $path"
            done
        fi
        if jq -e 'any(.items[]; .kind == "PrometheusRule")' "$file" >/dev/null; then
            jq '.items[] | select(.kind == "PrometheusRule") | .spec' "$file" >"$folder/published-rules.json"
            "$promtool" check rules "$folder/published-rules.json" >/dev/null || fail "$values: alerts"
        elif grep -q 'prometheusRule: {enabled: true' "$values"; then
            fail "$values: no alerts"
        fi
        helm template metallb "$chart" -n metallb-system -f "$values" --no-hooks |
            kubectl delete --wait=false -n metallb-system -f - >/dev/null 2>&1 || true
        ok "published values: $(basename "$values")"
    done
}

build_image() {
    scripts/docker.sh engine
    if [[ -n ${FAIRWAY_IMAGE:-} ]]; then
        local loaded
        loaded=$(docker load --quiet --input "$FAIRWAY_IMAGE") || fail "docker load: $FAIRWAY_IMAGE"
        docker tag "${loaded#Loaded image: }" "$image" && docker rmi "${loaded#Loaded image: }" >/dev/null
        return
    fi
    scripts/docker.sh base
    [[ -x docker/bin/fairway ]] || fail "no docker/bin/fairway; run: make static"
    DOCKER_BUILDKIT=0 docker build -q -f docker/kubernetes/host.Dockerfile -t "$image" . >/dev/null 2>"$folder/build.log" ||
        fail "$(<"$folder/build.log")"
}

image() {
    local kind options
    build_image
    ok "the image is built: $(docker image inspect -f '{{.Size}}' "$image") bytes"
    [[ $(docker image inspect -f '{{.Config.User}}' "$image") == 65532:65532 ]] || fail "it runs as somebody else"
    for options in "" "--cap-add NET_BIND_SERVICE" "--cap-add NET_RAW" "--cap-add NET_BIND_SERVICE --cap-add NET_RAW" \
        "--cap-add NET_RAW --cap-add NET_ADMIN" "--cap-add SYS_NICE --cap-add IPC_LOCK"; do
        for kind in "" "--security-opt no-new-privileges"; do
            # shellcheck disable=SC2086 # Words.
            docker run --rm --read-only --network none --cap-drop ALL $options $kind "$image" --version >/dev/null ||
                fail "does not start with: $options $kind"
        done
    done
    ok "it starts with every set of capabilities, with and without new privileges"
    # What the manifests say by the environment is what the program reads.
    local part name known
    for part in controller speaker; do
        known=$(docker run --rm --network none "$image" "$part" --help)
        for name in $(grep -o 'FAIRWAY_[A-Z_]*' "deploy/base/$part.yaml" | sort -u); do
            grep -q "\[env: $name=" <<<"$known" || fail "fairway $part knows no $name"
        done
    done
    ok "all variables of the manifests mean something"
    # As the init container does, on a folder as the kubelet makes it.
    install -d -m 0755 "$folder/state"
    local prepare=(docker run --rm --read-only --network none --user 0:0 --cap-drop ALL --cap-add CHOWN
        --cap-add DAC_OVERRIDE --cap-add FOWNER --security-opt no-new-privileges
        -e FAIRWAY_STATE_DIR=/var/lib/fairway -v "$folder/state:/var/lib/fairway" "$image" state-dir --owner 65532:65532)
    "${prepare[@]}" && "${prepare[@]}"
    [[ $(stat -c '%u:%g %a' "$folder/state") == "65532:65532 700" ]] || fail "the folder is $(stat -c '%u:%g %a' "$folder/state")"
    ok "the state folder is made writable, and again"
    # Port 179 without root: the capability is raised in the process.
    local container
    container=$(docker run -d --read-only --cap-drop ALL --cap-add NET_BIND_SERVICE --tmpfs /run/fairway:mode=1777 \
        --sysctl net.ipv4.ip_unprivileged_port_start=1024 -e FAIRWAY_SOCKET=/run/fairway/fairway.sock \
        -v "$PWD/examples/peers/passive.yaml:/etc/fairway/peers.yaml:ro" -v "$folder/state:/var/lib/fairway" \
        -e FAIRWAY_STATE_DIR=/var/lib/fairway "$image" run --config /etc/fairway --node test)
    containers+=("$container")
    listening "$(docker inspect -f '{{.State.Pid}}' "$container")" || {
        docker logs "$container" >&2
        fail "nobody listens on port 179"
    }
    docker exec "$container" fairway show config >/dev/null || fail "it does not answer"
    clean_up
    ok "it listens on port 179 as user 65532, and answers fairway show"
    as_kubernetes "$image"
    docker rmi "$image" >/dev/null
}

# listening PID: whether somebody in the network of this process listens on port 179, within 20 s.
listening() {
    local deadline=$((SECONDS + 20))
    until grep -qsE '^ *[0-9]+: [0-9A-F]+:00B3 [0-9A-F]+:0000 0A' "/proc/$1/net/tcp"; do
        ((SECONDS < deadline)) && [[ -d /proc/$1 ]] || return 1
        sleep 0.1
    done
}

# As containerd and CRI-O start a pod with `allowPrivilegeEscalation: false`: no new privileges, and the
# capabilities permitted before the program is executed. Docker does not, for users other than root.
as_kubernetes() {
    if ! type -P runc >/dev/null; then
        say "skipped: no runc here"
        return
    fi
    local bundle=$folder/bundle container
    mkdir -p "$bundle/rootfs"
    container=$(docker create "$1")
    docker export "$container" | tar -x --xattrs --xattrs-include=security.capability -C "$bundle/rootfs"
    docker rm "$container" >/dev/null
    mkdir -p "$bundle/rootfs/etc/fairway"
    cp examples/peers/passive.yaml "$bundle/rootfs/etc/fairway/"
    runc spec --bundle "$bundle"
    jq '["CAP_NET_BIND_SERVICE"] as $has | .process.terminal = false | .process.noNewPrivileges = true
        | .process.user = {uid: 65532, gid: 65532} | .root.readonly = true
        | .process.capabilities = {bounding: $has, effective: $has, permitted: $has}
        | .process.args = ["fairway", "run", "--config", "/etc/fairway", "--node", "test"]
        | .process.env = ["PATH=/usr/local/bin", "FAIRWAY_SOCKET=/state/socket", "FAIRWAY_STATE_DIR=/state"]
        | .mounts += [{destination: "/state", type: "bind", source: $state, options: ["bind"]}]' \
        --arg state "$folder/state" "$bundle/config.json" >"$bundle/new.json"
    mv "$bundle/new.json" "$bundle/config.json"
    container=fairway-deploy-test-$$
    runc run --detach --bundle "$bundle" --pid-file "$folder/pid" "$container" >"$folder/log" 2>&1 </dev/null || fail "$(<"$folder/log")"
    local result=0
    listening "$(<"$folder/pid")" || result=1
    runc delete --force "$container"
    ((result == 0)) || fail "nobody listens on port 179: $(<"$folder/log")"
    ok "it listens on port 179 as Kubernetes starts it, without new privileges"
}

# start_pod controller|speaker ADDRESS:PORT OPTION...: what a kubelet would, with the account's own rights.
start_pod() {
    local part=$1 listen=$2 account=$folder/account-$1
    containers+=("fairway-deploy-test-$part")
    mkdir -p "$account"
    kubectl create token "fairway-$part" -n metallb-system >"$account/token"
    cp "$folder/certificates/apiserver.crt" "$account/ca.crt"
    echo -n metallb-system >"$account/namespace"
    docker run -d --name "fairway-deploy-test-$part" --network host --read-only --cap-drop ALL \
        -v "$account:/var/run/secrets/kubernetes.io/serviceaccount:ro" \
        -e KUBERNETES_SERVICE_HOST=127.0.0.1 -e KUBERNETES_SERVICE_PORT="$api_port" \
        -e FAIRWAY_NAMESPACE=metallb-system -e FAIRWAY_POD="$part" -e FAIRWAY_POD_UID="uid-of-$part" \
        -e FAIRWAY_METRICS_LISTEN="$listen" "${@:3}" "$image" "$part" >/dev/null
}

# until_true WHAT COMMAND...: it succeeds within 30 s.
until_true() {
    local what=$1 deadline=$((SECONDS + 30))
    shift
    until "$@" >/dev/null 2>&1; do
        ((SECONDS < deadline)) || {
            docker logs fairway-deploy-test-controller >&2
            docker logs fairway-deploy-test-speaker >&2
            fail "$what"
        }
        sleep 0.2
    done
    ok "$what"
}

# gives PORT PATH WORDS: an answer over HTTP that has these words.
gives() {
    local answer
    exec 4<>"/dev/tcp/127.0.0.1/$1" || return 1
    printf 'GET %s HTTP/1.1\r\nHost: fairway\r\nConnection: close\r\n\r\n' "$2" >&4
    answer=$(cat <&4)
    exec 4>&-
    [[ $answer == *"$3"* ]]
}

pods() {
    build_image
    # shellcheck source=tests/deploy/api_server.sh
    . tests/deploy/api_server.sh
    start_api_server
    local part port=$((15000 + RANDOM % 4000))
    kubectl apply -k deploy >/dev/null
    kubectl wait --for=condition=Established --timeout=30s crd --all >/dev/null
    kubectl apply -f - >/dev/null <<'EOT'
apiVersion: v1
kind: Node
metadata: {name: node-a}
---
apiVersion: metallb.io/v1beta1
kind: IPAddressPool
metadata: {name: public, namespace: metallb-system}
spec: {addresses: [198.51.100.0/24]}
---
apiVersion: v1
kind: Service
metadata: {name: web, namespace: default}
spec: {type: LoadBalancer, ports: [{port: 80}]}
EOT
    start_pod controller ":$port"
    install -d -m 0700 -o 65532 -g 65532 "$folder/node"
    start_pod speaker ":$((port + 1))" -e FAIRWAY_NODE=node-a -e FAIRWAY_DAEMONSET=fairway-speaker --tmpfs /run/fairway:mode=1777 \
        -e FAIRWAY_SOCKET=/run/fairway/fairway.sock -e FAIRWAY_STATE_DIR=/var/lib/fairway -v "$folder/node:/var/lib/fairway" \
        --cap-add NET_BIND_SERVICE
    until_true "the controller is healthy" gives "$port" /healthz "200 OK"
    until_true "the speaker is healthy" gives $((port + 1)) /healthz "200 OK"
    until_true "the controller is ready" gives "$port" /readyz "200 OK"
    until_true "the speaker is ready" gives $((port + 1)) /readyz "200 OK"
    has_address() { [[ $(kubectl get service web -o jsonpath='{.status.loadBalancer.ingress[0].ip}') == 198.51.100.0 ]]; }
    until_true "a Service has its address" has_address
    until_true "the speaker knows it" docker exec fairway-deploy-test-speaker fairway explain service default/web
    until_true "the controller says that all is valid" kubectl wait -n metallb-system configurationstate/controller \
        --for=jsonpath='{.status.result}'=Valid --timeout=1s
    until_true "the speaker says so, too" kubectl wait -n metallb-system configurationstate/speaker-node-a \
        --for=jsonpath='{.status.result}'=Valid --timeout=1s
    until_true "metrics are there" gives "$port" /metrics 'metallb_allocator_ipv4_addresses_in_use_total{pool="public"} 1'
    docker logs fairway-deploy-test-controller >"$folder/log" 2>&1
    docker logs fairway-deploy-test-speaker >>"$folder/log" 2>&1
    # Times of the log may have these digits, too.
    ! grep -iE 'forbidden|(^|[^0-9.])403: ' "$folder/log" || fail "the API server refused something"
    ok "nothing was forbidden"
    docker stop -t 10 "${containers[@]}" >/dev/null
    for part in controller speaker; do
        [[ $(docker inspect -f '{{.State.ExitCode}}' "fairway-deploy-test-$part") == 0 ]] ||
            fail "the $part ended with $(docker inspect -f '{{.State.ExitCode}}' "fairway-deploy-test-$part")"
    done
    ok "both end when they are told to"
    clean_up
    docker rmi "$image" >/dev/null
}

checks=()
for argument in "$@"; do
    case $argument in
    rendered | chart | alerts | quickstart | server | image | pods) checks+=("$argument") ;;
    -h | --help)
        usage
        exit
        ;;
    *)
        usage >&2
        exit 2
        ;;
    esac
done
((${#checks[@]})) || checks=(rendered chart alerts quickstart server image pods)
helm=$(scripts/helm.sh)
for check in "${checks[@]}"; do "$check"; done
echo "$passed passed, 0 failed"
