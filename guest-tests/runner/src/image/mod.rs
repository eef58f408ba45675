// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Builds the guest's initramfs: the files of one run, followed by a cached base archive.

pub mod compute;
mod cpio;
mod elf;
pub mod modules;
pub mod nested;
mod passthrough;

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::artifacts::{LIBRARIES, Parts};
use crate::cache::Cache;
use crate::driver::Driver;
use crate::process;
use crate::progress::Progress;
use cpio::Tree;
use elf::HostProgram;
use modules::Modules;

const INIT: &str = include_str!("init.sh");
const LOAD_DRIVER: &str = include_str!("load-driver.sh");
/// Directory of IGT's programs, in Debian's tree and in the guest.
pub const IGT_FOLDER: &str = "usr/libexec/igt-gpu-tools";
/// Name prefixes of the IGT programs in every image: those that can run on a card without a display.
const IGT_DEFAULT: &[&str] =
    &["xe_", "core_", "sriov_", "device_reset", "vgem_", "meta_test", "syncobj_", "drm_", "prime_", "dmabuf"];
const BASES_KEPT: usize = 3;
const BASE_FILE: &str = "base.cpio";

/// The files that one run adds to the base image.
#[derive(Debug, Default)]
pub struct Extra {
    /// The program to install as `arctic`, with the host's loader and libraries.
    pub program: Option<PathBuf>,
    /// A directory with files for `/usr/lib/firmware`, e.g. `i915/dg2_guc_70.bin`.
    pub firmware: Option<PathBuf>,
    /// The driver that the guest loads for the card.
    pub driver: Driver,
    /// PCI device ID of a card to which the driver does not bind by itself.
    pub forced: Option<u16>,
    /// Shell script that the guest's init runs; it may set STATUS.
    pub job: String,
    /// Names of additional IGT programs to install.
    pub tests: BTreeSet<String>,
    /// Whether the guest mounts a shared directory on /share.
    pub share: bool,
    /// Whether the guest passes VFs on to inner guests: the image then has QEMU and an inner guest's image, and no IGT.
    pub passthrough: bool,
    /// Whether the guest has a drive with the compute stack.
    pub compute: bool,
}

/// Writes the guest's initramfs to the empty file `target`.
pub fn build(parts: &Parts, extra: &Extra, cache: &Cache, target: &mut File, progress: &dyn Progress) -> Result<()> {
    let wanted = modules::of_guest(extra.passthrough);
    modules::check(&parts.kernel, extra.driver, wanted)?;
    if extra.compute {
        let needed = compute::MODULES;
        modules::check(&parts.kernel, extra.driver, Modules { needed, wanted: &[] })?;
        check_dynamic(extra.program.as_deref())?;
    }
    let mut own = Tree::default();
    own.file("job", 0o755, extra.job.as_str());
    own.file("etc/modprobe.d/card.conf", 0o644, extra.driver.modprobe_options(extra.forced));
    own.file("etc/card-driver", 0o644, format!("{}\n", extra.driver));
    if extra.share {
        own.folder("share");
    }
    if let Some(folder) = &extra.firmware {
        add_firmware(&mut own, folder)?;
    }
    if let Some(program) = &extra.program {
        add_program(&mut own, "arctic", program)?;
    }
    let tests: BTreeSet<String> = extra.tests.iter().filter(|name| !always_there(name)).cloned().collect();
    let scratch = tempfile::tempdir()?;
    if extra.passthrough {
        passthrough::add_inner(&mut own, parts, extra, scratch.path())?;
    }
    // Written before the base archive: an uncompressed archive can precede another archive, but an archive that follows
    // another depends on its padding.
    own.write_to(target)?;
    let base = match parts.kernel_is_own {
        // Modules of a user's kernel may change between runs, so they are not cached.
        true => {
            write_base(parts, &tests, extra.passthrough, scratch.path())?;
            scratch.path().join(BASE_FILE)
        }
        false => cached_base(parts, &tests, extra.passthrough, cache, progress)?.join(BASE_FILE),
    };
    let mut base = File::open(&base).with_context(|| format!("{} cannot be read", base.display()))?;
    io::copy(&mut base, target).context("the guest image cannot be written")?;
    Ok(())
}

