#!/bin/sh
# Common to both FRR images: FRR as Debian packages it, and the folder that the agent shares with Fairway.
set -eu
apt-get update
DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends frr
rm -rf /var/lib/apt/lists/*
# 65532 is the user and group of Fairway in its own image.
install -d -o frr -g 65532 -m 750 /run/fairway-frr
install -d -o frr -g frr -m 755 /run/frr
