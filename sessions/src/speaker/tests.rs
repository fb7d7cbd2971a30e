//! Stories of the speaker.
