//! What can go wrong before the guest runs.

use std::io;
use std::path::{Path, PathBuf};

use crate::layout;

/// Why there is no machine. Each says in one sentence what to do.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The host has no KVM for this process; tests skip themselves by this.
    #[error("/dev/kvm cannot be used ({0}): load the module kvm-intel or kvm-amd and let this user read and write it")]
    NoKvm(#[source] kvm_ioctls::Error),
    /// The host's KVM lacks something.
    #[error("this host's KVM cannot {0}, which the machine needs: try a newer kernel or processor")]
    Lacking(&'static str),
    /// KVM refused a step of building the machine.
    #[error("KVM refused to {what}: {error}")]
    Kvm {
        /// What was being done.
        what: &'static str,
        /// What KVM said.
        error: kvm_ioctls::Error,
    },
    /// The guest's RAM cannot be had.
    #[error("the host gave no memory for the guest's RAM ({0}): ask for less with --memory")]
    Ram(#[source] io::Error),
    /// RAM of a size that the machine cannot have.
    #[error("a guest cannot have {0} bytes of RAM: give a multiple of 4 KiB from 8 MiB to 128 GiB")]
    RamSize(u64),
    /// A number of CPUs that the machine cannot have.
    #[error("a guest cannot have {0} CPUs: give 1 to {max}", max = layout::MAX_CPUS)]
    Cpus(u8),
    /// A file could not be read.
    #[error("{path} cannot be read: {error}", path = path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What the host said.
        error: io::Error,
    },
    /// A file is not what it should be.
    #[error("{path} is not {expected}: {found}", path = path.display())]
    Format {
        /// The file.
        path: PathBuf,
        /// What it should be.
        expected: &'static str,
        /// What is wrong with it.
        found: String,
    },
    /// What was to be put into RAM does not fit.
    #[error("{what} does not fit into the {ram} MiB of RAM below 4 GiB: {advice}", ram = .ram >> 20,
        advice = if *.ram < layout::RAM_BELOW_4G { "give more with --memory" } else { "there is never more, make it smaller" })]
    NoRoom {
        /// What it was.
        what: &'static str,
        /// RAM of the guest below 4 GiB, in bytes.
        ram: u64,
    },
    /// The command line is too long.
    #[error("the command line has {0} bytes, and {max} is the most", max = layout::COMMAND_LINE_BYTES - 1)]
    CommandLine(usize),
    /// There is no such card.
    #[error(transparent)]
    Card(#[from] arctic_gpu::CardError),
    /// A thread, signal or event could not be had.
    #[error("the host refused {what}: {error}")]
    Host {
        /// What it refused.
        what: &'static str,
        /// What it said.
        error: io::Error,
    },
}

impl Error {
    /// What the host said of a file.
    pub(crate) fn file(path: &Path) -> impl Fn(io::Error) -> Self {
        move |error| Error::File { path: path.into(), error }
    }
}

/// Names the step that KVM refused.
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
