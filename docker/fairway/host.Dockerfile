# Fairway, compiled on the host by `make static`: for machines where the Rust image cannot be pulled.
FROM debian:bookworm-slim
COPY docker/bin/fairway /usr/local/bin/fairway
ENTRYPOINT ["fairway"]
