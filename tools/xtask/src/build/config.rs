//! Reads `system.toml`. Every mistake in it is found when the image is built, and named with its line: in the guest nobody
//! could mend it.

use std::fmt;

use ipc::proto::system::{
    DeviceRange, OnDeath, PciFunction, PortRange, Program, Start, SystemConfig, SystemRight,
};
use serde::Deserialize;
use toml::Spanned;

use super::config_check;

/// A mistake in the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mistake {
    /// Line, from 1.
    pub line: usize,
    /// What is wrong, and what is allowed.
    pub what: String,
}

impl Mistake {
    /// The error to show for the file with this name.
    #[must_use]
    pub fn in_file(&self, name: &str) -> anyhow::Error {
        anyhow::anyhow!("{name}:{self}")
    }
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.line, self.what)
    }
}

/// The file as written, with the place of each value that a rule may object to.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    #[serde(default)]
    program: Vec<Spanned<Entry>>,
}

/// One `[[program]]`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entry {
    pub name: Spanned<String>,
    pub image: Option<Spanned<String>>,
    pub start: Spanned<Start>,
    pub priority: Spanned<u8>,
    pub memory_kib: Spanned<u32>,
    pub stack_kib: Spanned<u32>,
    #[serde(default)]
    pub serves: Vec<Spanned<String>>,
    #[serde(default)]
    pub calls: Vec<Spanned<String>>,
    #[serde(default)]
    pub ports: Vec<Spanned<Ports>>,
    #[serde(default)]
    pub interrupts: Vec<Spanned<u32>>,
    #[serde(default)]
    pub device_memory: Vec<Spanned<Device>>,
    pub pci: Option<Pci>,
    #[serde(default)]
    pub profiler: bool,
    #[serde(default)]
    pub bootfs: bool,
    #[serde(default)]
    pub log: bool,
    #[serde(default)]
    pub system: Vec<SystemRight>,
    pub on_death: OnDeath,
}

/// I/O ports as written.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ports {
    pub first: u16,
    pub count: u16,
}

/// Device memory as written.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Device {
    pub base: u64,
    pub bytes: u64,
}

/// A PCI function as written.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pci {
    pub vendor: Spanned<u16>,
    pub devices: Spanned<Vec<u16>>,
    pub vectors: Spanned<u8>,
    pub dma_kib: Spanned<u32>,
}

/// A file whose every rule holds, but for the images it names, which may not have been built yet.
#[derive(Debug)]
pub struct SystemFile<'a> {
    text: &'a str,
    entries: Vec<Spanned<Entry>>,
}

impl<'a> SystemFile<'a> {
    /// Reads and checks the text.
    ///
    /// # Errors
    /// The first mistake.
    pub fn parse(text: &'a str) -> Result<Self, Mistake> {
        let document: Document = toml::from_str(text).map_err(|error| Mistake {
            line: line_of(text, error.span().map_or(0, |span| span.start)),
            what: error.message().to_owned(),
        })?;
        let entries = document.program;
        let file = Self { text, entries };
        config_check::check(&file.entries).map_err(|objection| file.mistake(objection))?;
        Ok(file)
    }

    /// The configuration for an archive with these images.
    ///
    /// # Errors
    /// If a program's image is not among them.
    pub fn compile(&self, images: &[String]) -> Result<SystemConfig, Mistake> {
        config_check::check_images(&self.entries, images)
            .map_err(|objection| self.mistake(objection))?;
        let programs = self
            .entries
            .iter()
            .map(|entry| compile(entry.get_ref()))
            .collect();
        Ok(SystemConfig { programs })
    }

    fn mistake(&self, objection: config_check::Objection) -> Mistake {
        Mistake {
            line: line_of(self.text, objection.at),
            what: objection.what,
        }
    }
}

/// The line, from 1, that holds a byte.
fn line_of(text: &str, at: usize) -> usize {
    let before = text.as_bytes().iter().take(at);
    1 + before.filter(|&&byte| byte == b'\n').count()
}

