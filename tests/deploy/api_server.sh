# shellcheck shell=bash disable=SC2154 # `folder` is the caller's.
# Sourced by what needs a real API server: starts an empty one in $folder, and lets kubectl and helm find it;
# `api_port` is where it is. There is nothing else: no node, no controller, no kubelet.

assets=$(scripts/kube-apiserver.sh --find) || {
    echo "there is no kube-apiserver; scripts/kube-apiserver.sh builds it" >&2
    exit 3
}
export PATH=$assets:$PATH KUBECONFIG=$folder/kubeconfig

api_processes=()

# Nothing of theirs is to be kept, so they need not end in order.
stop_api_server() {
    ((${#api_processes[@]} == 0)) || kill -KILL "${api_processes[@]}" 2>/dev/null || true
    api_processes=()
    rm -rf "$folder/etcd" "$folder/certificates"
}

start_api_server() {
    local ports etcd peers token=loopback-only
    stop_api_server
    # Three ports that nobody answers on, below those that the kernel gives out.
    mapfile -t ports < <(
        for _ in 1 2 3; do
            while port=$((20000 + RANDOM % 12000)) && (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null; do :; done
            echo "$port"
        done
    )
    etcd=http://127.0.0.1:${ports[0]} peers=http://127.0.0.1:${ports[1]} api_port=${ports[2]}
    etcd --data-dir "$folder/etcd" --listen-client-urls "$etcd" --advertise-client-urls "$etcd" \
        --listen-peer-urls "$peers" --initial-advertise-peer-urls "$peers" --initial-cluster "default=$peers" \
        >"$folder/etcd.log" 2>&1 &
    api_processes=($!)
    openssl genrsa -out "$folder/accounts.key" 2048 2>/dev/null
    echo "$token,test,1,system:masters" >"$folder/tokens.csv"
    kube-apiserver --etcd-servers="$etcd" --bind-address=127.0.0.1 --advertise-address=127.0.0.1 \
        --secure-port="$api_port" --cert-dir="$folder/certificates" --token-auth-file="$folder/tokens.csv" \
        --service-account-key-file="$folder/accounts.key" --service-account-signing-key-file="$folder/accounts.key" \
        --service-account-issuer=https://kubernetes.default.svc --service-cluster-ip-range=10.96.0.0/16,fd00:96::/112 \
        --authorization-mode=RBAC --endpoint-reconciler-type=none --disable-admission-plugins=ServiceAccount \
        --allow-privileged=true \
        >"$folder/kube-apiserver.log" 2>&1 &
    api_processes+=($!)
    disown -a # Their end is no news.
    kubectl config set-cluster test --server="https://127.0.0.1:$api_port" --insecure-skip-tls-verify >/dev/null
    kubectl config set-credentials test --token="$token" >/dev/null
    kubectl config set-context test --cluster=test --user=test >/dev/null
    kubectl config use-context test >/dev/null
    local deadline=$((SECONDS + 120))
    until kubectl get --raw /readyz >/dev/null 2>&1 && kubectl get namespace default >/dev/null 2>&1; do
        ((SECONDS < deadline)) || {
            tail -n 20 "$folder/kube-apiserver.log" >&2
            echo "the API server is not ready" >&2
            exit 1
        }
        sleep 0.2
    done
}
