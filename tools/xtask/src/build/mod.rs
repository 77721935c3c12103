//! From sources to what boots: the kernel and the boot archive.
//!
//! The kernel is built by an invocation of its own, because cargo unites the features that all packages of one
//! invocation ask for, and the kernel must not get the programs' serializer.

mod compile;
mod config;
mod config_check;
mod edition;
pub mod elf;
mod strip;
mod symtab;

use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use ipc::bootfs::{self, Archive};
use ipc::name::KERNEL_CRATES;
use ipc::proto::system::{Start, SystemConfig};

use crate::gdb;
use crate::remote;
use crate::workspace::Workspace;
use compile::Executable;
use config::SystemFile;
pub use edition::{Edition, SHIM, SHIPPED, TEST, TRUTH};

/// What QEMU is given.
#[derive(Clone, Debug)]
pub struct Image {
    /// The kernel's ELF file.
    pub kernel: PathBuf,
    /// The boot archive; `None` to see what the kernel says.
    pub bootfs: Option<PathBuf>,
}

/// Builds everything of an archive that changed.
///
/// # Errors
/// If its configuration is wrong, something does not compile, or the archive becomes too large.
pub fn build(workspace: &Workspace, edition: &Edition) -> Result<Image> {
    let source = edition.config(&workspace.root)?;
    let system = SystemFile::parse(&source.text).map_err(|mistake| source.error(mistake))?;

    let kernel = compile::kernel(workspace, "kernel")?;
    let programs = compile::programs(workspace, &edition.packages(&workspace.root)?)?;
    let images: Vec<_> = programs.iter().map(Executable::archive_name).collect();
    let config = system
        .compile(&images)
        .map_err(|mistake| source.error(mistake))?;

    let out = workspace.target.join("image");
    fs::create_dir_all(&out)?;
    let mut archive = Archive::default();
    archive.add(bootfs::SYSTEM, &postcard::to_stdvec(&config)?);
    archive.add(bootfs::NEEDS, memory_needed(&config).to_string().as_bytes());
    archive.add(bootfs::REMOTE_KEYS, &fs::read(remote::keys(workspace)?)?);
    let kernel_elf = add(&mut archive, bootfs::KERNEL, &kernel, &out)?;
    archive.add(
        bootfs::KERNEL_SYMBOLS,
        &symtab::build(&kernel_elf, &KERNEL_CRATES)?,
    );
    let mut tables = Vec::new();
    for (program, name) in programs.iter().zip(&images) {
        let elf = add(&mut archive, name, program, &out)?;
        let krate = program.name.replace('-', "_");
        tables.push(symtab::build(&elf, &[&krate])?);
    }
    for (program, table) in programs.iter().zip(&tables) {
        archive.add(&program.symbols_name(), table);
    }
    let bytes = archive.finish();
    if bytes.len() > edition.bytes_max {
        bail!(
            "the boot archive has {} bytes; {} are allowed",
            bytes.len(),
            edition.bytes_max
        );
    }

    let (kernel_path, bootfs_path) = (out.join("kernel"), out.join(edition.archive));
    replace(&kernel_path, &strip::strip_debug(&kernel_elf)?)?;
    replace_private(&bootfs_path, &bytes)?;
    replace(&out.join(gdb::SCRIPT), gdb::script().as_bytes())?;
    Ok(Image {
        kernel: kernel_path,
        bootfs: Some(bootfs_path),
    })
}

/// Builds what gives an emulated machine performance counters, and is booted in the kernel's place. No image has it.
///
/// # Errors
/// If it does not compile.
pub fn shim(workspace: &Workspace) -> Result<PathBuf> {
    Ok(compile::kernel(workspace, SHIM)?.path)
}

/// Memory that a machine must have for programs, in KiB: for those that start with it, and one that is started later.
fn memory_needed(config: &SystemConfig) -> u32 {
    let kib = |start| {
        let programs = config.programs.iter().filter(move |p| p.start == start);
        programs.map(|program| program.memory_kib)
    };
    kib(Start::Boot).sum::<u32>() + kib(Start::Demand).max().unwrap_or(0)
}

/// Adds an executable to the archive without its debug information, and keeps the whole file by its build-id. Returns
/// the whole file.
fn add(archive: &mut Archive, name: &str, executable: &Executable, out: &Path) -> Result<Vec<u8>> {
    let whole = fs::read(&executable.path)?;
    let in_file = || executable.path.display().to_string();
    archive.add(name, &strip::strip_debug(&whole).with_context(in_file)?);
    keep(
        &elf::build_id(&whole).with_context(in_file)?,
        name,
        &executable.path,
        &out.join("symbols"),
    )?;
    Ok(whole)
}

/// Keeps an unstripped file where debuggers look for it, `.build-id/ab/cdef.debug`, and where its name in the archive leads to it.
fn keep(build_id: &str, name: &str, file: &Path, symbols: &Path) -> Result<()> {
    let (directory, rest) = build_id.split_at(2);
    let kept = format!(".build-id/{directory}/{rest}.debug");
    let path = symbols.join(&kept);
    if !path.exists() {
        make_parent(&path)?;
        fs::copy(file, &path)?;
    }
    let (link, up) = (symbols.join(name), "../".repeat(name.matches('/').count()));
    let target = PathBuf::from(up + &kept);
    if fs::read_link(&link).is_ok_and(|old| old == target) {
        return Ok(());
    }
    make_parent(&link)?;
    in_one_step(&link, |temporary| symlink(&target, temporary))?;
    Ok(())
}

fn make_parent(path: &Path) -> io::Result<()> {
    path.parent().map_or(Ok(()), fs::create_dir_all)
}

/// Gives a file new content in one step, so that a machine that boots meanwhile gets either; leaves it alone if it has
/// that content.
fn replace(path: &Path, content: &[u8]) -> io::Result<()> {
    if fs::read(path).is_ok_and(|old| old == content) {
        return Ok(());
    }
    in_one_step(path, |temporary| fs::write(temporary, content))
}

/// The same for a file that nobody but its owner can read: it holds the keys of the remote shell.
fn replace_private(path: &Path, content: &[u8]) -> io::Result<()> {
    if fs::read(path).is_ok_and(|old| old == content) {
        return Ok(());
    }
    in_one_step(path, |temporary| remote::write_private(temporary, content))
}

/// Makes a file under another name first.
fn in_one_step(path: &Path, make: impl FnOnce(&Path) -> io::Result<()>) -> io::Result<()> {
    let temporary = path.with_extension(std::process::id().to_string());
    make(&temporary)?;
    fs::rename(&temporary, path)
}
