//! The folder `audit` of a home: what its files are called, and whether they can be trusted.
//!
//! Invariant: a file is used only where it is a regular one of ours that nobody else can open, on
//! a file system of this machine.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;

use super::Unavailable;
use super::recipient::{Recipient, no_recipient};
use super::row::Hash;
use crate::limits;
use crate::trust::{Flaw, TrustFault};

/// A segment's file.
pub fn segment(folder: &Path, number: u64) -> PathBuf {
    folder.join(format!("{number:06}.jsonl"))
}

/// Where a torn tail is kept; the second of one segment and further ones are numbered.
pub(super) fn torn(folder: &Path, segment: u64, nth: u32) -> PathBuf {
    match nth {
        0 => folder.join(format!("{segment:06}.torn")),
        nth => folder.join(format!("{segment:06}.{nth}.torn")),
    }
}

/// The segments that are there, in their order.
///
/// # Errors
/// The folder cannot be listed.
pub fn segments(folder: &Path) -> io::Result<Vec<u64>> {
    let number = |name: &str| {
        let number = name.strip_suffix(".jsonl")?.parse().ok()?;
        is_called(&segment(folder, number), name).then_some(number)
    };
    named(folder, number)
}

/// The torn tails that are kept: of which segment, and the file.
pub(super) fn torn_files(folder: &Path) -> io::Result<Vec<(u64, PathBuf)>> {
    let place = |name: &str| {
        let name_of = name.strip_suffix(".torn")?;
        let (number, nth) = name_of.split_once('.').unwrap_or((name_of, "0"));
        let (number, nth) = (number.parse().ok()?, nth.parse().ok()?);
        is_called(&torn(folder, number, nth), name).then_some((number, nth))
    };
    let places = named(folder, place)?;
    Ok(places.into_iter().map(|(number, nth)| (number, torn(folder, number, nth))).collect())
}

/// What the names in a folder say, in order; a name in another spelling says nothing.
fn named<T: Ord>(folder: &Path, read: impl Fn(&str) -> Option<T>) -> io::Result<Vec<T>> {
    let mut all = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        all.extend(entry?.file_name().to_str().and_then(&read));
    }
    all.sort_unstable();
    Ok(all)
}

fn is_called(path: &Path, name: &str) -> bool {
    path.file_name().is_some_and(|it| it == name)
}

/// Opens a file of the record that is there in each that is whole.
pub(super) fn open_part(
    audit: &Path,
    name: &'static str,
    access: OFlags,
) -> Result<File, Unavailable> {
    open_own(&audit.join(name), access).map_err(|fault| lacking(audit, name, fault))
}

/// What a record is, a file of which cannot be opened.
pub(super) fn lacking(audit: &Path, name: &'static str, fault: io::Error) -> Unavailable {
    let has_rows = || segments(audit).is_ok_and(|numbers| !numbers.is_empty());
    match name {
        _ if fault.kind() != io::ErrorKind::NotFound => fault.into(),
        // One that is left behind is as good as none: `keyward init` ends that.
        _ if super::is_leaving(audit) || !has_rows() => Unavailable::Missing,
        "head" => Unavailable::Headless,
        _ => Unavailable::Incomplete(name),
    }
}

/// Opens a file of ours: regular, no link, for the owner alone.
pub(super) fn open_own(path: &Path, access: OFlags) -> io::Result<File> {
    let flags = access | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = rustix::fs::open(path, flags, rustix::fs::Mode::empty())?;
    let file = File::from(file);
    let metadata = file.metadata()?;
    let flaw = if !metadata.is_file() {
        Some(Flaw::NotAFile)
    } else {
        flaw_of(metadata.uid(), metadata.mode())
    };
    match flaw {
        None => Ok(file),
        Some(flaw) => Err(io::Error::new(
            io::ErrorKind::PermissionDenied,
            TrustFault { path: path.into(), flaw },
        )),
    }
}

fn flaw_of(owner: u32, mode: u32) -> Option<Flaw> {
    if owner != rustix::process::geteuid().as_raw() {
        return Some(Flaw::Owner);
    }
    match (mode & 0o022, mode & 0o077) {
        (0, 0) => None,
        (0, _) => Some(Flaw::Readable),
        _ => Some(Flaw::Writable),
    }
}

/// Opens a file of a record that may be anybody's, to look at: what is no file, a pipe say, is an error and no wait.
pub(super) fn open_to_read(path: &Path) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = File::from(rustix::fs::open(path, flags, rustix::fs::Mode::empty())?);
    if file.metadata()?.is_file() {
        return Ok(file);
    }
    let name = path.file_name().unwrap_or(path.as_os_str()).display();
    Err(io::Error::new(io::ErrorKind::InvalidData, format!("{name} is not a regular file")))
}

/// The most that is read of a small file: longer than a torn tail, the longest of them, can be.
const SMALL_BYTES: u64 = 2 * limits::AUDIT_ROW_BYTES as u64 + 1;

/// Reads such a file whole; of one that is longer than any of ours, so much that this is seen.
pub(super) fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open_to_read(path)?.take(SMALL_BYTES).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Reads a line, its line feed included; of one that is longer than any row, so much that this is seen.
pub(super) fn read_line(reader: &mut impl BufRead, line: &mut Vec<u8>) -> io::Result<usize> {
    reader.take(limits::AUDIT_ROW_BYTES as u64 + 2).read_until(b'\n', line)
}

