// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Files received from a client: sections of the same file share one descriptor.

use std::collections::HashMap;
use std::fs::{File, Metadata};
use std::os::unix::fs::MetadataExt;
use std::sync::{Arc, Weak};

use rustix::fs::{OFlags, fcntl_getfl};

use super::quota::{Account, Charge};
use crate::vfio_user::Errno;

/// A descriptor kept for one or more sections.
pub struct Kept {
    /// The file.
    pub file: Arc<File>,
    _charge: Charge,
}

/// The identity of a file: device, inode, access mode.
type Identity = (u64, u64, u32);

/// The files of one client.
#[derive(Default)]
pub struct Files(HashMap<Identity, Weak<Kept>>);

impl Files {
    /// Keeps `file`, a regular file with this `metadata`; returns the existing descriptor if the same file is already
    /// kept with the same access mode.
    ///
    /// Errors: EINVAL if the access mode cannot be read, ENOSPC beyond the limit of descriptors.
    pub fn keep(&mut self, file: File, metadata: &Metadata, account: &Arc<Account>) -> Result<Arc<Kept>, Errno> {
        let mode = fcntl_getfl(&file).map_err(|_| Errno::EINVAL)? & OFlags::RWMODE;
        let identity = (metadata.dev(), metadata.ino(), mode.bits());
        if let Some(kept) = self.0.get(&identity).and_then(Weak::upgrade) {
            return Ok(kept);
        }
        let kept = Arc::new(Kept { file: Arc::new(file), _charge: account.descriptor()? });
        // Removing dropped entries bounds the map by the number of files in use.
        self.0.retain(|_, kept| kept.strong_count() != 0);
        self.0.insert(identity, Arc::downgrade(&kept));
        Ok(kept)
    }
}
