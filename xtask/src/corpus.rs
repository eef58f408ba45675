// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The corpora of the fuzz targets: an archive per target in the repository, a directory per target for `cargo fuzz`.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use tar::{Archive, Builder, EntryType, Header};

const SUFFIX: &str = ".tar.gz";

fn folder() -> PathBuf {
    crate::root().join("fuzz/corpus")
}

/// Unpacks the archive of each target into `fuzz/corpus/TARGET/`. Other inputs in the directory are kept.
pub fn unpack(targets: &[String]) -> Result<()> {
    for target in chosen(targets, |name| name.strip_suffix(SUFFIX))? {
        let path = folder().join(format!("{target}{SUFFIX}"));
        let file = File::open(&path).with_context(|| format!("cannot open {}", path.display()))?;
        let to = folder().join(&target);
        fs::create_dir_all(&to)?;
        Archive::new(GzDecoder::new(file)).unpack(&to).with_context(|| format!("cannot unpack {}", path.display()))?;
        println!("{}: {} inputs", to.display(), inputs(&to)?.len());
    }
    Ok(())
}

/// Replaces the archive of each target with the inputs in `fuzz/corpus/TARGET/`.
pub fn pack(targets: &[String]) -> Result<()> {
    for target in chosen(targets, |name| folder().join(name).is_dir().then_some(name))? {
        let inputs = inputs(&folder().join(&target))?;
        ensure!(!inputs.is_empty(), "fuzz/corpus/{target} has no inputs: run cargo xtask corpus unpack {target}");
        let path = folder().join(format!("{target}{SUFFIX}"));
        fs::write(&path, archive(&inputs)?).with_context(|| format!("cannot write {}", path.display()))?;
        println!("{}: {} inputs", path.display(), inputs.len());
    }
    Ok(())
}

/// Returns the named targets. If none is named, returns those for which `target` maps a file name to a target name.
fn chosen(named: &[String], target: impl Fn(&str) -> Option<&str>) -> Result<Vec<String>> {
    if !named.is_empty() {
        return Ok(named.to_vec());
    }
    let names = fs::read_dir(folder())?.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()));
    let names = names.collect::<Result<Vec<String>>>()?;
    let mut found: Vec<String> = names.iter().filter_map(|name| target(name)).map(str::to_owned).collect();
    found.sort();
    ensure!(!found.is_empty(), "no targets in {}", folder().display());
    Ok(found)
}

/// Returns names and contents of the files in `folder`, sorted by name.
fn inputs(folder: &Path) -> Result<Vec<(String, Vec<u8>)>> {
    let mut inputs = Vec::new();
    for entry in fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))? {
        let entry = entry?;
        inputs.push((entry.file_name().to_string_lossy().into_owned(), fs::read(entry.path())?));
    }
    inputs.sort();
    Ok(inputs)
}

/// Creates an archive that depends only on names and contents, not on file times or owners.
fn archive(inputs: &[(String, Vec<u8>)]) -> Result<Vec<u8>> {
    let mut builder = Builder::new(GzEncoder::new(Vec::new(), Compression::best()));
    for (name, bytes) in inputs {
        let mut header = Header::new_gnu();
        header.set_entry_type(EntryType::Regular);
        header.set_mode(0o644);
        header.set_size(bytes.len().try_into()?);
        builder.append_data(&mut header, name, bytes.as_slice())?;
    }
    Ok(builder.into_inner()?.finish()?)
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    /// An archive contains each input once, and packing the same inputs again creates the same archive.
    #[test]
    fn archives_are_reproducible() {
        let inputs = vec![("a".to_owned(), vec![]), ("b".to_owned(), vec![1; 700])];
        let bytes = archive(&inputs).unwrap();
        assert_eq!(bytes, archive(&inputs).unwrap());
        let mut archive = Archive::new(GzDecoder::new(bytes.as_slice()));
        let found = archive.entries().unwrap().map(|entry| {
            let mut entry = entry.unwrap();
            let mut bytes = Vec::new();
            entry.read_to_end(&mut bytes).unwrap();
            (entry.path().unwrap().display().to_string(), bytes)
        });
        assert_eq!(found.collect::<Vec<_>>(), inputs);
    }
}
