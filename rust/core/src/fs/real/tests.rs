#![allow(clippy::disallowed_methods, reason = "tests look at the directory from outside")]

use std::fs;
use std::io::{Read as _, Write as _};
use std::os::fd::AsFd as _;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Command, Stdio};

use tempfile::TempDir;

use crate::Error;
use crate::fs::{
    Create, Dir as _, File as _, Fs as _, Map as _, RealDir, RealFs, Sent, WriteDir as _,
    WriteFile as _, WriteFs as _, replace_file,
};

fn open() -> (TempDir, RealDir) {
    let root = TempDir::new().unwrap();
    let dir = RealFs.open_dir(root.path()).unwrap();
    (root, dir)
}

#[test]
fn bytes_are_written_where_asked_and_read_back() {
    let (root, dir) = open();
    let file = dir.open_write("a", Create::New).unwrap();
    file.write_at(b"world", 5).unwrap();
    file.write_at(b"hello", 0).unwrap();
    file.sync().unwrap();
    assert_eq!(fs::read(root.path().join("a")).unwrap(), b"helloworld");
    file.set_len(3).unwrap();
    let mut buffer = [0; 8];
    assert_eq!(file.read_at(&mut buffer, 0).unwrap(), 3);
    file.set_len(6).unwrap();
    assert_eq!(fs::read(root.path().join("a")).unwrap(), b"hel\0\0\0");
}

#[test]
fn a_file_is_created_only_as_asked() {
    let (_root, dir) = open();
    assert!(dir.open_write("a", Create::No).unwrap_err().is_not_found());
    dir.open_write("a", Create::IfMissing).unwrap().write_at(b"x", 0).unwrap();
    let again = dir.open_write("a", Create::IfMissing).unwrap();
    assert_eq!(again.facts().unwrap().bytes, 1);
    assert!(dir.open_write("a", Create::New).is_err());
    assert!(dir.open_write("a", Create::No).is_ok());
}

#[test]
fn links_directories_and_paths_are_not_opened_for_writing() {
    let (root, dir) = open();
    fs::write(root.path().join("target"), b"safe").unwrap();
    std::os::unix::fs::symlink("target", root.path().join("link")).unwrap();
    fs::create_dir(root.path().join("sub")).unwrap();
    for name in ["link", "sub", "", ".", "..", "sub/x", "a\0b"] {
        assert!(dir.open_write(name, Create::IfMissing).is_err(), "{name:?}");
    }
    assert!(dir.rename("target", "../target").is_err());
    assert!(dir.unlink("sub/../target").is_err());
    assert_eq!(fs::read(root.path().join("target")).unwrap(), b"safe");
}

#[test]
fn names_are_renamed_and_removed() {
    let (root, dir) = open();
    dir.open_write("a", Create::New).unwrap().write_at(b"new", 0).unwrap();
    dir.open_write("b", Create::New).unwrap().write_at(b"old", 0).unwrap();
    dir.rename("a", "b").unwrap();
    assert_eq!(fs::read(root.path().join("b")).unwrap(), b"new");
    assert!(dir.unlink("b").unwrap());
    assert!(!dir.unlink("b").unwrap());
    assert!(dir.make_dir("t-0").unwrap());
    assert!(!dir.make_dir("t-0").unwrap());
    dir.rename("t-0", "t-0.x-delete").unwrap();
    let sub = dir.open_dir("t-0.x-delete").unwrap();
    sub.open_write("c", Create::New).unwrap();
    assert!(dir.remove_dir("t-0.x-delete").is_err());
    sub.unlink("c").unwrap();
    dir.remove_dir("t-0.x-delete").unwrap();
    dir.sync().unwrap();
    assert!(dir.list().unwrap().is_empty());
    dir.open_write("f", Create::New).unwrap();
    assert!(dir.make_dir("f").is_err());
}

#[test]
fn directories_are_made_down_to_the_last() {
    let (root, _dir) = open();
    let deep = root.path().join("a/b/c");
    RealFs.make_dirs(&deep).unwrap();
    RealFs.make_dirs(&deep).unwrap();
    assert!(deep.is_dir());
    fs::write(root.path().join("file"), b"").unwrap();
    assert!(RealFs.make_dirs(&root.path().join("file")).is_err());
    assert!(RealFs.make_dirs(&root.path().join("file/x")).is_err());
}

#[test]
fn a_replaced_file_has_the_new_content_and_no_leftover() {
    let (root, dir) = open();
    fs::write(root.path().join("c.tmp"), b"a longer leftover of a crash").unwrap();
    replace_file(&dir, "c", b"one").unwrap();
    replace_file(&dir, "c", b"three").unwrap();
    assert_eq!(fs::read(root.path().join("c")).unwrap(), b"three");
    assert!(!root.path().join("c.tmp").exists());
}

#[test]
fn a_map_and_the_file_are_the_same_bytes() {
    let (_root, dir) = open();
    let file = dir.open_write("i", Create::New).unwrap();
    file.allocate(18).unwrap();
    let map = file.map(18).unwrap();
    assert_eq!(map.cells(), 4);
    map.store(1, 0x0102_0304);
    let mut bytes = [9; 18];
    assert_eq!(file.read_at(&mut bytes, 0).unwrap(), 18);
    assert_eq!(bytes[4..8], [1, 2, 3, 4]);
    file.write_at(&[0, 0, 1, 0], 8).unwrap();
    assert_eq!(map.load(2), 256);
    assert_eq!(map.load(4), 0);
    map.flush().unwrap();
    drop(map);
    file.set_len(8).unwrap();
    assert_eq!(file.map(0).unwrap().cells(), 0);
}