/// Fails if `program` is static: then it cannot load drivers.
fn check_dynamic(program: Option<&Path>) -> Result<()> {
    match program.map(HostProgram::of).transpose()? {
        Some(HostProgram { loader: None, .. }) => {
            bail!("this arctic is linked statically, so it cannot load OpenCL: build it for x86_64-unknown-linux-gnu")
        }
        _ => Ok(()),
    }
}

fn cached_base(
    parts: &Parts,
    tests: &BTreeSet<String>,
    passthrough: bool,
    cache: &Cache,
    progress: &dyn Progress,
) -> Result<PathBuf> {
    let mut hasher = DefaultHasher::new();
    if passthrough {
        passthrough::FILES.hash(&mut hasher);
    }
    (&parts.versions, tests, parts.igt.is_some(), INIT, LOAD_DRIVER, compute::SCRIPT, IGT_DEFAULT, OPENED_BY_NAME)
        .hash(&mut hasher);
    modules::selection(passthrough).hash(&mut hasher);
    env!("CARGO_PKG_VERSION").hash(&mut hasher);
    let name = format!("images/{:016x}", hasher.finish());
    if let Some(base) = cache.entry(&name) {
        return Ok(base);
    }
    let lock = cache.lock(progress)?;
    if let Some(base) = cache.entry(&name) {
        return Ok(base);
    }
    progress.print_line("building the guest image");
    cache.forget_oldest("images", BASES_KEPT - 1);
    cache.install(&lock, &name, |folder| write_base(parts, tests, passthrough, folder))
}

/// Writes the base archive to `folder`.
fn write_base(parts: &Parts, tests: &BTreeSet<String>, passthrough: bool, folder: &Path) -> Result<()> {
    let mut tree = system(&parts.tools.busybox, INIT)?;
    tree.file("usr/bin/load-driver", 0o755, LOAD_DRIVER);
    tree.file("usr/bin/compute-root", 0o755, compute::SCRIPT);
    match &parts.igt {
        _ if passthrough => passthrough::add_qemu(&mut tree, &parts.qemu)?,
        Some(root) => add_igt(&mut tree, root, tests)?,
        None => {}
    }
    let staging = folder.join("modules");
    modules::add(&mut tree, modules::of_guest(passthrough), &parts.kernel, &parts.tools, &staging)?;
    let path = folder.join(BASE_FILE);
    tree.write_to(&mut File::create(&path).with_context(|| format!("{} cannot be created", path.display()))?)?;
    fs::remove_dir_all(&staging).with_context(|| format!("{} cannot be removed", staging.display()))
}

/// Creates a root file system with busybox and the given init.
fn system(busybox: &Path, init: &str) -> Result<Tree> {
    let mut tree = Tree::default();
    tree.file("init", 0o755, init);
    for mount in ["proc", "sys", "dev", "run", "tmp", "mnt", "root", "usr/bin", "usr/sbin", "usr/lib", "usr/lib64"] {
        tree.folder(mount);
    }
    for name in ["bin", "sbin", "lib", "lib64"] {
        tree.link(name, &format!("usr/{name}"));
    }
    tree.file("etc/passwd", 0o644, "root:x:0:0::/root:/bin/sh\nnobody:x:65534:65534::/:/bin/sh\n");
    tree.file("etc/group", 0o644, "root:x:0:\n");
    add_busybox(&mut tree, busybox)?;
    Ok(tree)
}

fn add_busybox(tree: &mut Tree, busybox: &Path) -> Result<()> {
    let host = HostProgram::of(busybox)?;
    if host.loader.is_some() {
        bail!("{} is not static, so the guest could not start it: install busybox-static", busybox.display());
    }
    tree.copy("usr/bin/busybox", 0o755, busybox);
    let applets = process::output(Command::new(busybox).arg("--list"), "busybox")?;
    for applet in applets.lines().filter(|applet| *applet != "busybox") {
        tree.link(&format!("usr/bin/{applet}"), "busybox");
    }
    // The kernel's request_module calls /sbin/modprobe.
    for applet in ["modprobe", "poweroff", "reboot"] {
        tree.link(&format!("usr/sbin/{applet}"), "../bin/busybox");
    }
    Ok(())
}

