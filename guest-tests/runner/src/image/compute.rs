// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The image with the compute stack: an ext4 file system that a guest mounts from a read-only drive. As an initramfs it would
//! take the guest's memory and seconds of its boot.

use std::fs::{self, File};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::ErrorKind;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::UNIX_EPOCH;

use anyhow::{Context, Result};
use arctic_guest_agent::compute::programs::{self, Program};

use crate::artifacts::{ComputeStack, LIBRARIES};
use crate::cache::Cache;
use crate::process;
use crate::progress::Progress;

/// Serial number of the drive, and label of the file system, by which guests find it.
pub const SERIAL: &str = "arctic-compute";
/// The programs that an image needs, and the kernel options that make them modules.
pub const MODULES: &[&str] = &["virtio_blk", "ext4"];
/// Script that mounts the image and prepares roots.
pub(super) const SCRIPT: &str = include_str!("compute-root.sh");
/// Number of images in the cache: each has 400 MB.
const KEPT: usize = 2;
const IMAGE: &str = "image.ext4";
/// Empty directories, on which file systems are mounted.
const MOUNT_POINTS: &[&str] = &["dev", "proc", "sys", "tmp", "root", "run", "mnt", "share", "opt", "var"];
/// Directories of libraries from which update-alternatives, which is not run here, chooses by links in the parent directory; the
/// preferred ones first.
const ALTERNATIVES: &[&str] = &["openblas-pthread", "blas", "lapack"];
/// Directories of the packages that a guest has no use for.
const UNUSED: &[&str] = &["usr/lib/systemd", "usr/lib/udev", "etc/cron.d"];

/// Returns the image of `stack` with `busybox`, from the cache or built.
pub fn obtain(stack: &ComputeStack, busybox: &Path, cache: &Cache, progress: &dyn Progress) -> Result<PathBuf> {
    let name = format!("compute/{:016x}", key(stack, busybox)?);
    if let Some(entry) = cache.entry(&name) {
        return Ok(entry.join(IMAGE));
    }
    let lock = cache.lock(progress)?;
    if let Some(entry) = cache.entry(&name) {
        return Ok(entry.join(IMAGE));
    }
    cache.forget_oldest("compute", KEPT - 1);
    let entry = cache.install(&lock, &name, |folder| build(stack, busybox, folder, progress))?;
    Ok(entry.join(IMAGE))
}

/// A number that differs for images with different contents: names, sizes and times of the packages' files, and what this
/// module adds.
fn key(stack: &ComputeStack, busybox: &Path) -> Result<u64> {
    let mut hasher = DefaultHasher::new();
    hash_tree(&stack.root, &mut hasher)?;
    stack.additions.iter().try_for_each(|additions| hash_tree(additions, &mut hasher))?;
    hash_file(busybox, &mut hasher)?;
    (programs::BUILT, MOUNT_POINTS, UNUSED, ALTERNATIVES, env!("CARGO_PKG_VERSION")).hash(&mut hasher);
    Ok(hasher.finish())
}

fn hash_tree(folder: &Path, hasher: &mut DefaultHasher) -> Result<()> {
    for (name, path) in entries(folder)? {
        name.hash(hasher);
        match fs::symlink_metadata(&path)?.is_dir() {
            true => hash_tree(&path, hasher)?,
            false => hash_file(&path, hasher)?,
        }
    }
    Ok(())
}

fn hash_file(path: &Path, hasher: &mut DefaultHasher) -> Result<()> {
    let metadata = fs::symlink_metadata(path).with_context(|| format!("{} cannot be read", path.display()))?;
    let time = metadata.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
    (metadata.len(), time.map(|time| time.as_secs())).hash(hasher);
    Ok(())
}

/// The entries of a directory with their names, sorted.
fn entries(folder: &Path) -> Result<Vec<(std::ffi::OsString, PathBuf)>> {
    let entries = fs::read_dir(folder).with_context(|| format!("{} cannot be read", folder.display()))?;
    let mut entries: Vec<_> =
        entries.map(|entry| entry.map(|entry| (entry.file_name(), entry.path()))).collect::<Result<_, _>>()?;
    entries.sort();
    Ok(entries)
}