fn compile(entry: &Entry) -> Program {
    let names = |list: &[Spanned<String>]| list.iter().map(|name| name.get_ref().clone()).collect();
    let ports = entry.ports.iter().map(Spanned::get_ref);
    let devices = entry.device_memory.iter().map(Spanned::get_ref);
    Program {
        name: entry.name.get_ref().clone(),
        image: entry
            .image
            .as_ref()
            .map(|image| image.get_ref().clone())
            .unwrap_or_default(),
        start: *entry.start.get_ref(),
        priority: *entry.priority.get_ref(),
        memory_kib: *entry.memory_kib.get_ref(),
        stack_kib: *entry.stack_kib.get_ref(),
        serves: names(&entry.serves),
        calls: names(&entry.calls),
        ports: ports
            .map(|&Ports { first, count }| PortRange { first, count })
            .collect(),
        interrupts: entry
            .interrupts
            .iter()
            .map(|line| *line.get_ref())
            .collect(),
        device_memory: devices
            .map(|&Device { base, bytes }| DeviceRange { base, bytes })
            .collect(),
        pci: entry.pci.as_ref().map(|pci| PciFunction {
            vendor: *pci.vendor.get_ref(),
            devices: pci.devices.get_ref().clone(),
            vectors: *pci.vectors.get_ref(),
            dma_kib: *pci.dma_kib.get_ref(),
        }),
        profiler: entry.profiler,
        bootfs: entry.bootfs,
        log: entry.log,
        system: entry.system.clone(),
        on_death: entry.on_death,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ipc::proto::system::DEFAULT;

    const REAL: &str = include_str!("../../../../system.toml");

    fn images() -> Vec<String> {
        [
            "init", "console", "profd", "shell", "net", "session", "netload", "front", "relay",
            "back",
        ]
        .map(|name| format!("bin/{name}"))
        .into()
    }

    /// The mistake found after replacing a piece of the real file, and the line of that piece.
    fn mistake(piece: &str, new: &str) -> (Mistake, usize) {
        let (start, _) = REAL.match_indices("\n[[program]]").next().unwrap();
        let at = REAL[start..].find(piece).map(|at| start + at);
        let at = at.unwrap_or_else(|| panic!("no {piece:?} in system.toml"));
        let text = [&REAL[..at], new, &REAL[at + piece.len()..]].concat();
        let result = SystemFile::parse(&text).and_then(|file| file.compile(&images()));
        (result.expect_err(new), line_of(REAL, at))
    }

    #[test]
    fn the_real_file_is_right() {
        let config = SystemFile::parse(REAL).unwrap().compile(&images()).unwrap();
        let profd = config.entry("profd").unwrap();
        assert!(profd.profiler && profd.bootfs);
        assert!(
            config
                .programs
                .iter()
                .all(|program| program.priority <= profd.priority)
        );
        assert!(
            config
                .programs
                .iter()
                .all(|program| program.profiler == (program.name == "profd"))
        );
        let default = config.entry("spin").unwrap();
        assert_eq!(default.name, DEFAULT);
        assert!(default.system_rights().is_empty() && default.calls.is_empty());
    }

    #[test]
    fn every_mistake_is_named_with_its_line() {
        for (piece, new, says) in [
            (
                "profiler = true",
                "profiller = true",
                "unknown field `profiller`",
            ),
            ("profiler = true", "profiler = 1", "expected a boolean"),
            ("profiler = true", "profiler = ", ""),
            (
                "start = \"boot\"",
                "start = \"never\"",
                "unknown variant `never`",
            ),
            (
                "[\"console\", \"init\", \"net\", \"profd\", \"remote\"]",
                "[\"console\", \"nobody\"]",
                "no program serves `nobody`",
            ),
            (
                "name = \"profd\"",
                "name = \"console\"",
                "`console` has an entry already",
            ),
            ("name = \"profd\"", "name = \"Profd\"", "a-z"),
            (
                "name = \"profd\"",
                "name = \"a-very-long-name-\"",
                "1 to 16",
            ),
            (
                "serves = [\"profd\"]",
                "serves = [\"init\"]",
                "`init` is served by",
            ),
            ("priority = 28", "priority = 32", "0 to 31"),
            ("memory_kib = 512", "memory_kib = 8", "64 to"),
            ("memory_kib = 512", "memory_kib = 513", "multiple of 4"),
            ("memory_kib = 512", "memory_kib = 4294967296", ""),
            ("stack_kib = 128", "stack_kib = 4096", "half of memory_kib"),
            ("stack_kib = 128", "stack_kib = 4", "8 to"),
            ("stack_kib = 128", "stack_kib = 2036", "8 to 2032"),
            (
                "image = \"bin/profd\"",
                "image = \"bin/prof\"",
                "no `bin/prof` in the boot archive",
            ),
            ("count = 8", "count = 0", "at least one port"),
            ("first = 0x3f8", "first = 0xfffc", "0xffff"),
            (
                "interrupts = [4]",
                "interrupts = [4, 4]",
                "interrupt 4 belongs to",
            ),
            ("interrupts = [4]", "interrupts = [300]", "0 to 191"),
            (
                "interrupts = [4]",
                "device_memory = [{ base = 1, bytes = 4096 }]",
                "whole pages",
            ),
            (
                "interrupts = [4]",
                "device_memory = [{ base = 0, bytes = 0 }]",
                "whole pages",
            ),
            (
                "interrupts = [4]",
                "device_memory = [{ base = 0x0fff_ffff_f000, bytes = 0x2000 }]",
                "below 16 TiB",
            ),
            (
                "interrupts = [4]",
                "pci = { vendor = 0xffff, devices = [1], vectors = 1, dma_kib = 4 }",
                "0 to 0xfffe",
            ),
            (
                "interrupts = [4]",
                "pci = { vendor = 1, devices = [], vectors = 1, dma_kib = 4 }",
                "at least one device",
            ),
            (
                "interrupts = [4]",
                "pci = { vendor = 1, devices = [1], vectors = 9, dma_kib = 4 }",
                "1 to 8",
            ),
            (
                "interrupts = [4]",
                "pci = { vendor = 1, devices = [1], vectors = 1, dma_kib = 6 }",
                "4 to 4096, a multiple of 4",
            ),
            (
                "interrupts = [4]",
                "pci = { vendor = 1, devices = [1], vectors = 1 }",
                "missing field `dma_kib`",
            ),
            (
                "start = \"demand\"",
                "start = \"boot\"",
                "`default` starts on demand",
            ),
        ] {
            let (mistake, line) = mistake(piece, new);
            assert_eq!(mistake.line, line, "{new}: {mistake}");
            assert!(mistake.what.contains(says), "{new}: {mistake}");
        }
    }

    #[test]
    fn the_page_gives_the_numbers_of_the_rules() {
        use ipc::proto::system::{DMA_KIB_MAX, VECTORS_MAX};

        use config_check::{MEMORY_KIB_MAX, MEMORY_KIB_MIN, STACK_KIB_MAX, STACK_KIB_MIN};
        let page = include_str!("../../../../docs/building.md");
        let name = format!("`name` | unique; 1 to {} of ", ipc::abi::layout::NAME_MAX);
        let priority = ipc::proto::system::PRIORITY_MAX;
        let priority = format!("`priority` | 0 (lowest) to {priority} |");
        let lines = ipc::abi::layout::INTERRUPTS - 1;
        for row in [
            name,
            priority,
            format!(
                "`memory_kib` | quota in KiB, a multiple of 4, {MEMORY_KIB_MIN} to {MEMORY_KIB_MAX};"
            ),
            format!(
                "`stack_kib` | stack of the first thread in KiB, a multiple of 4, {STACK_KIB_MIN} to {STACK_KIB_MAX},"
            ),
            format!("`interrupts` | interrupt lines, 0 to {lines} |"),
            format!("`vectors` 1 to {VECTORS_MAX}, `dma_kib` 4 to {DMA_KIB_MAX} |"),
        ] {
            assert!(page.contains(&row), "no {row}");
        }
    }

    #[test]
    fn required_entries_are_missed() {
        for (name, line) in [("default", 1), ("init", 1)] {
            let text = REAL.replace(&format!("name = \"{name}\""), "name = \"other\"");
            let mistake = SystemFile::parse(&text).expect_err(name);
            assert_eq!(mistake.line, line);
            assert!(mistake.what.contains(name), "{mistake}");
        }
        let without = REAL.replace("image = \"bin/console\"\n", "");
        let mistake = SystemFile::parse(&without).expect_err("no image");
        assert!(mistake.what.contains("image"), "{mistake}");
    }

    #[test]
    fn a_pci_function_has_one_driver() {
        let pci = |devices: &str| {
            format!("pci = {{ vendor = 1, devices = {devices}, vectors = 1, dma_kib = 4 }}")
        };
        let console = REAL.replace("interrupts = [4]", &pci("[1, 2]"));
        for (devices, taken) in [("[3, 2]", true), ("[3]", false)] {
            let text = console.replace("profiler = true", &pci(devices));
            let mistake = SystemFile::parse(&text).err();
            let named = mistake.is_some_and(|it| it.what.contains("belongs to `console`"));
            assert_eq!(named, taken, "{devices}");
        }
    }

    #[test]
    fn ranges_must_not_overlap() {
        let (mistake, _) = mistake(
            "calls = [\"init\"]",
            "calls = [\"init\"]\nports = [{ first = 0x3f0, count = 9 }]",
        );
        assert!(mistake.what.contains("belong to `console`"), "{mistake}");
        let device = |base: &str| format!("device_memory = [{{ base = {base}, bytes = 0x3000 }}]");
        let other = REAL.replace("interrupts = [4]", &device("0xfed0_0000"));
        for (base, overlaps) in [("0xfed0_2000", true), ("0xfed0_3000", false)] {
            let text = other.replace("profiler = true", &device(base));
            let mistake = SystemFile::parse(&text).err();
            let named = mistake.is_some_and(|it| it.what.contains("belongs to `console`"));
            assert_eq!(named, overlaps, "{base}");
        }
    }
}
