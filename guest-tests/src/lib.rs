//! Real guests judge the card: fetches QEMU, kernel and IGT, builds guest images, boots them and reads their logs.

pub mod guest;
pub mod testcard;
