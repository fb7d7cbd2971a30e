//! Which capabilities the file of the daemon has in the image, as the kernel stores them. `image` calls it.

/// In Linux's numbers (capability.h): NET_BIND_SERVICE, NET_ADMIN, NET_RAW, IPC_LOCK, SYS_NICE. The same as in
/// `docker/kubernetes`.
const PERMITTED: [u32; 5] = [10, 12, 13, 14, 23];

/// `VFS_CAP_REVISION_2`, without `VFS_CAP_FLAGS_EFFECTIVE`: a program with that flag is refused where a container
/// lacks one of its capabilities.
const MAGIC: u32 = 0x0200_0000;

/// The value of the extended attribute `security.capability` (struct vfs_cap_data): little-endian words, each
/// set as its lower half and later its upper half.
pub(crate) fn attribute() -> Vec<u8> {
    let permitted = PERMITTED.iter().fold(0_u32, |set, number| set | 1 << number);
    let inheritable = 0_u32;
    let upper_halves = [0_u32, 0];
    let words = [MAGIC, permitted, inheritable].into_iter().chain(upper_halves);
    words.flat_map(u32::to_le_bytes).collect()
}

#[cfg(test)]
mod tests {
    use super::attribute;

    #[test]
    fn the_attribute_is_what_setcap_writes() {
        // setcap cap_net_bind_service,cap_net_raw,cap_net_admin,cap_sys_nice,cap_ipc_lock=p FILE; getfattr -e hex
        let written = "0000000200748000000000000000000000000000";
        let ours: String = attribute().iter().map(|it| format!("{it:02x}")).collect();
        assert_eq!(ours, written);
    }
}
