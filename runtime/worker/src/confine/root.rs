//! The root of a program with namespaces: what it may read, without a way to change it, and its own folders.
//!
//! Landlock decides what is read, as without namespaces. This root bounds what Landlock does not know: modes, owners,
//! times and attributes of files, names, and sockets.

use rustix::fs::CWD;
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, MountFlags, MountPropagationFlags, MoveMountFlags,
    OpenTreeFlags, UnmountFlags, fsconfig_create, fsmount, fsopen, mount, mount_change, mount_remount,
    move_mount, open_tree, unmount,
};
use rustix::process::pivot_root;
use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStringExt as _;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

/// Links that programs expect among the devices.
const DEVICE_LINKS: [(&str, &str); 4] = [
    ("/proc/self/fd", "/dev/fd"),
    ("/proc/self/fd/0", "/dev/stdin"),
    ("/proc/self/fd/1", "/dev/stdout"),
    ("/proc/self/fd/2", "/dev/stderr"),
];

/// A place of the new root.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Place {
    /// The path that the program uses.
    pub(super) name: PathBuf,
    /// The path without links.
    pub(super) path: PathBuf,
    pub(super) is_writable: bool,
}

/// Makes a root of these places and of a list of processes, and moves this process into it.
pub(super) fn enter(places: &[Place]) -> io::Result<()> {
    // What is mounted elsewhere from now on stays there.
    mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC)?;
    let processes = process_list()?;
    let mounts = outermost(places);
    let trees: Vec<Tree> = mounts.iter().map(|place| Tree::open(&place.path)).collect::<io::Result<_>>()?;
    // Any folder that always exists.
    mount("tmpfs", "/proc", "tmpfs", MountFlags::NOSUID | MountFlags::NODEV, c"mode=0755")?;
    std::env::set_current_dir("/proc")?;
    pivot_root(".", ".")?;
    unmount(".", UnmountFlags::DETACH)?;
    std::env::set_current_dir("/")?;
    trees.into_iter().try_for_each(Tree::attach)?;
    std::fs::create_dir("/proc")?;
    move_to(&processes, Path::new("/proc"))?;
    let links = places.iter().map(|place| (place.path.as_path(), place.name.as_path()));
    let device_links = DEVICE_LINKS.map(|(target, link)| (Path::new(target), Path::new(link)));
    links.chain(device_links).try_for_each(|(target, link)| make_link(target, link))?;
    let writable: Vec<&Path> =
        mounts.iter().filter(|place| place.is_writable).map(|place| place.path.as_path()).collect();
    make_read_only(&writable)
}

/// The places to mount, each after those around it, without those that a mount has already.
fn outermost(places: &[Place]) -> Vec<&Place> {
    let mut sorted: Vec<&Place> = places.iter().collect();
    sorted.sort_by(|a, b| a.path.cmp(&b.path).then(b.is_writable.cmp(&a.is_writable)));
    let mut mounts: Vec<&Place> = Vec::new();
    for place in sorted {
        let around = mounts.iter().rev().find(|mount| place.path.starts_with(&mount.path));
        if around.is_none_or(|around| place.is_writable && !around.is_writable) {
            mounts.push(place);
        }
    }
    mounts
}

/// The processes of this namespace. The kernel gives them only while the list of its parent can be seen.
fn process_list() -> io::Result<OwnedFd> {
    let list = fsopen("proc", FsOpenFlags::FSOPEN_CLOEXEC)?;
    fsconfig_create(&list)?;
    let attributes = MountAttrFlags::MOUNT_ATTR_NOSUID
        | MountAttrFlags::MOUNT_ATTR_NODEV
        | MountAttrFlags::MOUNT_ATTR_NOEXEC;
    Ok(fsmount(&list, FsMountFlags::FSMOUNT_CLOEXEC, attributes)?)
}

/// A copy of the mounts of a path, which is nowhere yet.
struct Tree {
    path: PathBuf,
    is_folder: bool,
    mounts: OwnedFd,
}

impl Tree {
    fn open(path: &Path) -> io::Result<Self> {
        let is_folder = path.metadata()?.is_dir();
        let flags =
            OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC | OpenTreeFlags::AT_RECURSIVE;
        Ok(Self { path: path.to_owned(), is_folder, mounts: open_tree(CWD, path, flags)? })
    }

