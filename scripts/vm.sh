#!/usr/bin/env bash
# Runs a command on another kernel: in a small VM with this machine's own root, read-only with a temporary
# layer above it. Programs of this machine run there, and nothing that they write stays.
set -euo pipefail

usage() {
    cat <<'EOT'
Usage: scripts/vm.sh [--suite SUITE] [--seconds N] [--memory MIB] [--network] COMMAND [ARGUMENT...]

  --suite SUITE   the Debian suite of the kernel, the newest one (default trixie-backports, which has
                  TCP-AO, VRF, IPVS, dummy and netem; bookworm has 6.1, without TCP-AO)
  --seconds N     ends the VM after N seconds (default 300)
  --memory MIB    memory of the VM (default 2048)
  --network       an interface eth0; what listens on 127.0.0.1 of this machine is at 10.0.2.2

COMMAND runs as root in the current folder, with PATH, HOME and all variables that begin with
FAIRWAY_, RUST_, CARGO or XDG_. Its output goes to stdout, and its exit status is that of
this script; 124 means the time limit, 125 a VM that did not start. Files that it writes are
lost, except in /run/out, which is the folder FAIRWAY_VM_OUT.

The VM is emulated (QEMU's TCG), so that it runs anywhere: ten times slower than the machine.
Kernels are fetched from the Debian mirror of this machine once, and kept in
${XDG_CACHE_HOME:-/var/cache}/fairway/kernels. What it needs: scripts/setup.sh vm
EOT
}

say() { echo "vm.sh: $*" >&2; }
die() {
    say "$@"
    exit 125
}

suite=trixie-backports seconds=300 memory=2048 network=
while (($#)); do
    case $1 in
    --suite) suite=${2:?--suite needs a name} && shift 2 ;;
    --seconds) seconds=${2:?--seconds needs a number} && shift 2 ;;
    --memory) memory=${2:?--memory needs a number} && shift 2 ;;
    --network) network=yes && shift ;;
    -h | --help)
        usage
        exit
        ;;
    --)
        shift
        break
        ;;
    -*)
        usage >&2
        exit 2
        ;;
    *) break ;;
    esac
