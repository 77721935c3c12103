//! Images whose boot archive is another than the builder made: damaged, or with another configuration.

use std::fs;

use anyhow::{Context as _, Result};
use ipc::bootfs::{Bootfs, SYSTEM, fields};
use ipc::proto::system::SystemConfig;

use crate::build::Image;
use crate::remote;
use crate::test::Context;

/// The shipped image with a changed archive, or none. The archive is written to a file of this name and stays there.
///
/// # Errors
/// If there is no image, or the file cannot be written.
pub fn changed(
    context: &Context<'_>,
    name: &str,
    change: impl FnOnce(&[u8]) -> Option<Vec<u8>>,
) -> Result<Image> {
    changed_image(context, context.image()?, name, change)
}

/// This image with another configuration, which must be as long as its own. The archive is written to a file of this name.
///
/// # Errors
/// If it cannot be changed, or the file cannot be written.
pub fn reconfigured(
    context: &Context<'_>,
    image: &Image,
    name: &str,
    change: impl FnOnce(&mut SystemConfig),
) -> Result<Image> {
    let image = changed_image(context, image, name, |bytes| {
        with_system(bytes, |data| {
            let mut config: SystemConfig = postcard::from_bytes(data).ok()?;
            change(&mut config);
            let changed = postcard::to_stdvec(&config).ok()?;
            (changed.len() == data.len()).then(|| data.copy_from_slice(&changed))
        })
    })?;
    image.bootfs.as_ref().context("it cannot be changed so")?;
    Ok(image)
}

fn changed_image(
    context: &Context<'_>,
    image: &Image,
    name: &str,
    change: impl FnOnce(&[u8]) -> Option<Vec<u8>>,
) -> Result<Image> {
    let good = image
        .bootfs
        .as_ref()
        .map(fs::read)
        .transpose()?
        .unwrap_or_default();
    let mut bootfs = None;
    if let Some(bytes) = change(&good) {
        let directory = context.workspace.target.join("system-tests");
        fs::create_dir_all(&directory)?;
        let path = directory.join(format!("bootfs-{name}"));
        remote::write_private(&path, &bytes)?;
        bootfs = Some(path);
    }
    Ok(Image {
        kernel: image.kernel.clone(),
        bootfs,
    })
}

/// The archive with other bytes as its configuration, and their sum. None if they cannot be changed.
pub fn with_system(bytes: &[u8], change: impl FnOnce(&mut [u8]) -> Option<()>) -> Option<Vec<u8>> {
    let file = Bootfs::parse(bytes).ok()?.find(SYSTEM)?;
    let header = |data: &[u8]| {
        let fields = fields(SYSTEM, data).map(|field| format!("{field:08x}"));
        format!("{}{SYSTEM}\0", fields.concat()).into_bytes()
    };
    let old = header(file.data);
    let at = bytes.windows(old.len()).position(|part| part == old)?;
    let mut bytes = bytes.to_vec();
    let data = file.offset..file.offset + file.data.len();
    change(&mut bytes[data.clone()])?;
    let new = header(&bytes[data]);
    bytes[at..at + new.len()].copy_from_slice(&new);
    Some(bytes)
}
