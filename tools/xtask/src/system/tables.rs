//! `ps` and `mem` as the shell prints them, read back: what scripts may rely on (`docs/shell.md`).

use std::collections::BTreeMap;

use anyhow::{Context as _, Result, bail, ensure};

/// A row of `ps`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Process {
    /// Process id.
    pub pid: u64,
    /// Name.
    pub name: String,
    /// What it does, as `docs/shell.md` names it.
    pub state: String,
    /// The CPU that it has, or had last; `None` if it waits.
    pub cpu: Option<u32>,
    /// Time that its threads ran, in milliseconds.
    pub milliseconds: u64,
    /// Memory charged to it, in KiB.
    pub kib: u64,
}

/// What `mem` says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Memory {
    /// Where the memory is, in KiB, by name; without `total`, which it adds up to.
    kib: BTreeMap<String, u64>,
    /// Slots in use, by pool.
    pub pools: BTreeMap<String, u64>,
}

impl Memory {
    /// The KiB of a part.
    ///
    /// # Errors
    /// If `mem` does not name it.
    pub fn kib(&self, name: &str) -> Result<u64> {
        named(&self.kib, name)
    }

    /// The slots in use of a pool.
    ///
    /// # Errors
    /// If `mem` does not name it.
    pub fn pool(&self, name: &str) -> Result<u64> {
        named(&self.pools, name)
    }
}

fn named(rows: &BTreeMap<String, u64>, name: &str) -> Result<u64> {
    let number = rows.get(name).copied();
    number.with_context(|| format!("`mem` has no row {name:?}: {rows:?}"))
}

/// Reads `ps`.
///
/// # Errors
/// If it does not have the documented form.
pub fn processes(text: &str) -> Result<Vec<Process>> {
    let rows = text.lines().skip(1).map(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [pid, name, state, cpu, time, kib] = words[..] else {
            return None;
        };
        Some(Process {
            pid: pid.parse().ok()?,
            name: name.to_owned(),
            state: state.to_owned(),
            cpu: cpu.parse().ok(),
            milliseconds: time.strip_suffix('s')?.replace('.', "").parse().ok()?,
            kib: kib.strip_suffix('K')?.parse().ok()?,
        })
    });
    let rows: Option<Vec<_>> = rows.collect();
    rows.with_context(|| format!("`ps` printed:\n{text}"))
}

/// Reads `mem`.
///
/// # Errors
/// If it does not have the documented form, or does not add up.
pub fn memory(text: &str) -> Result<Memory> {
    let (mut kib, mut pools) = (BTreeMap::new(), BTreeMap::new());
    for line in text.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        let (name, number, into) = match words[..] {
            [ref name @ .., number, "KiB"] => (name.join(" "), number, &mut kib),
            [ref name @ .., number, "of", _] => (name.join(" "), number, &mut pools),
            _ => bail!("`mem` printed:\n{text}"),
        };
        into.insert(name, number.parse()?);
    }
    let total = kib.remove("total");
    let sum = kib.values().sum();
    ensure!(total == Some(sum), "the parts add up to {sum} KiB:\n{text}");
    Ok(Memory { kib, pools })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_processes_are_read() {
        let text = "\
PID   NAME             STATE CPU        TIME      MEM
1     init             run     0      0.018s    5800K
12    sleep            sleep   -      0.001s      88K
";
        let rows = processes(text).unwrap();
        assert_eq!((rows[0].pid, rows[0].name.as_str()), (1, "init"));
        assert_eq!((rows[1].pid, rows[1].kib), (12, 88));
        assert_eq!((rows[0].cpu, rows[1].cpu), (Some(0), None));
        assert!(processes("PID\nnonsense\n").is_err());
    }

    #[test]
    fn memory_has_to_add_up() {
        let text = |total| {
            format!("total {total} KiB\nfree 60 KiB\nwaiting 4 KiB\nmemory objects 3 of 9\n")
        };
        let read = memory(&text(64)).unwrap();
        assert_eq!(read.kib("free").unwrap(), 60);
        assert_eq!(read.kib("waiting").unwrap(), 4);
        assert_eq!(read.pool("memory objects").unwrap(), 3);
        assert!(read.kib("memory objects").is_err() && read.pool("free").is_err());
        assert!(memory(&text(65)).is_err());
        assert!(memory("total\n").is_err());
    }
}