#[test]
fn allocation_lengthens_and_never_cuts() {
    let (_root, dir) = open();
    let file = dir.open_write("a", Create::New).unwrap();
    file.write_at(b"keep", 0).unwrap();
    file.allocate(4096).unwrap();
    assert_eq!(file.facts().unwrap().bytes, 4096);
    file.allocate(10).unwrap();
    file.allocate(0).unwrap();
    assert_eq!(file.facts().unwrap().bytes, 4096);
    let mut start = [1; 6];
    file.read_at(&mut start, 0).unwrap();
    assert_eq!(&start, b"keep\0\0");
}

#[test]
fn the_modification_time_is_what_was_set() {
    let (_root, dir) = open();
    let file = dir.open_write("a", Create::New).unwrap();
    for ms in [1_700_000_000_123, 0, -1] {
        file.set_modified(ms).unwrap();
        assert_eq!(file.facts().unwrap().modified_ms, ms);
    }
}

#[test]
fn a_lock_is_held_once_and_given_back() {
    let (root, dir) = open();
    let lock = dir.lock(".lock").unwrap();
    let again = RealFs.open_dir(root.path()).unwrap();
    for _ in 0..2 {
        assert!(matches!(again.lock(".lock"), Err(Error::Locked { .. })));
    }
    // The refused attempts must not have given the process's own lock up.
    if let Some(free) = another_process_gets(root.path()) {
        assert!(!free);
    }
    drop(lock);
    drop(again.lock(".lock").unwrap());
    if let Some(free) = another_process_gets(root.path()) {
        assert!(free);
    }
}

/// Whether a process that locks as the JVM does gets the lock; `None` without a Python.
fn another_process_gets(dir: &Path) -> Option<bool> {
    let script =
        "import fcntl,sys\nf=open(sys.argv[1],'r+')\nfcntl.lockf(f,fcntl.LOCK_EX|fcntl.LOCK_NB)";
    let mut child = Command::new("python3");
    child.args(["-c", script]).arg(dir.join(".lock")).stderr(Stdio::null());
    child.status().ok().map(|status| status.success())
}

#[test]
fn another_process_s_lock_is_respected() {
    let (root, dir) = open();
    fs::write(root.path().join(".lock"), b"").unwrap();
    let script = "import fcntl,sys\nf=open(sys.argv[1],'r+')\nfcntl.lockf(f,fcntl.LOCK_EX|fcntl.LOCK_NB)\n\
                  print('held',flush=True)\nsys.stdin.read()";
    let mut child = Command::new("python3");
    child.args(["-c", script]).arg(root.path().join(".lock"));
    let Ok(mut child) = child.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn() else {
        return;
    };
    let mut held = [0; 4];
    child.stdout.as_mut().unwrap().read_exact(&mut held).unwrap();
    assert!(matches!(dir.lock(".lock"), Err(Error::Locked { .. })));
    drop(child.stdin.take());
    child.wait().unwrap();
    assert!(dir.lock(".lock").is_ok());
}

#[test]
fn a_free_disk_says_so() {
    assert!(open().1.free_bytes().unwrap() > 0);
}

#[test]
#[cfg(target_os = "linux")]
fn sendfile_sends_parts_and_says_when_the_socket_is_full() {
    let (_root, dir) = open();
    let file = dir.open_write("a", Create::New).unwrap();
    let content: Vec<u8> = (0..=255u8).cycle().take(4 << 20).collect();
    file.write_at(&content, 0).unwrap();
    let (here, mut there) = UnixStream::pair().unwrap();
    assert_eq!(file.send_to(here.as_fd(), 100, 50).unwrap(), Sent::Bytes(50));
    let mut got = [0; 50];
    there.read_exact(&mut got).unwrap();
    assert_eq!(got, content[100..150]);
    assert_eq!(file.send_to(here.as_fd(), 4 << 20, 50).unwrap(), Sent::Bytes(0));
    here.set_nonblocking(true).unwrap();
    let mut position = 0;
    loop {
        match file.send_to(here.as_fd(), position, 1 << 20).unwrap() {
            Sent::Bytes(sent) => position += u64::try_from(sent).unwrap(),
            Sent::WouldBlock => break,
            Sent::Unsupported => panic!("a socket is supported"),
        }
        assert!(position < 4 << 20);
    }
    drop(there);
    assert!(matches!(file.send_to(here.as_fd(), 0, 10), Err(Error::Io { .. })));
}

#[test]
#[cfg(target_os = "linux")]
fn sendfile_to_what_cannot_take_it_is_unsupported() {
    let (root, dir) = open();
    let file = dir.open_write("a", Create::New).unwrap();
    file.write_at(b"abc", 0).unwrap();
    let mut options = fs::File::options();
    let mut target = options.append(true).create(true).open(root.path().join("t")).unwrap();
    target.write_all(b"x").unwrap();
    assert_eq!(file.send_to(target.as_fd(), 0, 3).unwrap(), Sent::Unsupported);
}
