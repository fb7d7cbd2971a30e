#!/bin/bash
# FRR's daemons, supervised by FRR's own watchfrr, and beside them the agent that hands their sockets to
# Fairway.
#
# When either ends, the container ends, and its supervisor restarts it. The daemons are killed then, without a
# NOTIFICATION: routers keep the routes if graceful restart was negotiated.
set -euo pipefail

/usr/lib/frr/watchfrr zebra staticd bgpd bfdd &

# FRR's sockets are accessible to its own user, so the agent runs as that. Its own sockets are for the group
# of Fairway's container.
setpriv --reuid frr --regid "${FAIRWAY_GID:-65532}" --clear-groups --no-new-privs \
    fairway frr-agent --socket-dir "${FAIRWAY_SOCKET_DIR:-/run/fairway-frr}" &

trap 'exit 0' TERM INT
wait -n
