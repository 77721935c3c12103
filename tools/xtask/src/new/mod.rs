//! `./run.sh new NAME`: makes the skeleton of a program or of a server in this tree, and says what to type next.
//!
//! What is made is in `tools/xtask/skeleton/`: real code, with `@name@` where the name goes. It is complete: it builds
//! without warnings, has tests, runs, and is named by a profile. Nothing that exists is overwritten, and nothing is written
//! if anything is in the way.

mod name;
mod skeleton;

use std::fs;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};

use anyhow::{Context, Result, ensure};

use crate::cli::WRONG_ARGUMENT;
use crate::text;
use crate::workspace::Workspace;

pub use name::Kind;
use name::{Name, NameError};
use skeleton::{Skeleton, client};

/// Makes the skeleton and says what was made, or why the name is refused.
///
/// # Errors
/// If the tree is not as expected, or cannot be written.
pub fn run(workspace: &Workspace, name: &str, kind: Kind) -> Result<ExitCode> {
    match make(&workspace.root, name, kind) {
        Ok(said) => print!("{said}"),
        Err(error) if error.is::<NameError>() => {
            eprintln!("{}", text::wrapped(&format!("error: {error}")));
            return Ok(ExitCode::from(WRONG_ARGUMENT));
        }
        Err(error) => return Err(error),
    }
    Ok(ExitCode::SUCCESS)
}

/// Makes the skeleton; what there is to say then.
///
/// # Errors
/// A [`NameError`]; else if the tree is not as expected, or cannot be written.
pub fn make(root: &Path, name: &str, kind: Kind) -> Result<String> {
    let name = Name::parse(name, kind, &taken(root)?)?;
    let skeleton = match kind {
        Kind::Program => Skeleton::program(root, &name)?,
        Kind::Server => Skeleton::server(root, &name)?,
    };
    write(root, &skeleton)?;
    format(root, &skeleton);
    let mut said = String::new();
    for (path, _) in &skeleton.made {
        said += &format!("made    {path}\n");
    }
    for (path, _) in &skeleton.changed {
        said += &format!("changed {path}\n");
    }
    Ok(said + &next_steps(&name, kind))
}

fn write(root: &Path, skeleton: &Skeleton) -> Result<()> {
    for (path, _) in &skeleton.made {
        ensure!(!root.join(path).exists(), "{path} exists already");
    }
    for (path, text) in skeleton.made.iter().chain(&skeleton.changed) {
        let file = root.join(path);
        if let Some(folder) = file.parent() {
            fs::create_dir_all(folder).with_context(|| path.clone())?;
        }
        fs::write(&file, text).with_context(|| path.clone())?;
    }
    Ok(())
}

/// Lays the new files out as rustfmt does: where lines break depends on the name. Where there is no rustfmt, nothing asks for it.
fn format(root: &Path, skeleton: &Skeleton) {
    let paths = skeleton.made.iter().map(|(path, _)| path);
    let mut rustfmt = Command::new("rustfmt");
    rustfmt.current_dir(root).args(["--edition", "2024"]);
    rustfmt.args(paths.filter(|path| path.ends_with(".rs")));
    let _ = rustfmt.stderr(Stdio::null()).status();
}

/// What to type next.
fn next_steps(name: &Name, kind: Kind) -> String {
    let (tests, run, page) = match kind {
        Kind::Program => (
            format!("programs::{name}"),
            format!("{name} 2"),
            "docs/write-a-program.md",
        ),
        Kind::Server => (
            format!("{name}::"),
            format!("{} 0 1000000000", client(name)),
            "docs/write-a-server.md",
        ),
    };
    format!(
        "next:\n  ./run.sh test host::{tests}\n  ./run.sh\n  > run {run} &\n  > profile\nmore: {page}\n"
    )
}

/// Names that something else in the tree has, each with what has it.
fn taken(root: &Path) -> Result<Vec<(String, String)>> {
    let mut taken = Vec::new();
    for place in [
        "programs/src",
        "programs/src/bin",
        "ipc/src/proto",
        "servers",
        "tests",
    ] {
        for entry in fs::read_dir(root.join(place)).with_context(|| place.to_owned())? {
            let path = entry?.path();
            let stem = path.file_stem().and_then(|stem| stem.to_str());
            let file = path.file_name().and_then(|name| name.to_str());
            if let (Some(stem), Some(file)) = (stem, file) {
                taken.push((stem.to_owned(), format!("{place}/{file}")));
            }
        }
    }
    // Entries of programs, and packages: the tree's own and those that it uses.
    for file in ["system.toml", "tests/system.toml", "Cargo.lock"] {
        let text = fs::read_to_string(root.join(file)).with_context(|| file.to_owned())?;
        let names = text.lines().filter_map(|line| {
            let name = line.strip_prefix("name = \"")?.strip_suffix('"')?;
            Some((name.replace('-', "_"), file.to_owned()))
        });
        taken.extend(names);
    }
    Ok(taken)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_tree_has_is_taken() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let taken = taken(&root).unwrap();
        let by = |name: &str| {
            let found = taken.iter().find(|(other, _)| other == name);
            found.map(|(_, by)| by.as_str())
        };
        assert_eq!(by("shares"), Some("programs/src/shares.rs"));
        assert_eq!(by("spin"), Some("programs/src/bin/spin.rs"));
        assert_eq!(by("stream"), Some("ipc/src/proto/stream.rs"));
        assert_eq!(by("console"), Some("servers/console"));
        assert_eq!(by("default"), Some("system.toml"));
        assert_eq!(by("kcore"), Some("Cargo.lock"));
        assert_eq!(by("sample_ring"), Some("Cargo.lock"));
        assert_eq!(by("nobody"), None);
    }
}