/// Builds the image in `folder`.
fn build(stack: &ComputeStack, busybox: &Path, folder: &Path, progress: &dyn Progress) -> Result<()> {
    let tree = folder.join("tree");
    link_tree(&stack.root, &tree)?;
    if let Some(additions) = &stack.additions {
        link_tree(additions, &tree)?;
        for folder in ALTERNATIVES {
            link_into(&tree.join(LIBRARIES), folder)?;
        }
    }
    for unused in UNUSED {
        // A later version of a package may not have it.
        let _ = fs::remove_dir_all(tree.join(unused));
    }
    for name in MOUNT_POINTS {
        fs::create_dir_all(tree.join(name))?;
    }
    // Debian's base-files makes these links in its script, which is not run here.
    for link in ["bin", "lib", "lib64", "sbin"] {
        link_unless_there(&Path::new("usr").join(link), &tree.join(link))?;
    }
    link_unless_there(Path::new(&stack.ocloc_name()?), &tree.join("usr/bin/ocloc"))?;
    fs::write(tree.join("etc/passwd"), "root:x:0:0::/root:/bin/sh\n")?;
    fs::write(tree.join("etc/group"), "root:x:0:\n")?;
    add_busybox(&tree, busybox)?;
    add_kernels(stack, &tree, progress)?;
    progress.print_line("building the image with the compute stack");
    make_file_system(stack, &tree, &folder.join(IMAGE))?;
    fs::remove_dir_all(&tree).with_context(|| format!("{} cannot be removed", tree.display()))
}

/// Makes a tree with the same directories and symbolic links, and the same files, not copies of them if possible. What is in the
/// tree already is replaced, except for directories.
fn link_tree(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to).with_context(|| format!("{} cannot be created", to.display()))?;
    for (name, path) in entries(from)? {
        let target = to.join(name);
        let kind = fs::symlink_metadata(&path)?.file_type();
        if !kind.is_dir() && fs::symlink_metadata(&target).is_ok_and(|there| !there.is_dir()) {
            fs::remove_file(&target).with_context(|| format!("{} cannot be replaced", target.display()))?;
        }
        if kind.is_dir() {
            link_tree(&path, &target)?;
        } else if kind.is_symlink() {
            symlink(fs::read_link(&path)?, &target)?;
        } else if fs::hard_link(&path, &target).is_err() {
            fs::copy(&path, &target).with_context(|| format!("{} cannot be copied", path.display()))?;
        }
    }
    Ok(())
}

/// Makes a link in `libraries` to each library in its directory `folder`.
fn link_into(libraries: &Path, folder: &str) -> Result<()> {
    let from = libraries.join(folder);
    if !from.is_dir() {
        return Ok(());
    }
    entries(&from)?
        .into_iter()
        .try_for_each(|(name, _)| link_unless_there(&Path::new(folder).join(&name), &libraries.join(&name)))
}

fn link_unless_there(target: &Path, link: &Path) -> Result<()> {
    match symlink(target, link) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
        made => made.with_context(|| format!("{} cannot be created", link.display())),
    }
}

/// Adds busybox with a link for each of its programs that the packages do not have.
fn add_busybox(tree: &Path, busybox: &Path) -> Result<()> {
    let bin = tree.join("usr/bin");
    fs::copy(busybox, bin.join("busybox")).with_context(|| format!("{} cannot be copied", busybox.display()))?;
    let applets = process::output(Command::new(busybox).arg("--list"), "busybox")?;
    for applet in applets.lines().filter(|applet| *applet != "busybox") {
        if !tree.join("usr/sbin").join(applet).exists() {
            link_unless_there(Path::new("busybox"), &bin.join(applet))?;
        }
    }
    Ok(())
}

/// Builds the kernels with the stack's offline compiler.
fn add_kernels(stack: &ComputeStack, tree: &Path, progress: &dyn Progress) -> Result<()> {
    let out = tree.join(programs::FOLDER.trim_start_matches('/'));
    fs::create_dir_all(&out)?;
    let sources = tempfile::tempdir()?;
    for (number, program) in programs::BUILT.iter().enumerate() {
        let percent = u8::try_from(number * 100 / programs::BUILT.len()).unwrap_or(100);
        progress.percent("building kernels with ocloc", percent);
        build_kernel(stack, program, sources.path())?;
        let built = sources.path().join(program.binary());
        fs::copy(&built, out.join(program.binary()))
            .with_context(|| format!("ocloc has not built {}", program.binary()))?;
    }
    progress.percent("building kernels with ocloc", 100);
    Ok(())
}

