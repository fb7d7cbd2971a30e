# FRR with Fairway's agent, which is compiled on the host by `make static`.
FROM debian:bookworm-slim
COPY crates/frr/docker/install.sh /tmp/install.sh
RUN /tmp/install.sh && rm /tmp/install.sh
COPY crates/frr/docker/daemons /etc/frr/daemons
COPY crates/frr/docker/entrypoint.sh /usr/local/bin/entrypoint
COPY docker/bin/fairway /usr/local/bin/fairway
HEALTHCHECK --interval=3s --timeout=3s --retries=20 CMD ["vtysh", "-c", "show bgp summary"]
ENTRYPOINT ["entrypoint"]
