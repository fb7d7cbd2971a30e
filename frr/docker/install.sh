#!/bin/sh
# What both images of FRR have: FRR as Debian packages it, and the folder that the agent shares with Fairway.
set -eu
apt-get update
DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends frr
rm -rf /var/lib/apt/lists/*
# Fairway's group in its own image. What is made in the folder is the folder's group's (setgid).
groupadd --gid 65532 fairway
install -d -o frr -g fairway -m 2770 /run/fairway-frr
install -d -o frr -g frr -m 755 /run/frr
