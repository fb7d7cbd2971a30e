# FRR with Fairway's agent, compiled inside the build.
FROM rust:1-bookworm AS builder
WORKDIR /src
# Shown by `fairway --version`; the build context has no git history.
ARG FAIRWAY_COMMIT
COPY . .
# The caches make a second build compile only what changed.
RUN --mount=type=cache,target=/usr/local/cargo/registry --mount=type=cache,target=/src/target \
    cargo build --release --locked --bin fairway && cp target/release/fairway /usr/local/bin/

FROM debian:bookworm-slim
COPY crates/frr/docker/install.sh /tmp/install.sh
RUN /tmp/install.sh && rm /tmp/install.sh
COPY crates/frr/docker/daemons /etc/frr/daemons
COPY crates/frr/docker/entrypoint.sh /usr/local/bin/entrypoint
COPY --from=builder /usr/local/bin/fairway /usr/local/bin/fairway
HEALTHCHECK --interval=3s --timeout=3s --retries=20 CMD ["vtysh", "-c", "show bgp summary"]
ENTRYPOINT ["entrypoint"]
