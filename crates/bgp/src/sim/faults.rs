//! The faults of a simulation, and how often they happen.

/// Each fault with its chance in a hundred for each second of the faulty time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Faults {
    /// Every connection is reset; bytes in flight are lost.
    pub reset: u64,
    /// One of the open connections is reset.
    pub reset_one: u64,
    /// One direction of one connection stands still for a while, and continues.
    pub stall: u64,
    /// One connection is gone without a FIN; only a timer detects it.
    pub vanish: u64,
    /// Nothing moves between the two for a while.
    pub partition: u64,
    /// Nothing reaches one of the two for a while; the other receives everything.
    pub partition_one_way: u64,
    /// One side refuses for a while: it resets dials, or accepts them and closes at once, with or
    /// without a NOTIFICATION.
    pub refuse: u64,
    /// One side restarts before one event in so many; never, if 0.
    pub restart_every: u64,
    /// The operator of one side clears the session.
    pub clear: u64,
    /// One side changes its routes.
    pub change: u64,
    /// The longest delay of a parcel, in milliseconds.
    pub delay_max_ms: u64,
    /// Into how many parcels a write is cut at most.
    pub pieces_max: u64,
    /// Each byte is a parcel.
    pub byte_by_byte: bool,
}

impl Faults {
    /// A good network.
    pub const NONE: Self = Self {
        reset: 0,
        reset_one: 0,
        stall: 0,
        vanish: 0,
        partition: 0,
        partition_one_way: 0,
        refuse: 0,
        restart_every: 0,
        clear: 0,
        change: 0,
        delay_max_ms: 1,
        pieces_max: 2,
        byte_by_byte: false,
    };
    /// A bad one.
    pub const MANY: Self = Self {
        reset: 6,
        reset_one: 15,
        stall: 12,
        vanish: 6,
        partition: 6,
        partition_one_way: 6,
        refuse: 6,
        restart_every: 400,
        clear: 0,
        change: 50,
        delay_max_ms: 1500,
        pieces_max: 4,
        byte_by_byte: false,
    };
    /// One that is mostly good, between two that restart all the time.
    pub const RESTARTS: Self = Self {
        reset: 1,
        reset_one: 3,
        stall: 6,
        vanish: 2,
        partition: 2,
        partition_one_way: 2,
        refuse: 2,
        restart_every: 60,
        clear: 3,
        delay_max_ms: 300,
        ..Self::MANY
    };
}

/// How a side refuses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Refusal {
    /// Nothing listens.
    Reset,
    /// Accepts, and closes at once.
    Close,
    /// Accepts, sends Cease/Connection Rejected, and closes.
    Notification,
}

impl Refusal {
    pub(super) const ALL: [Self; 3] = [Self::Reset, Self::Close, Self::Notification];
}
