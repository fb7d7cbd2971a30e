# Fairway, compiled on the host by `make static`: for machines where the Rust image cannot be pulled.
FROM debian:bookworm-slim
COPY docker/bin/fairway /usr/local/bin/fairway
COPY docker/bin/fairway-cni /usr/lib/cni/fairway-cni
# A volume that is mounted there begins with this owner.
RUN install -d -m 0700 -o 65532 -g 65532 /var/lib/fairway
USER 65532:65532
ENTRYPOINT ["fairway"]
