//! The programs' files in the boot archive, each checked before its first start.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use ipc::bootfs::{Bootfs, FILES_MAX, File, PROGRAM_SYMBOLS, PROGRAMS};
use ipc::proto::system::Program;
use ipc::symtab::SymbolTable;

use crate::launch::LaunchError;

/// The archive, and what was found of it so far.
pub(crate) struct Images<'a> {
    archive: Bootfs<'a>,
    /// Numbers of the images that were found whole.
    whole: Vec<u32>,
}

impl<'a> Images<'a> {
    /// Those of an archive, none of them checked.
    pub(crate) fn new(archive: Bootfs<'a>) -> Self {
        Self {
            archive,
            whole: Vec::with_capacity(FILES_MAX),
        }
    }

    /// A file of the archive, and its number as an image: its place among the files, from 1. The kernel's image is 0.
    pub(crate) fn find(&self, path: &str) -> Option<(File<'a>, u32)> {
        self.archive
            .files()
            .zip(1..)
            .find(|(file, _)| file.name == path)
    }

    /// Checks the content of an image before its first start: nobody writes to the archive, so that once is enough.
    pub(crate) fn verify(&mut self, file: &File<'_>, number: u32) -> Result<(), LaunchError> {
        if !self.whole.contains(&number) {
            file.verify().map_err(|_| LaunchError::Damaged)?;
            self.whole.push(number);
        }
        Ok(())
    }

    /// The symbol table of the program with this file.
    pub(crate) fn symbols(&self, path: &str) -> Option<SymbolTable<'a>> {
        let path = format!("{PROGRAM_SYMBOLS}{}", path.strip_prefix(PROGRAMS)?);
        SymbolTable::parse(self.archive.find(&path)?.data).ok()
    }

    /// Names of the programs that have a file.
    pub(crate) fn programs(&self) -> impl Iterator<Item = &'a str> {
        let files = self.archive.files();
        files.filter_map(|file| file.name.strip_prefix(PROGRAMS))
    }
}

/// The file of a program of this name: its entry's, unless that is the default one.
pub(crate) fn path(program: &Program, name: &str) -> String {
    if program.image.is_empty() {
        format!("{PROGRAMS}{name}")
    } else {
        program.image.clone()
    }
}
