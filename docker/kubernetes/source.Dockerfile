# The image for clusters, compiled inside the build, for one architecture or two:
#   docker buildx build --platform linux/amd64,linux/arm64 -f docker/kubernetes/source.Dockerfile .
FROM --platform=$BUILDPLATFORM rust:1-bookworm AS compiler
ARG TARGETARCH
# The compiler runs on the build machine; its output may be for another architecture.
RUN case $TARGETARCH in \
        amd64) echo x86_64-unknown-linux-gnu x86_64-linux-gnu-gcc gcc-x86-64-linux-gnu ;; \
        arm64) echo aarch64-unknown-linux-gnu aarch64-linux-gnu-gcc gcc-aarch64-linux-gnu ;; \
        *) echo "no image for $TARGETARCH" >&2; exit 1 ;; \
    esac >/target \
    && read -r target compiler package </target \
    && if [ "$(dpkg --print-architecture)" = "$TARGETARCH" ]; then package=; \
        else package="$package libc6-dev-$TARGETARCH-cross"; fi \
    && apt-get update && apt-get install -y --no-install-recommends libcap2-bin $package \
    && rm -rf /var/lib/apt/lists/* \
    && rustup target add "$target"
WORKDIR /src
# Shown by `fairway --version`; the build context has no git history.
ARG FAIRWAY_COMMIT
COPY . .
# The caches make a second build compile only what changed. Statically linked: the image has no libraries.
RUN --mount=type=cache,target=/usr/local/cargo/registry --mount=type=cache,target=/src/target,id=fairway-$TARGETARCH \
    read -r target compiler package </target \
    && name=$(echo "$target" | tr - _) \
    && export "CC_$name=$compiler" "CARGO_TARGET_$(echo "$name" | tr a-z A-Z)_LINKER=$compiler" \
    && RUSTFLAGS='-C target-feature=+crt-static' cargo build --release --locked --package fairway --package fairway-cni \
        --bin fairway --bin fairway-cni --target "$target" \
    && install -D -m 0755 "target/$target/release/fairway" /image/usr/local/bin/fairway \
    && install -D -m 0755 "target/$target/release/fairway-cni" /image/usr/lib/cni/fairway-cni
# Permitted, not effective: with `=ep` the kernel refuses to start a program in a container that lacks one of
# them.
RUN setcap cap_net_bind_service,cap_net_raw,cap_net_admin,cap_sys_nice,cap_ipc_lock=p /image/usr/local/bin/fairway

FROM scratch
LABEL org.opencontainers.image.title=fairway \
    org.opencontainers.image.description="A BGP-first load balancer for bare-metal Kubernetes" \
    org.opencontainers.image.licenses=Apache-2.0
COPY --from=compiler /image /
ENV PATH=/usr/local/bin
USER 65532:65532
ENTRYPOINT ["fairway"]
