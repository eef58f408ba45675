// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Shared libraries that are loaded at run time, and tables of their functions.

use std::ffi::{CStr, CString, c_void};
use std::ptr::NonNull;

use anyhow::{Context, Result, bail};

/// A loaded library. It stays loaded until the process ends: drivers start threads that outlive their last handle.
pub struct Library {
    handle: NonNull<c_void>,
    name: &'static str,
}

impl Library {
    /// Loads the library `name`.
    pub fn load(name: &'static str) -> Result<Self> {
        let path = CString::new(name).context("the name of a library")?;
        // SAFETY: the path is a C string. The library's constructors run; it is the system's own, as for a linked program.
        let handle = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
        match NonNull::new(handle) {
            Some(handle) => Ok(Self { handle, name }),
            None => bail!("{name} cannot be loaded: {}", last_error()),
        }
    }

    /// Returns the address of the function `name`.
    pub fn function(&self, name: &CStr) -> Result<NonNull<c_void>> {
        // SAFETY: the handle is that of a loaded library, and the name is a C string.
        let address = unsafe { libc::dlsym(self.handle.as_ptr(), name.as_ptr()) };
        NonNull::new(address).with_context(|| format!("{} has no function {}", self.name, name.to_string_lossy()))
    }
}

/// The loader's last message.
fn last_error() -> String {
    // SAFETY: the message is valid until the next call of the loader in this thread, and copied here.
    let message = unsafe { libc::dlerror() };
    if message.is_null() {
        return "unknown reason".to_owned();
    }
    // SAFETY: not null, so it is the loader's C string.
    unsafe { CStr::from_ptr(message) }.to_string_lossy().into_owned()
}

/// Defines a table of a library's functions. The types must be those of the library's header.
macro_rules! functions {
    ($(#[$meta:meta])* $table:ident, $library:literal, { $($name:ident: fn($($argument:ty),*) -> $result:ty;)* }) => {
        $(#[$meta])*
        #[allow(non_snake_case, reason = "the names of the header")]
        pub struct $table {
            $(pub $name: unsafe extern "C" fn($($argument),*) -> $result,)*
        }

        impl $table {
            /// Loads the library.
            pub fn load() -> anyhow::Result<Self> {
                let library = $crate::library::Library::load($library)?;
                Ok(Self {
                    $($name: {
                        let name = std::ffi::CString::new(stringify!($name))?;
                        let address = library.function(&name)?;
                        // SAFETY: the header declares the function with this type, and pointers to functions have the
                        // size of other pointers.
                        unsafe {
                            std::mem::transmute::<
                                std::ptr::NonNull<std::ffi::c_void>,
                                unsafe extern "C" fn($($argument),*) -> $result,
                            >(address)
                        }
                    },)*
                })
            }
        }
    };
}
pub(crate) use functions;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_library_that_does_not_exist_is_named() {
        let error = Library::load("libdoes-not-exist.so.7").map(drop).unwrap_err().to_string();
        assert!(error.starts_with("libdoes-not-exist.so.7 cannot be loaded: libdoes-not-exist.so.7:"), "{error}");
    }

    #[test]
    fn functions_of_a_library_are_found_by_name() {
        let library = Library::load("libc.so.6").unwrap();
        assert!(library.function(c"getpid").is_ok());
        let error = library.function(c"no_such_function").unwrap_err().to_string();
        assert_eq!(error, "libc.so.6 has no function no_such_function");
    }
}
