//! The room of programs: a thread that sees all files read-only, and a `/tmp` in memory. Programs are started in it, and
//! what they left is read in it. It goes with the thread and the programs.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::thread::{self, JoinHandle};

use redtail_traffic::TakenFile;
use rustix::fs::OFlags;
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use super::report::{Budget, MAX_ERRORS, MAX_FILES, MAX_OUTPUT, ProgramFile, ProgramReport, Role};
use crate::spaces::about;
use crate::sys::mounts;

/// The folder of memory.
pub const TEMPORARY: &str = "/tmp";

/// Most folders and files that are looked at in `{out}`, and how deep.
const MOST_ENTRIES: usize = 10_000;
const DEEPEST: usize = 8;

type Job = Box<dyn FnOnce() + Send>;

/// The thread.
pub struct Room {
    jobs: Option<mpsc::Sender<Job>>,
    thread: Option<JoinHandle<()>>,
}

impl Room {
    /// Makes the room.
    ///
    /// # Errors
    /// When the kernel refuses a step.
    pub fn open() -> io::Result<Self> {
        let (jobs, to_do) = mpsc::channel::<Job>();
        let thread = thread::spawn(move || to_do.into_iter().for_each(|job| job()));
        let room = Self {
            jobs: Some(jobs),
            thread: Some(thread),
        };
        room.within(mounts::read_only_but_memory)?;
        Ok(room)
    }

    /// Does something in the room, and waits for it.
    ///
    /// # Errors
    /// Those of what is done.
    pub fn within<T: Send + 'static>(
        &self,
        job: impl FnOnce() -> io::Result<T> + Send + 'static,
    ) -> io::Result<T> {
        let (done, result) = mpsc::channel();
        let jobs = self.jobs.as_ref().expect("the room is open");
        let job: Job = Box::new(move || {
            let _ = done.send(job());
        });
        jobs.send(job)
            .expect("the thread of the room waits for jobs");
        result
            .recv()
            .expect("the thread of the room does not panic")
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        self.jobs = None; // ends the thread
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Moves the calling thread into a network namespace.
///
/// # Errors
/// When the kernel refuses it.
pub fn enter(space: &OwnedFd) -> io::Result<()> {
    let kind = Some(LinkNameSpaceType::Network);
    Ok(move_into_link_name_space(space.as_fd(), kind)?)
}

/// A file without a name in memory, for what a program prints.
///
/// # Errors
/// When it cannot be made.
pub fn stream() -> io::Result<File> {
    let mut options = OpenOptions::new();
    let flags = OFlags::TMPFILE.bits() as i32;
    let options = options.read(true).write(true).custom_flags(flags);
    let opened = options.mode(0o600).open(TEMPORARY);
    opened.map_err(|error| about(error, "room for what a program prints"))
}

/// The last bytes of a file.
///
/// # Errors
/// When it cannot be read.
pub fn end_of(mut file: &File, most: u64) -> io::Result<Vec<u8>> {
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(most)))?;
    let mut end = Vec::new();
    file.take(most).read_to_end(&mut end)?;
    Ok(end)
}

/// Reads what a program has printed into its report.
///
/// # Errors
/// When it cannot be read.
pub fn read_streams(
    mut output: &File,
    errors: &File,
    left: &mut Budget,
    report: &mut ProgramReport,
) -> io::Result<()> {
    let length = output.metadata()?.len();
    let kept = left.take_at_most(length.min(MAX_OUTPUT));
    output.seek(SeekFrom::Start(0))?;
    output.take(kept).read_to_end(&mut report.output)?;
    report.output_cut = length - report.output.len() as u64;
    report.errors = end_of(errors, left.take_at_most(MAX_ERRORS))?;
    Ok(())
}

/// The folders of a pair.
#[derive(Clone, Debug)]
pub struct Folders(PathBuf);

impl Folders {
    /// Makes the folders of pair `i` of a group, with the files that it takes along.
    ///
    /// # Errors
    /// When there is no room, or a file is missing.
    pub fn make(
        group: usize,
        i: u32,
        taken: &BTreeMap<String, TakenFile>,
        contents: &BTreeMap<String, Vec<u8>>,
    ) -> io::Result<Self> {
        let folders = Self(Path::new(TEMPORARY).join(format!("redtail/{group}.{i}")));
        let named = |error, path: &Path| about(error, &path.display().to_string());
        let work = folders.work();
        for folder in [
            &work,
            &folders.out(Role::Server),
            &folders.out(Role::Client),
        ] {
            fs::create_dir_all(folder).map_err(|error| named(error, folder))?;
        }
        for (name, file) in taken {
            let content = contents
                .get(&file.sha256)
                .filter(|_| redtail_traffic::program::is_inside(name));
            let Some(content) = content else {
                return Err(io::Error::other(format!(
                    "the file {name} of programs is missing"
                )));
            };
            let path = work.join(name);
            let parent = path.parent().unwrap_or(&work);
            fs::create_dir_all(parent).map_err(|error| named(error, parent))?;
            fs::write(&path, content).map_err(|error| named(error, &path))?;
            let mode = if file.executable { 0o755 } else { 0o644 };
            fs::set_permissions(&path, fs::Permissions::from_mode(mode))?;
        }
        Ok(folders)
    }

    /// Where both programs begin.
    pub fn work(&self) -> PathBuf {
        self.0.join("work")
    }

    /// Where a program leaves results.
    pub fn out(&self, role: Role) -> PathBuf {
        self.0.join(role.name())
    }

    /// Reads the files that a program has left into its report.
    ///
    /// # Errors
    /// Never for what the program did: what cannot be read is left out, and told.
    pub fn collect(
        &self,
        role: Role,
        left: &mut Budget,
        report: &mut ProgramReport,
    ) -> io::Result<()> {
        let out = self.out(role);
        let mut found = Vec::new();
        list(&out, "", DEEPEST, &mut found);
        found.sort();
        for name in found {
            let content = (report.files.len() < MAX_FILES)
                .then(|| read_plain(&out.join(&name), left))
                .flatten();
            match content {
                Some(content) => report.files.push(ProgramFile { name, content }),
                None if report.left_out.len() < MAX_FILES => report.left_out.push(name),
                None => {}
            }
        }
        Ok(())
    }
}

/// Adds the names of all that is in a folder and is no folder. Links are not followed.
fn list(folder: &Path, before: &str, deeper: usize, found: &mut Vec<String>) {
    let Ok(entries) = fs::read_dir(folder) else {
        return;
    };
    for entry in entries.flatten() {
        if found.len() >= MOST_ENTRIES {
            return;
        }
        let name = format!("{before}{}", entry.file_name().to_string_lossy());
        match entry.file_type() {
            Ok(kind) if kind.is_dir() && deeper > 0 => {
                list(&entry.path(), &format!("{name}/"), deeper - 1, found);
            }
            _ => found.push(name),
        }
    }
}

/// The content of a plain file, if there is room for it.
fn read_plain(path: &Path, left: &mut Budget) -> Option<Vec<u8>> {
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits() as i32;
    let opened = OpenOptions::new().read(true).custom_flags(flags).open(path);
    let file = opened.ok()?;
    let about = file.metadata().ok()?;
    if !about.is_file() || !left.take(about.size()) {
        return None;
    }
    let mut content = Vec::new();
    let read = file.take(about.size()).read_to_end(&mut content).ok()?;
    (read as u64 == about.size()).then_some(content)
}
