//! Tests of the simulation itself: its rules notice mistakes, and a crash at any point changes
//! nothing.

mod crash_points;
mod mistakes;
