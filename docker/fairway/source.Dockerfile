# Fairway, compiled inside the build.
FROM rust:1-bookworm AS builder
WORKDIR /src
# Shown by `fairway --version`; the build context has no git history.
ARG FAIRWAY_COMMIT
COPY . .
# The caches make a second build compile only what changed.
RUN --mount=type=cache,target=/usr/local/cargo/registry --mount=type=cache,target=/src/target \
    cargo build --release --locked --package fairway --package fairway-cni --bin fairway --bin fairway-cni \
    && cp target/release/fairway target/release/fairway-cni /usr/local/bin/

FROM debian:bookworm-slim
COPY --from=builder /usr/local/bin/fairway /usr/local/bin/fairway
COPY --from=builder /usr/local/bin/fairway-cni /usr/lib/cni/fairway-cni
# A volume that is mounted there begins with this owner.
RUN install -d -m 0700 -o 65532 -g 65532 /var/lib/fairway
USER 65532:65532
ENTRYPOINT ["fairway"]
