//! Linux by its 64-bit boot protocol.

use vm_memory::{Bytes, GuestAddress};

use crate::error::Error;
use crate::layout;
use crate::memory::Ram;

/// Puts the command line where [`layout::COMMAND_LINE`] says, with a NUL behind it.
pub(crate) fn write_command_line(ram: &Ram, command_line: &str) -> Result<(), Error> {
    if command_line.len() >= layout::COMMAND_LINE_BYTES {
        return Err(Error::CommandLine(command_line.len()));
    }
    let bytes = [command_line.as_bytes(), b"\0"].concat();
    let put = ram.write_slice(&bytes, GuestAddress(layout::COMMAND_LINE));
    put.map_err(|_| Error::NoRoom { what: "the command line", ram: layout::LOW_RAM_END })
}
