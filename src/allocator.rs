//! The allocator, and the one call to it.
#![expect(unsafe_code, reason = "the allocator is a C library")]

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Returns what the calling thread has freed to the kernel.
pub(crate) fn give_back() {
    // SAFETY: the function may be called by any thread at any time, and touches only memory that is free.
    unsafe { libmimalloc_sys::mi_collect(true) }
}
