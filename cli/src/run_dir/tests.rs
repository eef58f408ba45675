// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::os::unix::net::UnixListener;

use vmm_sys_util::tempdir::TempDir;

use super::*;

fn open(dir: &Path) -> Result<RunDir, RunDirError> {
    RunDir::open(dir, None, &["pf.sock".into()])
}

fn refused(dir: &Path) -> String {
    let text = open(dir).err().unwrap().to_string();
    assert!(!text.contains('\n') && text.contains(dir.to_str().unwrap()), "{text}");
    text
}

fn mode(path: &Path) -> u32 {
    fs::symlink_metadata(path).unwrap().mode() & 0o7777
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

#[test]
fn new_run_dir_has_mode_0700() {
    let temp = TempDir::new().unwrap();
    let dir = temp.as_path().join("above/card");
    let made = open(&dir).unwrap();
    assert_eq!((mode(&dir), mode(&dir.join("operator")), mode(&dir.join("lock"))), (0o700, 0o700, 0o600));
    assert_eq!(made.path(), dir.canonicalize().unwrap());
    drop(made);
    assert!(dir.join("lock").exists());
    open(&dir).unwrap();
}

/// New parents have their mode whatever the umask is; existing ones keep theirs.
#[test]
fn new_parents_have_mode_0755() {
    let temp = TempDir::new().unwrap();
    let parent = temp.as_path().join("one/two");
    let usual = rustix::process::umask(Mode::RWXG | Mode::RWXO);
    create_parents(&parent).unwrap();
    set_mode(&parent, 0o700);
    create_parents(&parent.join("three")).unwrap();
    rustix::process::umask(usual);
    let modes = ["one", "one/two", "one/two/three"].map(|name| mode(&temp.as_path().join(name)));
    assert_eq!(modes, [0o755, 0o700, 0o755], "existing directories keep their mode");
}

#[test]
fn run_dir_in_parent_without_read_permission_is_opened() {
    let temp = TempDir::new().unwrap();
    let parent = temp.as_path().join("parent");
    fs::create_dir(&parent).unwrap();
    set_mode(&parent, 0o300);
    drop(open(&parent.join("card")).unwrap());
    set_mode(&parent, 0o700);
}

#[test]
fn run_dir_that_any_user_can_rename_is_refused() {
    let temp = TempDir::new().unwrap();
    let parent = temp.as_path().join("parent");
    fs::create_dir(&parent).unwrap();
    let dir = parent.join("card");
    for (bits, accepted) in [(0o777, false), (0o1777, true), (0o755, true)] {
        set_mode(&parent, bits);
        assert_eq!(open(&dir).is_ok(), accepted, "{bits:o}");
    }
    set_mode(&parent, 0o777);
    assert!(open(&dir).err().unwrap().to_string().contains("run chmod +t"));
}

/// A new directory that cannot get the group is removed.
#[test]
fn a_new_run_dir_is_removed_if_its_group_cannot_be_changed() {
    if geteuid().is_root() {
        // Root may give any group to a file.
        return;
    }
    let temp = TempDir::new().unwrap();
    let dir = temp.as_path().join("card");
    let error = RunDir::open(&dir, Some(0), &[]).err().unwrap().to_string();
    assert!(error.contains("cannot change the group"), "{error}");
    assert!(!dir.exists());
}

#[test]
fn run_dir_with_group_has_mode_0710() {
    let temp = TempDir::new().unwrap();
    let group = fs::metadata(temp.as_path()).unwrap().gid();
    let dir = temp.as_path().join("card");
    let open = |dir: &Path| RunDir::open(dir, Some(group), &[]);
    drop(open(&dir).unwrap());
    assert_eq!((mode(&dir), mode(&dir.join("operator")), fs::metadata(&dir).unwrap().gid()), (0o710, 0o700, group));
    drop(open(&dir).unwrap());
    for (bits, accepted) in [(0o700, false), (0o701, false), (0o755, true), (0o770, false)] {
        set_mode(&dir, bits);
        assert_eq!(open(&dir).is_ok(), accepted, "{bits:o}");
    }
}

#[test]
fn a_folder_that_others_may_write_to_is_refused() {
    let temp = TempDir::new().unwrap();
    for (bits, accepted) in [(0o700, true), (0o755, true), (0o775, false), (0o757, false), (0o1777, false)] {
        set_mode(temp.as_path(), bits);
        assert_eq!(open(temp.as_path()).is_ok(), accepted, "{bits:o}");
    }
    assert!(refused(temp.as_path()).contains("run chmod go-w"));
    set_mode(temp.as_path(), 0o700);
    set_mode(&temp.as_path().join("operator"), 0o750);
    assert!(refused(temp.as_path()).contains("run chmod 700"));
}

#[test]
fn a_folder_of_another_user_is_refused() {
    // As root, the test changes the owner; otherwise it uses a directory owned by root.
    let temp = TempDir::new().unwrap();
    if geteuid().is_root() {
        std::os::unix::fs::chown(temp.as_path(), Some(65534), Some(65534)).unwrap();
        assert!(refused(temp.as_path()).contains("belongs to user 65534"));
    } else {
        assert!(refused(Path::new("/usr")).contains("belongs to user 0"));
    }
}

#[test]
fn links_and_files_in_the_folders_place_are_refused() {
    let temp = TempDir::new().unwrap();
    let at = |name: &str| temp.as_path().join(name);
    fs::create_dir(at("real")).unwrap();
    symlink(at("real"), at("link")).unwrap();
    symlink(at("nowhere"), at("dangling")).unwrap();
    fs::write(at("file"), "").unwrap();
    assert!(refused(&at("link")).contains("is a symbolic link"));
    assert!(open(Path::new(&format!("{}/", at("link").display()))).is_err(), "a trailing slash makes no difference");
    assert!(refused(&at("dangling")).contains("is a symbolic link"));
    assert!(refused(&at("file")).contains("is not a directory"));
    assert!(!at("nowhere").exists() && fs::read_dir(at("real")).unwrap().next().is_none());
    // Symbolic links in the parent path are accepted.
    open(&at("real/..").join("link/card")).unwrap();
    let dir = at("with link");
    fs::create_dir(&dir).unwrap();
    symlink(at("real"), dir.join("operator")).unwrap();
    assert!(refused(&dir).contains("operator is a symbolic link"));
}

#[test]
fn run_directory_in_use_is_refused() {
    let temp = TempDir::new().unwrap();
    let first = open(temp.as_path()).unwrap();
    assert!(refused(temp.as_path()).contains("is in use: another card is being served there"));
    drop(first);
    fs::remove_file(temp.as_path().join("lock")).unwrap();
    symlink("elsewhere", temp.as_path().join("lock")).unwrap();
    assert!(refused(temp.as_path()).contains("it is a symbolic link"));
    assert!(!temp.as_path().join("elsewhere").exists());
}

#[test]
fn stale_sockets_are_removed_and_other_files_kept() {
    let temp = TempDir::new().unwrap();
    let at = |name: &str| temp.as_path().join(name);
    drop(open(temp.as_path()).unwrap());
    for name in ["pf.sock", "operator/operator.sock"] {
        drop(UnixListener::bind(at(name)).unwrap());
    }
    drop(open(temp.as_path()).unwrap());
    assert!(["pf.sock", "operator/operator.sock"].iter().all(|name| fs::symlink_metadata(at(name)).is_err()));
    for name in ["pf.sock", "operator/operator.sock"] {
        fs::write(at(name), "precious").unwrap();
        let text = refused(temp.as_path());
        assert!(text.contains(name) && text.contains("it is a regular file, not a socket"), "{text}");
        assert_eq!(fs::read_to_string(at(name)).unwrap(), "precious");
        fs::remove_file(at(name)).unwrap();
        symlink("nowhere", at(name)).unwrap();
        let text = refused(temp.as_path());
        assert!(text.contains("it is a symbolic link") && !text.contains("another card"), "{text}");
        fs::remove_file(at(name)).unwrap();
    }
    let _live = UnixListener::bind(at("pf.sock")).unwrap();
    assert!(refused(temp.as_path()).contains("pf.sock is in use: another card"));
}

#[test]
fn the_report_replaces_a_link() {
    let temp = TempDir::new().unwrap();
    let at = |name: &str| temp.as_path().join(name);
    fs::write(at("victim"), "precious").unwrap();
    symlink(at("victim"), at("report.json")).unwrap();
    symlink(at("victim"), at(NEW_REPORT)).unwrap();
    let dir = open(temp.as_path()).unwrap();
    dir.write_report(b"{}\n").unwrap();
    assert_eq!(fs::read_to_string(at("victim")).unwrap(), "precious");
    assert_eq!((fs::read_to_string(at("report.json")).unwrap().as_str(), mode(&at("report.json"))), ("{}\n", 0o600));
    fs::remove_file(at("report.json")).unwrap();
    fs::create_dir(at("report.json")).unwrap();
    assert!(dir.write_report(b"{}\n").unwrap_err().to_string().contains("report.json cannot be written"));
    assert!(!at(NEW_REPORT).exists());
}

#[test]
fn the_operator_socket_is_found_by_the_directory_and_by_its_path() {
    let temp = TempDir::new().unwrap();
    let dir = open(temp.as_path()).unwrap();
    let socket = dir.operator_socket();
    assert_eq!(socket, temp.as_path().canonicalize().unwrap().join("operator/operator.sock"));
    for card in [dir.path(), &socket] {
        assert_eq!(find_operator_socket(Some(card)).unwrap(), socket);
    }
}

#[test]
fn overlong_socket_path_is_refused() {
    let temp = TempDir::new().unwrap();
    let dir = temp.as_path().join("x".repeat(90));
    assert!(refused(&dir).contains("shorter --dir"));
    assert!(!dir.exists());
}
