//! Real guests judge the card: fetches QEMU, kernel and IGT, builds guest images, boots them and reads their logs.
//!
//! [`boot::run`] and [`igt::run`] are the two scenarios; everything else serves them. The device under test is
//! started as a process of its own (`arctic serve`), so that a guest run proves the program that users start.

pub mod boot;
pub mod cache;
pub mod card;
pub mod clocks;
pub mod driver;
pub mod guest;
pub mod host_load;
pub mod igt;
pub mod image;
pub mod interrupt;
pub mod kernel_log;
pub mod life;
pub mod nested;
pub mod parts;
pub mod process;
pub mod progress;
pub mod qemu;
pub mod report;
pub mod terminal;
pub mod testcard;
pub mod tsc;
