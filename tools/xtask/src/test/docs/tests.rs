//! Each check finds what it is there for, in a copy of the pages with one mistake.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;

use super::{Check, Sources, links, numbers};
use crate::workspace::Workspace;

/// The tree with pages of its own; all else leads to the real one.
struct Tree(PathBuf);

impl Tree {
    fn new() -> Self {
        let root = Workspace::find().unwrap().root;
        let tree = Self(std::env::temp_dir().join(format!("sonde-docs-{}", std::process::id())));
        fs::create_dir_all(tree.0.join("docs")).unwrap();
        for name in Sources(&root).names("".as_ref()).unwrap() {
            if name != "docs" && name != "README.md" {
                symlink(root.join(&name), tree.0.join(&name)).unwrap();
            }
        }
        for page in Sources(&root).pages().unwrap() {
            fs::copy(root.join(&page), tree.0.join(&page)).unwrap();
        }
        tree
    }
}

impl Drop for Tree {
    fn drop(&mut self) {
        // A folder that stays behind does no harm.
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn each_check_finds_what_it_is_there_for() {
    let tree = Tree::new();
    let mistakes: [(Check, _, _, _, _); 9] = [
        (
            links::links,
            "README.md",
            "](docs/shell.md)",
            "](docs/shelf.md)",
            "docs/shelf.md",
        ),
        (
            links::links,
            "docs/architecture.md",
            "#locks)",
            "#keys)",
            "kernel.md#keys",
        ),
        (
            links::pages,
            "docs/architecture.md",
            "(benchmarks.md)",
            "(abi.md)",
            "docs/benchmarks.md",
        ),
        (
            links::paths,
            "README.md",
            "`tools/xtask/`",
            "`tools/xtusk/`",
            "tools/xtusk/",
        ),
        (
            numbers::limits,
            "docs/limits.md",
            "| CPUs | 64 |",
            "| CPUs | 65 |",
            "CPUs: 65",
        ),
        (
            numbers::limits,
            "docs/kernel.md",
            "| declared as |",
            "| constant |",
            "docs/kernel.md",
        ),
        (
            numbers::contract,
            "docs/limits.md",
            "`PAYLOAD_MAX`",
            "`WORDS`",
            "PAYLOAD_MAX",
        ),
        (
            numbers::locks,
            "docs/kernel.md",
            " 1 endpoint ",
            " 1 ending ",
            "1 ending",
        ),
        (
            numbers::exit_values,
            "docs/boot.md",
            "| 0x11 | 35 |",
            "| 0x11 | 36 |",
            "0x11 36",
        ),
    ];
    for (check, page, right, mistake, says) in mistakes {
        let path = tree.0.join(page);
        let text = fs::read_to_string(&path).unwrap();
        assert!(text.contains(right), "{page}: no {right}");
        assert_eq!(check(&Sources(&tree.0)).unwrap(), Vec::<String>::new());
        fs::write(&path, text.replace(right, mistake)).unwrap();
        let wrong = check(&Sources(&tree.0)).unwrap().join("\n");
        assert!(wrong.contains(says), "{mistake}: {wrong:?}");
        fs::write(&path, text).unwrap();
    }
    let map = tree.0.join("docs/boot.md");
    let text = fs::read_to_string(&map).unwrap();
    fs::write(&map, text.replace("0xffffc", "0xffffb")).unwrap();
    assert_eq!(numbers::memory_maps(&Sources(&tree.0)).unwrap().len(), 1);
}
