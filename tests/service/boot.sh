#!/usr/bin/env bash
# Boots systemd on a throw-away layer over a root directory. Runs as process 1 of namespaces of its own; the machine
# outside keeps nothing of it.
#   boot.sh ROOT PLACE PACKAGES    PLACE: an empty directory; PACKAGES is there as /packages
set -euo pipefail
root=$1 place=$2 packages=$3

mount -t tmpfs none "$place"
mkdir "$place"/{upper,work,merged}
mount -t overlay none -o "lowerdir=$root,upperdir=$place/upper,workdir=$place/work" "$place/merged"
cd "$place/merged"
mount -t proc proc proc
mount -t sysfs -o ro sysfs sys
# Of its own, so that it need not care how the machine outside has its cgroups.
mount -t cgroup2 cgroup2 sys/fs/cgroup
mount -t tmpfs -o mode=755 none run
mount -t tmpfs -o mode=755 none dev
mkdir dev/pts dev/shm packages
for name in null zero full random urandom tty; do
    touch "dev/$name"
    mount --bind "/dev/$name" "dev/$name"
done
mount -t devpts -o newinstance,ptmxmode=666,mode=620 devpts dev/pts
ln -s pts/ptmx dev/ptmx
ln -s /proc/self/fd dev/fd
touch dev/console
mount --bind "$packages" packages
mount -o remount,bind,ro packages
# Services may start here, but not the routers that are in that root for other tests.
rm -f usr/sbin/policy-rc.d
for unit in frr bird cron console-getty; do ln -sf /dev/null "etc/systemd/system/$unit.service"; done
: >etc/machine-id
ip link set lo up

pivot_root . mnt
cd /
umount -l mnt
exec env -i container=fairway-test PATH=/usr/sbin:/usr/bin LANG=C.UTF-8 /lib/systemd/systemd systemd.unit=multi-user.target
