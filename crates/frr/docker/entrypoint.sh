#!/bin/bash
# FRR's daemons, kept up by FRR's own watchfrr, and beside it the agent that hands their sockets to Fairway.
#
# The end of either is the container's, and whoever runs that starts it anew. The daemons are killed then, and
# say nothing: routers keep the routes where graceful restart was agreed.
set -euo pipefail

/usr/lib/frr/watchfrr zebra staticd bgpd bfdd &

# FRR's sockets are open to its own user, so the agent needs no more than to be that. Its own are for the group of
# Fairway's container.
setpriv --reuid frr --regid "${FAIRWAY_GID:-65532}" --clear-groups --no-new-privs \
    fairway frr-agent --socket-dir "${FAIRWAY_SOCKET_DIR:-/run/fairway-frr}" &

trap 'exit 0' TERM INT
wait -n
