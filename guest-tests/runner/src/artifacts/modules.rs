// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Files of kernel modules: those of a kernel, compressed or not, and those that a user has built in place of them.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use goblin::elf::Elf;

use super::Kernel;

/// A module of a kernel.
pub struct ModuleFile {
    /// Its path in the modules directory.
    pub place: PathBuf,
    /// The file that is installed there.
    pub source: PathBuf,
}

/// Maps the names (with `_`) of a kernel's modules to their files, of which the user's own take precedence.
pub fn index(kernel: &Kernel) -> Result<BTreeMap<String, ModuleFile>> {
    let mut index = index_of_folder(&kernel.modules)?;
    for (name, source) in &kernel.own_modules {
        // depmod prefers neither, so there must be one file.
        let place = index.remove(name).map_or_else(|| format!("updates/{name}.ko").into(), |module| module.place);
        index.insert(name.clone(), ModuleFile { place: uncompressed_name(&place), source: source.clone() });
    }
    Ok(index)
}

fn index_of_folder(modules: &Path) -> Result<BTreeMap<String, ModuleFile>> {
    let mut index = BTreeMap::new();
    let mut todo = vec![modules.to_owned()];
    while let Some(folder) = todo.pop() {
        let entries = fs::read_dir(&folder).with_context(|| format!("{} cannot be read", folder.display()))?;
        for entry in entries {
            let entry = entry?;
            // Symbolic links are not followed: `build` and `source` point to a kernel tree.
            if entry.file_type()?.is_dir() {
                todo.push(entry.path());
            } else if let Some(name) = module_name(&entry.file_name().to_string_lossy()) {
                let source = entry.path();
                index.insert(name, ModuleFile { place: source.strip_prefix(modules)?.to_owned(), source });
            }
        }
    }
    Ok(index)
}

fn module_name(file: &str) -> Option<String> {
    let (name, rest) = file.split_once(".ko")?;
    (rest.is_empty() || rest.starts_with('.')).then(|| name.replace('-', "_"))
}

/// The name of a module's file without compression.
pub fn uncompressed_name(path: &Path) -> PathBuf {
    match path.extension().is_some_and(|extension| extension == "ko") {
        true => path.to_owned(),
        false => path.with_extension(""),
    }
}

/// The names of the modules that are built into the kernel with this modules directory.
pub fn built_in(modules: &Path) -> Result<BTreeSet<String>> {
    let path = modules.join("modules.builtin");
    let text = fs::read_to_string(&path).with_context(|| format!("{} cannot be read", path.display()))?;
    Ok(text.lines().filter_map(|line| module_name(line.rsplit('/').next()?)).collect())
}

/// Reads a module file and decompresses it.
pub fn unpacked(path: &Path) -> Result<Vec<u8>> {
    let bytes = fs::read(path).with_context(|| format!("{} cannot be read", path.display()))?;
    let mut plain = Vec::new();
    let extension = path.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
    let unpacked = match extension {
        "ko" => return Ok(bytes),
        "gz" => {
            flate2::read::MultiGzDecoder::new(bytes.as_slice()).read_to_end(&mut plain).map_err(anyhow::Error::from)
        }
        "xz" => lzma_rust2::XzReader::new(bytes.as_slice(), true).read_to_end(&mut plain).map_err(anyhow::Error::from),
        "zst" => ruzstd::decoding::StreamingDecoder::new(bytes.as_slice())
            .map_err(anyhow::Error::from)
            .and_then(|mut reader| Ok(reader.read_to_end(&mut plain)?)),
        _ => bail!("{} has an unknown compression format (supported: gz, xz, zst)", path.display()),
    };
    unpacked.with_context(|| format!("{} is corrupt", path.display()))?;
    Ok(plain)
}

/// Names the modules in `files`, and checks that they can be loaded into `kernel`: a module has the `vermagic` of the kernel's
/// others, and is not built into the kernel.
pub fn of_files(kernel: &Kernel, files: &[PathBuf]) -> Result<BTreeMap<String, PathBuf>> {
    let mut named = BTreeMap::new();
    if files.is_empty() {
        return Ok(named);
    }
    let (others, built_in) = (index_of_folder(&kernel.modules)?, built_in(&kernel.modules)?);
    let release = &kernel.release;
    for file in files {
        let shown = file.display();
        let bytes = unpacked(file)?;
        let field = |key| modinfo(&bytes, key).with_context(|| format!("{shown} is not a kernel module"));
        let (name, vermagic) = (only(field("name")?), only(field("vermagic")?));
        let (Some(name), Some(vermagic)) = (name, vermagic) else {
            bail!("{shown} is not a complete kernel module: pass the .ko that the build links last");
        };
        if built_in.contains(&name) {
            bail!("{name} is built into the kernel {release}, so the module {shown} cannot replace it");
        }
        if let Some(other) = others.get(&name).or_else(|| others.values().next()) {
            let expected = only(modinfo(&unpacked(&other.source)?, "vermagic")?).unwrap_or_default();
            if vermagic != expected {
                bail!(
                    "the module {shown} is built for \"{}\", the guest's kernel is \"{}\": build it with the headers of {release}",
                    vermagic.trim(),
                    expected.trim()
                );
            }
        }
        let path = fs::canonicalize(file).with_context(|| format!("{shown} cannot be read"))?;
        if let Some(first) = named.insert(name.clone(), path) {
            bail!("{shown} and {} are both the module {name}: pass one of them", first.display());
        }
    }
    Ok(named)
}

