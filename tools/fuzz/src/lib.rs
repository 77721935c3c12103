//! Fuzz targets: all that reads bytes from outside its own process, each as a function over any bytes.
//!
//! A target takes its bytes apart into what somebody hostile does (frames and datagrams, time between them, what a device
//! leaves in the rings), does that to the code that runs in the guest, and panics if a promise of that code is broken. Nothing
//! in it depends on anything but the bytes. So `./run.sh test` runs the same functions over the corpus and over its
//! variations, and `./run.sh soak 10 fuzz` has libFuzzer look for bytes that reach further. A new target is a function and a row of
//! [`TARGETS`].
#![forbid(unsafe_code)]

mod target;
mod wire;

/// A reader of bytes from outside.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// The soak of it is called this, behind `fuzz-`; the directory of its corpus, too.
    pub name: &'static str,
    /// Takes any bytes; panics if a promise is broken.
    pub run: fn(&[u8]),
}

/// All of them.
pub const TARGETS: &[Target] = &[
    Target {
        name: "archive",
        run: target::archive::run,
    },
    Target {
        name: "boot",
        run: target::boot::run,
    },
    Target {
        name: "image",
        run: target::image::run,
    },
    Target {
        name: "network",
        run: target::network::run,
    },
    Target {
        name: "pci",
        run: target::pci::run,
    },
    Target {
        name: "remote-client",
        run: target::remote_client::run,
    },
    Target {
        name: "remote-server",
        run: target::remote_server::run,
    },
    Target {
        name: "samples",
        run: target::samples::run,
    },
    Target {
        name: "settings",
        run: target::settings::run,
    },
    Target {
        name: "virtio",
        run: target::virtio::run,
    },
];

/// The target of this name.
#[must_use]
pub fn find(name: &str) -> Option<Target> {
    TARGETS.iter().find(|target| target.name == name).copied()
}
