# The image for clusters, with the static binary that `make static` leaves in docker/bin. `make image`
# builds it; for the architecture of this machine.
FROM debian:bookworm-slim AS capabilities
RUN apt-get update \
    && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends libcap2-bin \
    && rm -rf /var/lib/apt/lists/*
COPY docker/bin/fairway /image/usr/local/bin/fairway
COPY docker/bin/fairway-cni /image/usr/lib/cni/fairway-cni
# Permitted, not effective: with `=ep` the kernel refuses to start a program in a container that lacks one of
# them.
RUN setcap cap_net_bind_service,cap_net_raw,cap_net_admin,cap_sys_nice,cap_ipc_lock=p /image/usr/local/bin/fairway

FROM scratch
LABEL org.opencontainers.image.title=fairway \
    org.opencontainers.image.description="A BGP-first load balancer for bare-metal Kubernetes" \
    org.opencontainers.image.licenses=Apache-2.0
COPY --from=capabilities /image /
ENV PATH=/usr/local/bin
USER 65532:65532
ENTRYPOINT ["fairway"]
