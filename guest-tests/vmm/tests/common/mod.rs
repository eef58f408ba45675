//! What tests with the bare-metal guest have in common: its file, and the reason where this host cannot run it.

use std::path::Path;

use arctic_vmm::{Error, bare_guest};

/// The guest's file. Without a compiler there is no test: that is a failure, and it says what to install.
pub fn guest() -> &'static Path {
    bare_guest::build().unwrap_or_else(|error| panic!("{error}"))
}

/// Whether this host cannot run the machine, which the test then says by name and goes without. With
/// `ARCTIC_KVM=required` in the environment it fails instead.
pub fn skipped<T>(name: &str, machine: &Result<T, Error>) -> bool {
    let Err(error @ (Error::NoKvm(_) | Error::Lacking(_))) = machine else {
        return false;
    };
    assert_ne!(std::env::var("ARCTIC_KVM").as_deref(), Ok("required"), "{name}: {error}");
    println!("skipped: {name}: {error}");
    true
}
