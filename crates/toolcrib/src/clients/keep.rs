//! Writing somebody's file: a backup beside it first, then the new text in one step.
//!
//! A reader never sees half a file, and what was there before can always be had back.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use super::ClientError;

/// The text of a file; `None` when there is none.
pub(crate) fn text(path: &Path) -> Result<Option<String>, ClientError> {
    match fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(ClientError::Read { path: path.to_owned(), source }),
    }
}

/// Who may read a file that is new; one that is replaced keeps its permissions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Readers {
    Owner,
    Everyone,
}

/// Replaces the file by `after` if it still holds `before`. Returns the backup, if there was something to back up.
pub(crate) fn replace(
    path: &Path,
    before: Option<&str>,
    after: &str,
    readers: Readers,
) -> Result<Option<PathBuf>, ClientError> {
    // A link stays a link: what it points to is written.
    let target = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    if text(&target)?.as_deref() != before {
        return Err(ClientError::Changed { path: path.to_owned() });
    }
    let fault = |source| ClientError::Write { path: path.to_owned(), source };
    let backup = match before {
        Some(_) => Some(back_up(&target).map_err(fault)?),
        None => None,
    };
    write(&target, after, readers).map_err(fault)?;
    Ok(backup)
}

fn write(target: &Path, text: &str, readers: Readers) -> io::Result<()> {
    let folder = target.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    fs::create_dir_all(folder)?;
    let mut file = tempfile::Builder::new().prefix(".toolcrib-").tempfile_in(folder)?;
    file.write_all(text.as_bytes())?;
    file.as_file().sync_all()?;
    match fs::metadata(target) {
        Ok(before) => file.as_file().set_permissions(before.permissions())?,
        Err(_) => permit(file.as_file(), readers)?,
    }
    file.persist(target)?;
    Ok(())
}

#[cfg(unix)]
fn permit(file: &fs::File, readers: Readers) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    let mode = match readers {
        Readers::Owner => 0o600,
        Readers::Everyone => 0o644,
    };
    file.set_permissions(fs::Permissions::from_mode(mode))
}

#[cfg(not(unix))]
fn permit(_: &fs::File, _: Readers) -> io::Result<()> {
    Ok(())
}

/// A copy named `<file>.bak-<time>`, with the same permissions.
fn back_up(target: &Path) -> io::Result<PathBuf> {
    let stamp = timestamp(SystemTime::now());
    let named = |tail: &str| {
        let mut name = target.as_os_str().to_owned();
        name.push(format!(".bak-{stamp}{tail}"));
        PathBuf::from(name)
    };
    let mut backup = named("");
    let mut number = 2;
    while backup.exists() {
        backup = named(&format!("-{number}"));
        number += 1;
    }
    fs::copy(target, &backup)?;
    Ok(backup)
}

/// The newest backup of the file.
pub(crate) fn newest_backup(path: &Path) -> Option<PathBuf> {
    let target = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let start = format!("{}.bak-", target.file_name()?.to_str()?);
    let backups = fs::read_dir(target.parent()?).ok()?.filter_map(|entry| {
        let path = entry.ok()?.path();
        let tail = path.file_name()?.to_str()?.strip_prefix(&start)?.to_owned();
        let (stamp, number) = tail.split_once('-').unwrap_or((&tail, "1"));
        Some((stamp.to_owned(), number.parse::<u32>().ok()?, path))
    });
    backups.max().map(|(_, _, path)| path)
}

/// `20261115T101500Z`.
fn timestamp(now: SystemTime) -> String {
    let seconds = now.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let (days, second) = (seconds / 86_400, seconds % 86_400);
    // Days to a date, counting years from March so that a leap day is the last of its year.
    let shifted = days + 719_468;
    let (era, day_of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    format!("{year:04}{month:02}{day:02}T{hour:02}{minute:02}{second:02}Z")
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn times_are_dates() {
        let at = |seconds| timestamp(UNIX_EPOCH + Duration::from_secs(seconds));
        assert_eq!(at(0), "19700101T000000Z");
        assert_eq!(at(951_782_400), "20000229T000000Z");
        assert_eq!(at(1_794_737_743), "20261115T101543Z");
    }

    #[test]
    fn a_file_that_changed_meanwhile_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        fs::write(&path, "theirs").unwrap();
        assert!(matches!(
            replace(&path, Some("ours"), "new", Readers::Owner),
            Err(ClientError::Changed { .. })
        ));
        assert!(matches!(replace(&path, None, "new", Readers::Owner), Err(ClientError::Changed { .. })));
        assert_eq!(fs::read_to_string(&path).unwrap(), "theirs");
    }

    #[test]
    fn backups_do_not_overwrite_each_other_and_the_newest_is_found() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        fs::write(&path, "0").unwrap();
        for number in 1..=12 {
            replace(&path, Some(&(number - 1).to_string()), &number.to_string(), Readers::Owner).unwrap();
        }
        assert_eq!(fs::read_to_string(newest_backup(&path).unwrap()).unwrap(), "11");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 13);
    }
}
