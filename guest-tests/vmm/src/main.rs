//! `arctic-vmm`: boots a guest on KVM with the card in its own process.

fn main() {}
