//! The images that the boot archive holds, by name. Each is indexed when it is first asked about, and once.

use alloc::string::String;
use alloc::vec::Vec;
use core::cell::OnceCell;

use ipc::bootfs::File;

use crate::image::{Image, ImageError};
use crate::symbols::SymbolId;
use ipc::name::{KERNEL_CRATES, display_name};

/// An image, by its number in the catalog.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ImageId(u16);

impl ImageId {
    /// The kernel, whether or not the archive holds its file.
    pub const KERNEL: Self = Self(0);
}

/// Where the bytes of an ELF file are.
#[derive(Clone, Copy, Debug)]
pub enum Content<'a> {
    /// In the boot archive, which has a sum over them.
    File(File<'a>),
    /// Somewhere, and nobody vouches for them.
    Bytes(&'a [u8]),
}

impl<'a> Content<'a> {
    /// The bytes, if they add up.
    fn checked(self) -> Result<&'a [u8], ImageError> {
        match self {
            Self::File(file) => file
                .verify()
                .map(|()| file.data)
                .map_err(|_| ImageError::Damaged),
            Self::Bytes(bytes) => Ok(bytes),
        }
    }
}

/// Every image.
#[derive(Debug)]
pub struct Catalog<'a> {
    entries: Vec<Entry<'a>>,
}

#[derive(Debug)]
struct Entry<'a> {
    name: String,
    content: Option<Content<'a>>,
    image: OnceCell<Result<Image<'a>, ImageError>>,
}

impl<'a> Catalog<'a> {
    /// A catalog with the kernel's ELF file, if there is one.
    #[must_use]
    pub fn new(kernel: Option<Content<'a>>) -> Self {
        let kernel = Entry {
            name: "kernel".into(),
            content: kernel,
            image: OnceCell::new(),
        };
        Self {
            entries: alloc::vec![kernel],
        }
    }

    /// Adds the ELF file of a program. A name that is there already, or one more image than can be numbered, is not added.
    pub fn add(&mut self, file: &str, content: Content<'a>) {
        if self.find(file).is_none() && self.entries.len() < usize::from(u16::MAX) {
            let name = base_name(file).into();
            self.entries.push(Entry {
                name,
                content: Some(content),
                image: OnceCell::new(),
            });
        }
    }

    /// The image of a program's file, by the last part of its path. The kernel is none, whatever a program is called.
    #[must_use]
    pub fn find(&self, file: &str) -> Option<ImageId> {
        let name = base_name(file);
        let programs = self.entries.iter().enumerate().skip(1);
        let (index, _) = programs.into_iter().find(|(_, entry)| entry.name == name)?;
        u16::try_from(index).ok().map(ImageId)
    }

    /// Its name, as the report prints it.
    #[must_use]
    pub fn name(&self, image: ImageId) -> &str {
        &self.entries[usize::from(image.0)].name
    }

    /// Its content.
    ///
    /// # Errors
    /// The file is missing or cannot be read; see [`ImageError`].
    pub fn image(&self, image: ImageId) -> Result<&Image<'a>, ImageError> {
        let entry = &self.entries[usize::from(image.0)];
        let parse = || {
            entry
                .content
                .ok_or(ImageError::Missing)?
                .checked()
                .and_then(Image::parse)
        };
        entry
            .image
            .get_or_init(parse)
            .as_ref()
            .map_err(|&error| error)
    }

    /// The name to print for one of its functions; empty if the image cannot be read.
    #[must_use]
    pub fn symbol_name(&self, image: ImageId, symbol: SymbolId) -> String {
        let Ok(content) = self.image(image) else {
            return String::new();
        };
        let raw = content.symbols.raw_name(symbol);
        match image {
            ImageId::KERNEL => display_name(raw, &KERNEL_CRATES),
            _ => display_name(raw, &[&crate_name(self.name(image))]),
        }
    }
}

/// Last part of a path in the boot archive.
#[must_use]
pub fn base_name(file: &str) -> &str {
    file.rsplit('/').next().unwrap_or(file)
}

/// The crate of a binary: its name, in which a crate has `_` for `-`.
fn crate_name(image: &str) -> String {
    image.replace('-', "_")
}