fn only(values: Vec<String>) -> Option<String> {
    values.into_iter().next()
}

/// Returns the modules that a module depends on, from `depends=` in its `.modinfo`. Soft dependencies are not included.
pub fn dependencies(bytes: &[u8]) -> Result<Vec<String>> {
    let lists = modinfo(bytes, "depends")?;
    let names = lists.iter().flat_map(|list| list.split(','));
    Ok(names.filter(|name| !name.is_empty()).map(|name| name.replace('-', "_")).collect())
}

/// The values of `key` in a module's `.modinfo`.
fn modinfo(bytes: &[u8], key: &str) -> Result<Vec<String>> {
    let elf = Elf::parse(bytes)?;
    let section = elf.section_headers.iter().find(|header| elf.shdr_strtab.get_at(header.sh_name) == Some(".modinfo"));
    let range = section.and_then(|header| header.file_range()).context("no .modinfo")?;
    let info = bytes.get(range).context(".modinfo lies outside the file")?;
    let fields = info.split(|byte| *byte == 0).filter_map(|field| std::str::from_utf8(field).ok());
    let values = fields.filter_map(|field| field.strip_prefix(key)?.strip_prefix('='));
    Ok(values.map(str::to_owned).collect())
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    /// An ELF file with the section `.modinfo` and these fields.
    fn module(fields: &[&str]) -> Vec<u8> {
        let info: Vec<u8> = fields.iter().flat_map(|field| field.bytes().chain([0])).collect();
        let names = b"\0.modinfo\0.shstrtab\0";
        let sections_at = 64 + info.len() + names.len();
        let mut file = b"\x7fELF\x02\x01\x01".to_vec();
        file.resize(16, 0);
        // ET_REL, x86-64, version; no entry, no program headers.
        file.extend([1_u16.to_le_bytes(), 62_u16.to_le_bytes()].concat());
        file.extend(1_u32.to_le_bytes());
        file.extend([0, 0, sections_at as u64].map(u64::to_le_bytes).concat());
        file.extend(0_u32.to_le_bytes());
        file.extend([64, 0, 0, 64, 3, 2].map(u16::to_le_bytes).concat());
        file.extend([&info[..], names].concat());
        let mut section = |name: u32, kind: u32, offset: usize, size: usize| {
            file.extend([name.to_le_bytes(), kind.to_le_bytes()].concat());
            file.extend([0, 0, offset as u64, size as u64].map(u64::to_le_bytes).concat());
            file.extend([0_u64; 3].map(u64::to_le_bytes).concat());
        };
        section(0, 0, 0, 0);
        section(1, 1, 64, info.len());
        section(10, 3, 64 + info.len(), names.len());
        file
    }

    const VERMAGIC: &str = "vermagic=7.2.0-dev SMP preempt mod_unload modversions ";

    /// A kernel with xe and drm as modules, and virtio_pci built in.
    fn kernel(folder: &Path) -> Kernel {
        let modules = folder.join("lib/modules/7.2.0-dev");
        fs::create_dir_all(modules.join("kernel/gpu")).unwrap();
        fs::write(modules.join("modules.builtin"), "kernel/virtio-pci.ko\n").unwrap();
        for name in ["xe", "drm"] {
            let bytes = module(&[&format!("name={name}"), VERMAGIC]);
            fs::write(modules.join(format!("kernel/gpu/{name}.ko")), bytes).unwrap();
        }
        let own_modules = BTreeMap::new();
        Kernel { image: folder.join("bzImage"), modules, release: "7.2.0-dev".into(), hz: None, own_modules }
    }

    /// The user's file is in the place of the kernel's module of its name, whatever the file's name is; another one is added.
    #[test]
    fn a_module_of_the_user_replaces_that_of_its_name() {
        let folder = tempfile::tempdir().unwrap();
        let mut kernel = kernel(folder.path());
        let files = [("new-xe.ko", "name=xe"), ("extra.ko", "name=my_debug")].map(|(file, name)| {
            let path = folder.path().join(file);
            fs::write(&path, module(&[VERMAGIC, name, "depends=drm,ttm-x"])).unwrap();
            path
        });
        kernel.own_modules = of_files(&kernel, &files).unwrap();
        let index = index(&kernel).unwrap();
        let shown = |name: &str| (index[name].place.to_str().unwrap().to_owned(), index[name].source.clone());
        assert_eq!(shown("xe"), ("kernel/gpu/xe.ko".into(), files[0].clone()));
        assert_eq!(shown("my_debug"), ("updates/my_debug.ko".into(), files[1].clone()));
        assert_eq!(index["drm"].source, kernel.modules.join("kernel/gpu/drm.ko"));
        assert_eq!(dependencies(&unpacked(&files[0]).unwrap()).unwrap(), ["drm", "ttm_x"]);
    }

    #[test]
    fn modules_that_the_kernel_would_refuse_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let kernel = kernel(folder.path());
        let refused = |fields: &[&str]| {
            let path = folder.path().join("own.ko");
            fs::write(&path, module(fields)).unwrap();
            let error = of_files(&kernel, std::slice::from_ref(&path)).unwrap_err().to_string();
            error.replace(&path.display().to_string(), "own.ko")
        };
        assert_eq!(
            refused(&["name=xe", "vermagic=7.2.1 SMP preempt mod_unload "]),
            "the module own.ko is built for \"7.2.1 SMP preempt mod_unload\", the guest's kernel is \"7.2.0-dev SMP preempt \
             mod_unload modversions\": build it with the headers of 7.2.0-dev"
        );
        assert_eq!(
            refused(&["name=virtio_pci", VERMAGIC]),
            "virtio_pci is built into the kernel 7.2.0-dev, so the module own.ko cannot replace it"
        );
        assert!(refused(&[VERMAGIC]).contains("is not a complete kernel module"));
        let path = folder.path().join("text.ko");
        fs::write(&path, "no ELF").unwrap();
        let error = of_files(&kernel, &[path]).unwrap_err().to_string();
        assert!(error.ends_with("text.ko is not a kernel module"), "{error}");
        let xe = kernel.modules.join("kernel/gpu/xe.ko");
        let error = of_files(&kernel, &[xe.clone(), xe]).unwrap_err().to_string();
        assert!(error.contains("are both the module xe"), "{error}");
    }

    #[test]
    fn file_names_give_module_names() {
        assert_eq!(module_name("mei-gsc.ko.xz").unwrap(), "mei_gsc");
        assert_eq!(module_name("xe.ko").unwrap(), "xe");
        assert_eq!(module_name("modules.kot"), None);
        assert_eq!(uncompressed_name(Path::new("kernel/a/xe.ko.xz")), Path::new("kernel/a/xe.ko"));
        assert_eq!(uncompressed_name(Path::new("kernel/a/xe.ko")), Path::new("kernel/a/xe.ko"));
    }

    #[test]
    fn built_in_modules_are_known() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("modules.builtin"), "kernel/drivers/virtio/virtio-pci.ko\n").unwrap();
        assert!(built_in(folder.path()).unwrap().contains("virtio_pci"));
    }

    #[test]
    fn unknown_compression_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.ko.lz4");
        fs::write(&path, "x").unwrap();
        assert!(unpacked(&path).unwrap_err().to_string().contains("unknown compression"));
    }

    /// Every format of the kernel's build (CONFIG_MODULE_COMPRESS_*) decompresses to the same bytes; corruption is
    /// reported.
    #[test]
    fn modules_of_every_compression_are_unpacked() {
        let plain: Vec<u8> = (0..100_000_u32).flat_map(|number| (number / 7).to_le_bytes()).collect();
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        gzip.write_all(&plain).unwrap();
        let mut xz = lzma_rust2::XzWriter::new(Vec::new(), lzma_rust2::XzOptions::with_preset(1)).unwrap();
        xz.write_all(&plain).unwrap();
        let zstd = ruzstd::encoding::compress_to_vec(plain.as_slice(), ruzstd::encoding::CompressionLevel::Fastest);
        let folder = tempfile::tempdir().unwrap();
        for (name, bytes) in [
            ("x.ko", plain.clone()),
            ("x.ko.gz", gzip.finish().unwrap()),
            ("x.ko.xz", xz.finish().unwrap()),
            ("x.ko.zst", zstd),
        ] {
            let path = folder.path().join(name);
            fs::write(&path, &bytes).unwrap();
            assert!(unpacked(&path).unwrap() == plain, "{name}");
            assert_eq!(uncompressed_name(Path::new(name)), Path::new("x.ko"));
            if name != "x.ko" {
                fs::write(&path, &bytes[..bytes.len() / 2]).unwrap();
                assert!(unpacked(&path).unwrap_err().to_string().ends_with("is corrupt"), "{name}");
            }
        }
    }
}
