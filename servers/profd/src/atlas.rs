//! From a process and an address to an image and an address in its file.

use alloc::format;
use alloc::string::String;

use crate::catalog::{Catalog, ImageId, base_name};
use crate::image::ImageError;
use crate::process::Processes;
use crate::symbols::SymbolId;
use crate::unwind::Rule;

/// What an address belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Space {
    /// An image. Processes that run the same one share its code, and so its lines in a report.
    Image(ImageId),
    /// A process whose image is not known, not there, or of another build.
    Process(u32),
}

/// An address in a space; in an image, as its file counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// Where it belongs.
    pub space: Space,
    /// The address.
    pub address: u64,
}

/// A process's space and where it was loaded.
#[derive(Clone, Copy, Debug)]
pub struct Owner {
    space: Space,
    load_bias: u64,
}

impl Owner {
    /// The place of an address that this process executed, in the kernel or in itself.
    #[must_use]
    pub const fn place(self, address: u64) -> Place {
        if is_kernel(address) {
            return Place {
                space: Space::Image(ImageId::KERNEL),
                address,
            };
        }
        Place {
            space: self.space,
            address: address.wrapping_sub(self.load_bias),
        }
    }

    /// The place of an address that its program jumped to, which may be one that it cannot execute.
    #[must_use]
    pub const fn jumped_to(self, address: u64) -> Place {
        if is_kernel(address) {
            return Place {
                space: self.space,
                address,
            };
        }
        self.place(address)
    }
}

/// Whether an address is in the kernel's half.
pub(crate) const fn is_kernel(address: u64) -> bool {
    address >> 63 == 1
}

/// The images, and who runs them.
#[derive(Clone, Copy, Debug)]
pub struct Atlas<'c, 'a> {
    /// Images in the boot archive.
    pub catalog: &'c Catalog<'a>,
    /// Processes that init told of.
    pub processes: &'c Processes,
}

impl<'c> Atlas<'c, '_> {
    /// Reads the files of the kernel and of all that runs, so that a profile does not measure that.
    pub fn prepare(&self) {
        let running = self
            .processes
            .live()
            .filter_map(|pid| self.image_of(pid).ok());
        for image in running.chain([ImageId::KERNEL]) {
            if let Ok(image) = self.catalog.image(image) {
                image.prepare();
            }
        }
    }

    /// ``image`function+0xoffset`` for an address of a process or of the kernel; `None` if it has no function. A return address
    /// belongs to the call before it.
    #[must_use]
    pub fn locate(&self, pid: u32, address: u64, is_return: bool) -> Option<String> {
        let place = self.owner(pid).place(address);
        let Space::Image(image) = place.space else {
            return None;
        };
        let (symbol, offset) = self.code_at(place, is_return)?;
        let name = self.catalog.symbol_name(image, symbol);
        Some(format!("{}`{name}+{offset:#x}", self.catalog.name(image)))
    }

    /// The function at a place, and how far into it the place is; for a return address, the function that calls.
    #[must_use]
    pub fn code_at(&self, place: Place, is_return: bool) -> Option<(SymbolId, u64)> {
        // The call can be the last instruction of its function.
        let back = u64::from(is_return);
        let looked_up = Place {
            address: place.address.wrapping_sub(back),
            ..place
        };
        let (symbol, offset) = self.function(looked_up)?;
        Some((symbol, offset + back))
    }

    /// Whose code a process runs.
    #[must_use]
    pub fn owner(&self, pid: u32) -> Owner {
        let unknown = Owner {
            space: Space::Process(pid),
            load_bias: 0,
        };
        let Some(process) = self.processes.get(pid) else {
            return unknown;
        };
        match self.image_of(pid) {
            Ok(image) => Owner {
                space: Space::Image(image),
                load_bias: process.load_bias,
            },
            Err(_) => unknown,
        }
    }

    /// The image that a process runs.
    ///
    /// # Errors
    /// The process is not known, its image is not there, or the file is of another build.
    pub fn image_of(&self, pid: u32) -> Result<ImageId, ImageError> {
        let process = self.processes.get(pid).ok_or(ImageError::Missing)?;
        let id = self
            .catalog
            .find(&process.image)
            .ok_or(ImageError::Missing)?;
        let there = self.catalog.image(id).ok().and_then(|image| image.build_id);
        match there {
            Some(there) if !process.is_build(there) => Err(ImageError::OtherBuild),
            _ => Ok(id),
        }
    }

    /// Name of the image that a space belongs to, as the report prints it; `None` if nothing is known of the process.
    #[must_use]
    pub fn space_name(&self, space: Space) -> Option<&'c str> {
        match space {
            Space::Image(image) => Some(self.catalog.name(image)),
            Space::Process(pid) => self
                .processes
                .get(pid)
                .map(|process| base_name(&process.image)),
        }
    }

    /// Why a space has no symbols, if it has none.
    #[must_use]
    pub fn problem(&self, space: Space) -> Option<ImageError> {
        match space {
            Space::Image(image) => self.catalog.image(image).err(),
            Space::Process(pid) => self.image_of(pid).err(),
        }
    }

    /// The function at a place, and how far into it the place is.
    #[must_use]
    pub fn function(&self, place: Place) -> Option<(SymbolId, u64)> {
        let Space::Image(image) = place.space else {
            return None;
        };
        self.catalog.image(image).ok()?.symbols.find(place.address)
    }

    /// How the return address is found at a place.
    #[must_use]
    pub fn rule(&self, place: Place) -> Rule {
        let Space::Image(image) = place.space else {
            return Rule::Unknown;
        };
        self.catalog
            .image(image)
            .map_or(Rule::Unknown, |image| image.rule(place.address))
    }

    /// Whether a place is in an image's code.
    #[must_use]
    pub fn is_code(&self, place: Place) -> bool {
        let Space::Image(image) = place.space else {
            return false;
        };
        self.catalog
            .image(image)
            .is_ok_and(|image| image.is_code(place.address))
    }
}