/// Adds the firmware files that the driver can request for this card; a complete firmware directory would fill the
/// guest's memory.
fn add_firmware(tree: &mut Tree, folder: &Path) -> Result<()> {
    let mut found = false;
    for vendor in ["i915", "xe"] {
        for entry in fs::read_dir(folder.join(vendor)).into_iter().flatten() {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            if name.starts_with("dg2_") {
                found |= name.starts_with("dg2_guc");
                tree.copy(&format!("usr/lib/firmware/{vendor}/{name}"), 0o644, &entry.path());
            }
        }
    }
    if !found {
        bail!("{} has no i915/dg2_guc_70.bin", folder.display());
    }
    Ok(())
}

/// Libraries without a DT_NEEDED entry that are opened at run time: the C library opens libgcc_s to cancel a thread.
const OPENED_BY_NAME: &[&str] = &["libgcc_s.so.1"];

/// Adds IGT's programs with their libraries and data, and a link to the dynamic loader at the path of the programs'
/// interpreter entries.
fn add_igt(tree: &mut Tree, root: &Path, tests: &BTreeSet<String>) -> Result<()> {
    let mut programs = Vec::new();
    for name in igt_programs(root)? {
        if tests.contains(&name) || always_there(&name) {
            tree.copy(&format!("{IGT_FOLDER}/{name}"), 0o755, &root.join(IGT_FOLDER).join(&name));
            programs.push(root.join(IGT_FOLDER).join(&name));
        }
    }
    programs.push(root.join("usr/bin/lsgpu"));
    tree.copy("usr/bin/lsgpu", 0o755, &root.join("usr/bin/lsgpu"));
    let libraries = root.join(LIBRARIES);
    let mut names = elf::closure(&programs, &libraries)?;
    let opened = OPENED_BY_NAME.iter().filter(|name| libraries.join(name).is_file());
    names.extend(opened.map(|name| name.to_string()));
    for name in names {
        tree.copy(&format!("{LIBRARIES}/{name}"), 0o755, &libraries.join(&name));
    }
    tree.link("usr/lib64/ld-linux-x86-64.so.2", "../lib/x86_64-linux-gnu/ld-linux-x86-64.so.2");
    for data in ["usr/share/igt-gpu-tools", "usr/share/misc"] {
        if root.join(data).is_dir() {
            tree.copy_folder(data, &root.join(data))?;
        }
    }
    Ok(())
}

fn always_there(test: &str) -> bool {
    IGT_DEFAULT.iter().any(|prefix| test.starts_with(prefix))
}

/// Returns the names of all test programs in an unpacked IGT.
pub fn igt_programs(root: &Path) -> Result<BTreeSet<String>> {
    let folder = root.join(IGT_FOLDER);
    let entries = fs::read_dir(&folder).with_context(|| format!("{} cannot be read", folder.display()))?;
    let files = entries.filter_map(|entry| entry.ok()).filter(|entry| entry.path().is_file());
    let names = files.map(|entry| entry.file_name().to_string_lossy().into_owned());
    Ok(names.filter(|name| !name.contains('.')).collect())
}

/// Installs a host program as `name`, which is started with this host's dynamic loader and libraries.
fn add_program(tree: &mut Tree, name: &str, program: &Path) -> Result<()> {
    add_host_program(tree, name, HostProgram::of(program)?, "");
    Ok(())
}

/// Installs `host` as `name`. `arguments` are shell words that precede the user's; a static program has none.
fn add_host_program(tree: &mut Tree, name: &str, host: HostProgram, arguments: &str) {
    let Some(loader) = &host.loader else {
        tree.file(&format!("usr/bin/{name}"), 0o755, host.loadable);
        return;
    };
    let home = format!("opt/{name}");
    tree.file(&format!("{home}/bin/{name}"), 0o755, host.loadable);
    tree.copy(&format!("{home}/lib/loader"), 0o755, loader);
    for (library, path) in &host.libraries {
        tree.copy(&format!("{home}/lib/{library}"), 0o755, path);
    }
    let start = format!(
        "#!/bin/sh\nexec /{home}/lib/loader --library-path /{home}/lib /{home}/bin/{name} {arguments} \"$@\"\n"
    );
    tree.file(&format!("usr/bin/{name}"), 0o755, start);
}