done
(($#)) || {
    usage >&2
    exit 2
}
for tool in qemu-system-x86_64 busybox depmod cpio xz apt-get dpkg-deb; do
    command -v "$tool" >/dev/null || die "no $tool here; run: scripts/setup.sh vm"
done

kernels=${XDG_CACHE_HOME:-/var/cache}/fairway/kernels
kernel=$kernels/$suite

# Fills $1 with the unpacked newest kernel of the suite: vmlinuz, lib/modules, version.
fetch() {
    local into=$1 apt=$1/apt mirror keys=/usr/share/keyrings/debian-archive-keyring.gpg
    mirror=$(sed -nE 's/^URIs: *(\S+).*/\1/p; s/^deb( \[[^]]*\])? (https?:\S+) .*/\2/p' \
        /etc/apt/sources.list /etc/apt/sources.list.d/debian.sources 2>/dev/null | head -n 1)
    mkdir -p "$apt"/{state/lists,cache/archives}/partial
    echo "deb [signed-by=$keys] ${mirror:-http://deb.debian.org/debian} $suite main" >"$apt/sources"
    : >"$apt/status"
    # A separate apt configuration with only this suite.
    local own=(-qq -o Dir::State="$apt/state" -o Dir::State::status="$apt/status"
        -o Dir::Cache="$apt/cache" -o Dir::Etc::sourcelist="$apt/sources"
        -o Dir::Etc::sourceparts=/dev/null -o Dir::Etc::preferencesparts=/dev/null
        -o APT::Architecture=amd64 -o APT::Sandbox::User=)
    apt-get "${own[@]}" update >&2
    # The image, or the parts of newer ones; not the packages that would install them.
    local packages
    mapfile -t packages < <(apt-cache "${own[@]}" depends --recurse --no-recommends --no-suggests \
        --no-conflicts --no-breaks --no-replaces --no-enhances linux-image-amd64 |
        grep -E '^linux-(image|binary|modules|base)-[0-9]' | sort -u)
    ((${#packages[@]})) || return
    (cd "$apt" && apt-get "${own[@]}" download "${packages[@]}" >&2)
    local package
    for package in "$apt"/*.deb; do dpkg-deb -x "$package" "$into/root"; done
    rm -rf "$apt"
    # Newer packages have everything below usr.
    [[ ! -d $into/root/usr/lib/modules ]] || mv "$into/root/usr/lib/modules" "$into/modules"
    [[ ! -d $into/root/lib/modules ]] || mv "$into/root/lib/modules" "$into/modules"
    mkdir -p "$into/lib"
    mv "$into/modules" "$into/lib/modules"
    ls "$into/lib/modules" >"$into/version"
    find "$into/root" -name 'vmlinuz-*' -o -path '*/modules/*/vmlinuz' | head -n 1 |
        xargs -I{} mv {} "$into/vmlinuz"
    [[ -e $into/vmlinuz ]] || find "$into/lib/modules" -name vmlinuz -exec cp {} "$into/vmlinuz" \;
    rm -rf "$into/root"
    depmod -b "$into" "$(<"$into/version")"
}

# The initrd that mounts this machine's root: busybox, some modules, and an init.
make_initrd() {
    local into=$1 version root=$1/initrd module
    version=$(<"$into/version")
    mkdir -p "$root"/{bin,modules,host,layer,root,proc,sys,dev}
    cp "$(command -v busybox)" "$root/bin/busybox"
    local number=100
    while read -r verb module _; do
        [[ $verb == insmod ]] || continue
        local name
        name=$(basename "${module%.xz}")
        compgen -G "$root/modules/*-$name" >/dev/null && continue
        number=$((number + 1))
        case $module in
        *.xz) xz -dc "$module" >"$root/modules/$number-$name" ;;
        *) cp "$module" "$root/modules/$number-$name" ;;
        esac
    done < <(modprobe -d "$into" -S "$version" --show-depends -a \
        virtio_pci virtio_console 9p 9pnet_virtio overlay)
    cat >"$root/init" <<'EOT'
#!/bin/busybox sh
b=/bin/busybox
$b mount -t proc proc /proc
$b mount -t sysfs sys /sys
$b mount -t devtmpfs dev /dev
for module in /modules/*; do $b insmod $module; done
nine=trans=virtio,version=9p2000.L,msize=512000
$b mount -t 9p -o $nine,ro,cache=loose host /host
$b mount -t tmpfs -o size=75% layer /layer
$b mkdir /layer/upper /layer/work
$b mount -t overlay -o lowerdir=/host,upperdir=/layer/upper,workdir=/layer/work root /root
$b mount -t tmpfs run /root/run
$b mkdir -p /root/run/out /root/run/lock /root/run/netns /root/lib/modules/$($b uname -r)
$b mount -t 9p -o $nine out /root/run/out
$b mount -t 9p -o $nine,ro,cache=loose modules /root/lib/modules/$($b uname -r)
for pseudo in proc sys dev; do $b mount --move /$pseudo /root/$pseudo; done
exec $b switch_root /root /run/out/init
EOT
    chmod +x "$root/init"
    (cd "$root" && find . -print0 | cpio --null --create --format=newc --quiet) >"$into/initrd.img"
    rm -rf "$root"
}

if [[ ! -e $kernel/initrd.img ]]; then
    mkdir -p "$kernels" || die "cannot write $kernels; set XDG_CACHE_HOME"
    say "taking the kernel of $suite; kept in $kernel"
    fresh=$(mktemp -d "$kernels/.new-XXXXXX")
    trap 'rm -rf "$fresh"' EXIT
    chmod 755 "$fresh"
    fetch "$fresh" || die "cannot get the kernel of $suite"
    make_initrd "$fresh"
    # The first one wins; both are the same.
    mv -T "$fresh" "$kernel" 2>/dev/null || [[ -e $kernel/initrd.img ]] ||
        die "cannot keep the kernel in $kernel"
    trap - EXIT
fi

out=${FAIRWAY_VM_OUT:-}
if [[ -z $out ]]; then
    out=$(mktemp -d)
    trap 'rm -rf "$out"' EXIT
fi
rm -f "$out/status" "$out/console"
{
    echo '#!/bin/bash'
    # Runs first on the new root. Its output goes to the port that is connected to our stdout.
    echo 'mkdir -p /dev/pts /dev/shm; mount -t devpts devpts /dev/pts; mount -t tmpfs shm /dev/shm'
    echo 'mount -t cgroup2 cgroup2 /sys/fs/cgroup; ln -sf /proc/self/fd /dev/fd; ip link set lo up'
    echo 'exec </dev/null >/dev/vport0p1 2>&1'
    # Only this machine can be reached: there is no route beyond.
    [[ -z $network ]] || echo 'modprobe virtio_net && ip address add 10.0.2.15/24 dev eth0 && ip link set eth0 up'
    while read -r name; do declare -p "$name" | sed 's/^declare -[^ ]* /export /'; done < <(
        compgen -e | grep -E '^(PATH|HOME|LANG|USER)$|^(FAIRWAY_|RUST_|CARGO|XDG_)'
    )
    printf 'cd %q && (' "$PWD"
    printf ' %q' "$@"
    echo ' )'
    # Nothing to unmount: all that is written is discarded.
    echo 'echo $? >/run/out/status; sync; echo o >/proc/sysrq-trigger; sleep 10'
} >"$out/init"
chmod +x "$out/init"

# An input that stays open: at the end of its input QEMU would close the output as well.
rm -f "$out/silence"
mkfifo "$out/silence"
exec 3<>"$out/silence"
rm "$out/silence"

say "Linux $(<"$kernel/version"), at most $seconds s"
# One processor: a kernel that patches its own code while another processor runs it has crashed in emulation.
qemu=(qemu-system-x86_64
    -machine q35 -accel tcg -cpu max -smp 1 -m "$memory"
    -nodefaults -display none -no-reboot
    -kernel "$kernel/vmlinuz" -initrd "$kernel/initrd.img"
    -append 'console=ttyS0 quiet loglevel=4 panic=-1 mitigations=off'
    -serial "file:$out/console"
    -device virtio-serial-pci -device virtserialport,chardev=out,name=out
    -chardev stdio,id=out,signal=off -device virtio-rng-pci
    -fsdev local,id=host,path=/,security_model=none,readonly=on,multidevs=remap
    -device virtio-9p-pci,fsdev=host,mount_tag=host
    -fsdev local,id=out,path="$out",security_model=none
    -device virtio-9p-pci,fsdev=out,mount_tag=out
    -fsdev local,id=modules,path="$kernel/lib/modules/$(<"$kernel/version")",security_model=none,readonly=on
    -device virtio-9p-pci,fsdev=modules,mount_tag=modules
)
[[ -z $network ]] || qemu+=(-netdev user,id=network -device virtio-net-pci,netdev=network)
status=0
timeout --foreground --kill-after=5 "$seconds" "${qemu[@]}" <&3 || status=$?
if [[ -s $out/status ]]; then
    exit "$(<"$out/status")"
fi
[[ $status != 124 ]] || say "the time limit of $seconds s has passed"
say "the VM's console:"
tail -n 30 "$out/console" >&2 || true
[[ $status == 124 ]] && exit 124
die "the VM ended without an exit status"
