//! The walkthroughs of `docs/write-a-program.md` and `docs/write-a-server.md`, command by command, in a copy of the tree.
//!
//! A block of a page is a session. Lines that begin with `$` are typed to the host and those that begin with `>` to the guest; what
//! follows a command is what it prints, but for the numbers that differ from one run to the next, which `page` names. Of a profile,
//! the functions named must be in the report: their order and shares are not the page's to promise. What is made is checked as all
//! code is, by clippy and by its own tests, and by what holds the pages to the code.

mod page;
mod tree;

use anyhow::{Context as _, Result, bail, ensure};

use crate::build::{self, Image};
use crate::cli::BootOptions;
use crate::new::{self, Kind};
use crate::test::{Case, Context, Verdict, docs_cases, output, succeed};
use crate::workspace::Workspace;

use super::session::Session;
use page::{Command, Page};
use tree::Tree;

/// The pages, in the order in which they are walked.
const PAGES: [&str; 2] = ["docs/write-a-program.md", "docs/write-a-server.md"];
/// Packages in which `new` makes what the pages ask for: the program's, and the server's own.
const PACKAGES: [&str; 2] = ["programs", "tally"];

/// The tests.
pub fn cases<'a>(context: &'a Context<'_>) -> Vec<Case<'a>> {
    vec![Case::new("the_walkthroughs_are_true", || walk(context))]
}

fn walk(context: &Context<'_>) -> Verdict {
    let folder = context.workspace.target.join("walkthrough");
    let tree = Tree::copy(&context.workspace.root, &folder.join("tree"))?;
    let workspace = context
        .workspace
        .elsewhere(tree.root(), &folder.join("target"));
    let pages = PAGES.map(|path| Page::read(&workspace.root.join(path)));
    let pages: Vec<Page> = pages.into_iter().collect::<Result<_>>()?;
    // Everything is made before anything is built, so that there is one build.
    for command in pages.iter().flat_map(Page::commands) {
        if let Some(arguments) = command.typed.strip_prefix("$ ./run.sh new ") {
            command.check(&make(&workspace, arguments)?, 0)?;
        }
    }
    tree.keep_times()?;
    for case in docs_cases(&workspace.root) {
        (case.body)().with_context(|| case.name)?;
    }
    let image = build::build(&workspace, &build::SHIPPED)?;
    for (index, page) in pages.iter().enumerate() {
        let servers = pages[index + 1..].iter().map(Page::servers).sum();
        for command in page.commands() {
            if let Some(arguments) = command.typed.strip_prefix("$ cargo test ") {
                test(&workspace, arguments, command).with_context(|| command.typed.clone())?;
            }
        }
        page.sessions()
            .try_for_each(|session| boot(&image, session, servers))?;
    }
    if workspace.bare_is_native() {
        let mut clippy = workspace.bare_cargo("clippy");
        clippy.arg("--quiet");
        for package in PACKAGES {
            clippy.args(["--package", package]);
        }
        succeed(clippy.args(["--", "-D", "warnings"]))?;
    }
    Ok(())
}

/// Does what `./run.sh new` does.
fn make(workspace: &Workspace, arguments: &str) -> Result<String> {
    match arguments.split_once(' ') {
        None => new::make(&workspace.root, arguments, Kind::Program),
        Some((name, "--server")) => new::make(&workspace.root, name, Kind::Server),
        Some(_) => bail!("`new {arguments}` is not a command"),
    }
}

/// Runs tests, at least one of which the page must show.
fn test(workspace: &Workspace, arguments: &str, command: &Command) -> Verdict {
    ensure!(!command.printed.is_empty(), "the page shows no test");
    let printed = output(workspace.cargo("test").args(arguments.split(' ')))?;
    command.check(&printed, 0)
}

/// Types a session to a machine with so many servers that the page knows nothing of.
fn boot(image: &Image, commands: &[Command], servers: usize) -> Verdict {
    let mut session = Session::boot_image(image, BootOptions::default())?;
    for command in commands {
        let Some(line) = command.typed.strip_prefix("> ") else {
            continue;
        };
        if line == "poweroff" {
            return session.power_off();
        }
        // A program in the background is seen by a profile once its time slice came, which is long before the end of one.
        let printed = session.run(line)?;
        command
            .check(&printed, servers)
            .with_context(|| format!("`{line}` printed:\n{printed}"))?;
    }
    bail!("the page's session does not end with `poweroff`")
}