/// The first line of such a file.
pub(super) fn first_line(path: &Path) -> io::Result<Vec<u8>> {
    let mut line = Vec::new();
    read_line(&mut BufReader::with_capacity(4096, open_to_read(path)?), &mut line)?;
    Ok(line)
}

/// Makes a file that is not there yet.
pub(super) fn create(path: &Path) -> io::Result<File> {
    File::options()
        .read(true)
        .write(true)
        .create_new(true)
        .mode(0o600)
        .custom_flags(flags(OFlags::NOFOLLOW))
        .open(path)
}

/// Flags as the standard library takes them.
pub(super) fn flags(flags: OFlags) -> i32 {
    i32::try_from(flags.bits()).unwrap_or(0)
}

/// Makes what happened to names in a folder durable.
pub(super) fn sync(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

/// Judges the folder: ours alone, and on a file system of this machine.
pub(super) fn check(folder: &Path) -> Result<(), Unavailable> {
    let metadata = match std::fs::symlink_metadata(folder) {
        Ok(metadata) => metadata,
        Err(fault) if fault.kind() == io::ErrorKind::NotFound => return Err(Unavailable::Missing),
        Err(fault) => return Err(fault.into()),
    };
    let flaw = if metadata.is_dir() {
        flaw_of(metadata.uid(), metadata.mode())
    } else {
        Some(Flaw::NotAFolder)
    };
    if let Some(flaw) = flaw {
        let fault = TrustFault { path: folder.into(), flaw };
        return Err(Unavailable::Untrusted(fault.to_string()));
    }
    let kind = rustix::fs::statfs(folder).map_err(io::Error::from)?.f_type;
    match remote(kind as u64 & 0xffff_ffff) {
        None => Ok(()),
        Some(name) => Err(Unavailable::Remote(format!(
            "{} is on {name}: a record needs a local file system",
            folder.display()
        ))),
    }
}

/// File systems whose locks or syncs may mean less than they say, by their numbers in `statfs`.
fn remote(kind: u64) -> Option<&'static str> {
    Some(match kind {
        0x6969 => "NFS",
        0x517b | 0xff53_4d42 | 0xfe53_4d42 => "SMB",
        0x6573_5546 => "FUSE",
        0x5346_414f | 0x6b41_4653 => "AFS",
        0x00c3_6400 => "Ceph",
        0x7375_7245 => "Coda",
        0x0102_1997 => "9P",
        0x564c => "NCP",
        0x0bd0_0bd0 => "Lustre",
        0x1983_0326 => "BeeGFS",
        0x4750_4653 => "GPFS",
        0x786f_4256 => "a shared folder of VirtualBox",
        0xaad7_aaea => "PanFS",
        _ => return None,
    })
}

/// The recipients of a home: one a line; blank lines and lines that begin with `#` do not count.
///
/// # Errors
/// [`Unavailable`]: the list cannot be used.
pub fn recipients(folder: &Path) -> Result<Vec<Recipient>, Unavailable> {
    let path = folder.join("recipients");
    let mut text = String::new();
    let file = open_part(folder, "recipients", OFlags::RDONLY)?;
    io::Read::read_to_string(&mut io::Read::take(file, 64 * 1024), &mut text)?;
    parse_recipients(&text)
        .map_err(|what| Unavailable::Recipients(format!("{}: {what}", path.display())))
}

fn parse_recipients(text: &str) -> Result<Vec<Recipient>, String> {
    let mut recipients = Vec::new();
    for line in
        text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'))
    {
        let recipient = Recipient::parse(line).ok_or_else(|| no_recipient(line))?;
        if !recipients.contains(&recipient) {
            recipients.push(recipient);
        }
    }
    match recipients.len() {
        0 => Err("names no recipient".into()),
        count if count > limits::AUDITORS => Err(format!("names more than {}", limits::AUDITORS)),
        _ => Ok(recipients),
    }
}

/// The SHA-256 of a file, without a label, and its length; in constant memory.
pub(super) fn digest(path: &Path) -> io::Result<(u64, Hash)> {
    use sha2::Digest as _;
    let mut hasher = sha2::Sha256::new();
    let mut file = open_own(path, OFlags::RDONLY)?;
    let (mut bytes, mut piece) = (0, vec![0; 64 * 1024]);
    loop {
        match io::Read::read(&mut file, &mut piece)? {
            0 => return Ok((bytes, Hash(hasher.finalize().into()))),
            count => {
                hasher.update(&piece[..count]);
                bytes += count as u64;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::audit::recipient::Identity;

    #[test]
    fn recipients_of_a_file() {
        let (a, b) = (Identity::fresh().recipient(), Identity::fresh().recipient());
        let text = format!("# the auditors\n\n  {a}  \n{b}\n{a}\n");
        assert_eq!(parse_recipients(&text), Ok(vec![a, b]));
        for bad in ["", "# none\n", "kwaudit1abc\n", &format!("{a}\nx\n")] {
            assert!(parse_recipients(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn file_systems_that_are_refused() {
        for kind in [0x6969, 0xff53_4d42, 0x6573_5546] {
            assert!(remote(kind).is_some());
        }
        for local in [0xef53, 0x0102_1994, 0x5846_5342, 0x9123_683e, 0x794c_7630] {
            assert_eq!(remote(local), None, "{local:x}");
        }
        // Nobody's rights are at fault there.
        assert!(Unavailable::Remote("NFS".into()).remedy().contains("a local file system"));
    }
}
