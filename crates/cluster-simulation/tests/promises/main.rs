//! What the simulation itself has to show: that its rules notice mistakes, and that a crash at any
//! point changes nothing.

mod crash_points;
mod mistakes;
