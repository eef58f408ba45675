// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Errors of creating a VM.

use std::io;
use std::path::{Path, PathBuf};

use crate::layout;

/// Error of creating a VM. Each message states a remedy.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// KVM is absent or not accessible to this process; tests are skipped on this error.
    #[error("/dev/kvm cannot be used ({0}): load the module kvm-intel or kvm-amd and give this user access")]
    NoKvm(#[source] kvm_ioctls::Error),
    /// The host's KVM lacks a required feature.
    #[error("this host's KVM cannot {0}, which is required: use a newer kernel or CPU")]
    Lacking(&'static str),
    /// A KVM call failed while the VM was created.
    #[error("KVM refused to {what}: {error}")]
    Kvm {
        /// The failed operation.
        what: &'static str,
        /// KVM's error.
        error: kvm_ioctls::Error,
    },
    /// The guest's RAM could not be allocated.
    #[error("the host cannot provide memory for the guest's RAM ({0}): reduce --memory")]
    Ram(#[source] io::Error),
    /// An unsupported size of RAM.
    #[error("a guest cannot have {0} bytes of RAM: give a multiple of 4 KiB from 8 MiB to 128 GiB")]
    RamSize(u64),
    /// An unsupported number of CPUs.
    #[error("a guest cannot have {0} CPUs: give 1 to {max}", max = layout::MAX_CPUS)]
    Cpus(u8),
    /// A file could not be read.
    #[error("{path} cannot be read: {error}", path = path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The host's error.
        error: io::Error,
    },
    /// A file has the wrong format.
    #[error("{path} is not {expected}: {found}", path = path.display())]
    Format {
        /// The file.
        path: PathBuf,
        /// The expected format.
        expected: &'static str,
        /// The difference found.
        found: String,
    },
    /// Data does not fit into the guest's RAM.
    #[error("{what} does not fit into the {ram} MiB of RAM below 4 GiB: {advice}", ram = .ram >> 20,
        advice = if *.ram < layout::RAM_BELOW_4G { "increase --memory" } else { "reduce it, RAM is at maximum" })]
    NoRoom {
        /// The data.
        what: &'static str,
        /// RAM of the guest below 4 GiB, in bytes.
        ram: u64,
    },
    /// The command line is too long.
    #[error("the command line has {0} bytes, the maximum is {max}", max = layout::COMMAND_LINE_BYTES - 1)]
    CommandLine(usize),
    /// The card could not be created.
    #[error(transparent)]
    Card(#[from] arctic_gpu::CardError),
    /// The host could not provide a thread, signal handler or event.
    #[error("the host could not provide {what}: {error}")]
    Host {
        /// The missing resource.
        what: &'static str,
        /// The host's error.
        error: io::Error,
    },
}

impl Error {
    /// Maps an I/O error of a file to [`Error::File`].
    pub(crate) fn file(path: &Path) -> impl Fn(io::Error) -> Self {
        move |error| Error::File { path: path.into(), error }
    }
}

/// Adds the failed operation to an error.
pub(crate) trait Step<T> {
    fn step(self, what: &'static str) -> Result<T, Error>;
}

impl<T> Step<T> for Result<T, kvm_ioctls::Error> {
    fn step(self, what: &'static str) -> Result<T, Error> {
        self.map_err(|error| Error::Kvm { what, error })
    }
}

impl<T> Step<T> for io::Result<T> {
    fn step(self, what: &'static str) -> Result<T, Error> {
        self.map_err(|error| Error::Host { what, error })
    }
}
