//! FRR as the one who speaks BGP.