    fn attach(self) -> io::Result<()> {
        if !self.path.exists() {
            let folder = if self.is_folder { Some(self.path.as_path()) } else { self.path.parent() };
            folder.map_or(Ok(()), std::fs::create_dir_all)?;
            if !self.is_folder {
                File::create(&self.path)?;
            }
        }
        move_to(&self.mounts, &self.path)
    }
}

fn move_to(mounts: &OwnedFd, path: &Path) -> io::Result<()> {
    Ok(move_mount(mounts, "", CWD, path, MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH)?)
}

/// Makes a link, unless the path leads somewhere already.
fn make_link(target: &Path, link: &Path) -> io::Result<()> {
    if link.symlink_metadata().is_ok() {
        return Ok(());
    }
    link.parent().map_or(Ok(()), std::fs::create_dir_all)?;
    symlink(target, link)
}

/// Makes every mount read-only that is not in a writable place. Flags that the kernel has locked stay.
fn make_read_only(writable: &[&Path]) -> io::Result<()> {
    for (path, options) in mounts(&std::fs::read("/proc/self/mountinfo")?) {
        if !writable.iter().any(|place| path.starts_with(place)) {
            mount_remount(&path, MountFlags::BIND | MountFlags::RDONLY | flags_of(&options), c"")?;
        }
    }
    Ok(())
}

/// The mounts of this process with their options, by the kernel's list.
fn mounts(list: &[u8]) -> Vec<(PathBuf, String)> {
    let line = |line: &[u8]| {
        let mut fields = line.split(|byte| *byte == b' ').skip(4);
        let path = unescape(fields.next()?);
        Some((path, String::from_utf8_lossy(fields.next()?).into_owned()))
    };
    list.split(|byte| *byte == b'\n').filter_map(line).collect()
}

/// Spaces, tabs, line ends and backslashes are three octal digits after a backslash.
fn unescape(field: &[u8]) -> PathBuf {
    let mut path = Vec::new();
    let mut rest = field;
    while let [first, after @ ..] = rest {
        rest = after;
        let digits = after.get(..3).and_then(|digits| std::str::from_utf8(digits).ok());
        match digits.and_then(|digits| u8::from_str_radix(digits, 8).ok()) {
            Some(byte) if *first == b'\\' => {
                path.push(byte);
                rest = after.get(3..).unwrap_or_default();
            }
            _ => path.push(*first),
        }
    }
    PathBuf::from(OsString::from_vec(path))
}

/// The flags that a change of a mount would take off. It keeps those of times.
fn flags_of(options: &str) -> MountFlags {
    let flag = |option| match option {
        "nosuid" => MountFlags::NOSUID,
        "nodev" => MountFlags::NODEV,
        "noexec" => MountFlags::NOEXEC,
        "nosymfollow" => MountFlags::NOSYMFOLLOW,
        _ => MountFlags::empty(),
    };
    options.split(',').map(flag).fold(MountFlags::empty(), |all, flag| all | flag)
}

#[cfg(test)]
mod tests {
    use super::{Place, flags_of, mounts, outermost};
    use pretty_assertions::assert_eq;
    use rustix::mount::MountFlags;
    use std::path::PathBuf;

    #[test]
    fn the_kernels_list_of_mounts_is_read() {
        let list = b"22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/x rw\n\
            23 22 0:5 / /with\\040space\\134 ro,nosuid,nodev,noexec - tmpfs tmpfs rw\n";
        let read = mounts(list);
        assert_eq!(
            read.iter().map(|(path, _)| path.clone()).collect::<Vec<_>>(),
            [PathBuf::from("/"), PathBuf::from("/with space\\")]
        );
        assert_eq!(flags_of(&read[0].1), MountFlags::empty());
        assert_eq!(flags_of(&read[1].1), MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC);
    }

    #[test]
    fn a_place_in_another_one_is_mounted_only_to_be_writable() {
        let place = |path: &str, is_writable| Place { name: path.into(), path: path.into(), is_writable };
        let places = [
            place("/usr/lib", false),
            place("/data/own", true),
            place("/usr", false),
            place("/data", false),
            place("/data/own", false),
        ];
        let found: Vec<_> = outermost(&places)
            .into_iter()
            .map(|place| (place.path.to_str().unwrap(), place.is_writable))
            .collect();
        assert_eq!(found, [("/data", false), ("/data/own", true), ("/usr", false)]);
    }
}