fn build_kernel(stack: &ComputeStack, program: &Program, folder: &Path) -> Result<()> {
    let source = format!("{}.cl", program.name);
    fs::write(folder.join(&source), program.source)?;
    stack.run_ocloc(&program.ocloc_arguments(&source, "."), folder).with_context(|| source.clone())
}

/// Writes an ext4 file system with the contents of `tree` to `image`: without what only writing needs.
fn make_file_system(stack: &ComputeStack, tree: &Path, image: &Path) -> Result<()> {
    let (mut bytes, mut count) = (0, 0);
    measure(tree, &mut bytes, &mut count)?;
    // Blocks of files, then tables of inodes and blocks.
    let kib = (bytes >> 10) * 102 / 100 + count * 4 + 8192;
    let file = File::create(image).with_context(|| format!("{} cannot be created", image.display()))?;
    file.set_len(kib << 10)?;
    let mut command = stack.mke2fs();
    command.args(["-q", "-F", "-t", "ext4", "-b", "4096", "-m", "0", "-L", SERIAL, "-E", "root_owner=0:0"]);
    command.args(["-O", "^has_journal,^resize_inode,^metadata_csum", "-N", &(count + 64).to_string(), "-d"]);
    process::run_lines(command.arg(tree).arg(image), "mke2fs", |_| ()).context("the image cannot be built")
}

/// Adds the sizes of the files below `folder`, in whole blocks, and the number of its nodes.
fn measure(folder: &Path, bytes: &mut u64, count: &mut u64) -> Result<()> {
    for (_, path) in entries(folder)? {
        let metadata = fs::symlink_metadata(&path)?;
        *count += 1;
        if metadata.is_dir() {
            *bytes += 4096;
            measure(&path, bytes, count)?;
        } else {
            *bytes += metadata.size().next_multiple_of(4096);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::image::modules::has_option;
    use std::collections::BTreeMap;

    fn stack(root: &Path) -> ComputeStack {
        fs::create_dir_all(root.join("usr/lib")).unwrap();
        fs::write(root.join("usr/lib/a.so"), "abc").unwrap();
        symlink("a.so", root.join("usr/lib/a.so.1")).unwrap();
        ComputeStack { root: root.to_owned(), additions: None, versions: BTreeMap::new(), pinned: true }
    }

    #[test]
    fn the_key_follows_the_files_of_the_packages_and_busybox() {
        let folder = tempfile::tempdir().unwrap();
        let (stack, busybox) = (stack(folder.path()), folder.path().join("busybox"));
        fs::write(&busybox, "1").unwrap();
        let first = key(&stack, &busybox).unwrap();
        assert_eq!(key(&stack, &busybox).unwrap(), first);
        fs::write(folder.path().join("usr/lib/a.so"), "abcd").unwrap();
        let second = key(&stack, &busybox).unwrap();
        assert_ne!(second, first);
        fs::write(&busybox, "12").unwrap();
        assert_ne!(key(&stack, &busybox).unwrap(), second);
    }

    #[test]
    fn the_tree_of_the_image_has_the_files_and_links_of_the_packages() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("root");
        stack(&root);
        let tree = folder.path().join("tree");
        link_tree(&root, &tree).unwrap();
        assert_eq!(fs::read_to_string(tree.join("usr/lib/a.so.1")).unwrap(), "abc");
        assert_eq!(fs::read_link(tree.join("usr/lib/a.so.1")).unwrap(), Path::new("a.so"));
        let (mut bytes, mut count) = (0, 0);
        measure(&tree, &mut bytes, &mut count).unwrap();
        assert_eq!((bytes, count), (4 * 4096, 4));
        link_unless_there(Path::new("x"), &tree.join("usr/lib/a.so")).unwrap();
        assert_eq!(fs::read_to_string(tree.join("usr/lib/a.so")).unwrap(), "abc");
    }

    #[test]
    fn the_script_is_a_shell_script_and_the_modules_have_options() {
        assert!(Command::new("sh").args(["-n", "-c", SCRIPT]).status().unwrap().success());
        assert!(SCRIPT.contains(SERIAL) && MODULES.iter().all(|module| SCRIPT.contains(module) && has_option(module)));
    }
}
