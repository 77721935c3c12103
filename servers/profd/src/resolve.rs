//! Gives a folded table its names.
//!
//! Chains that are told apart by address can still read alike: two symbols with the same name once their hashes are
//! dropped, or two processes of which nothing but an image's name is known. Such chains are merged here, so that no two
//! printed ones look the same.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::cmp::Reverse;

use crate::account::{Ledger, Payer};
use crate::atlas::{Atlas, Place, Space};
use crate::chain::{Key, Leaf, Step as RawStep};
use crate::fold::{Table, Tally};
use crate::profile::{Account, Chain, Frame, ImageName, LeafAddress, More, Step};
use crate::symbols::SymbolId;

/// The parts of a profile that name places.
#[derive(Debug, Default)]
pub struct Resolved {
    /// See [`crate::profile::Profile::strings`].
    pub strings: Vec<String>,
    /// See [`crate::profile::Profile::accounts`].
    pub accounts: Vec<Account>,
    /// See [`crate::profile::Profile::images`].
    pub images: Vec<ImageName>,
    /// See [`crate::profile::Profile::chains`].
    pub chains: Vec<Chain>,
    /// See [`crate::profile::Profile::addresses`].
    pub addresses: Vec<LeafAddress>,
}

/// Names every place of a table, and every account of a ledger.
#[must_use]
pub fn resolve(table: &Table, ledger: Option<&Ledger>, atlas: Atlas<'_, '_>) -> Resolved {
    let accounts = accounts(ledger, atlas);
    let mut names = Names::new(atlas, &accounts);
    let mut merged: BTreeMap<Identity, Chain> = BTreeMap::new();
    for (key, tally) in table.chains() {
        let (identity, chain) = names.chain(key, tally);
        merged
            .entry(identity)
            .and_modify(|known| merge(known, &chain))
            .or_insert(chain);
    }
    let mut chains: Vec<Chain> = merged.into_values().collect();
    chains.sort_by_key(|chain| Reverse(chain.count));
    let mut addresses: BTreeMap<(u32, u64), u64> = BTreeMap::new();
    for (place, count) in table.addresses() {
        let place = names.refreshed(place);
        *addresses
            .entry((names.image(place.space), place.address))
            .or_default() += count;
    }
    let addresses = addresses.into_iter();
    let addresses = addresses
        .map(|((image, address), count)| LeafAddress {
            image,
            address,
            count,
        })
        .collect();
    let Names {
        strings, images, ..
    } = names;
    Resolved {
        strings,
        accounts,
        images,
        chains,
        addresses,
    }
}

/// Accounts with the names of their processes, the largest first.
fn accounts(ledger: Option<&Ledger>, atlas: Atlas<'_, '_>) -> Vec<Account> {
    let name = |payer| match payer {
        Payer::Process(pid) => atlas.processes.get(pid),
        Payer::Nobody | Payer::Unknown => None,
    };
    let account = |(payer, balance)| Account {
        payer,
        name: name(payer)
            .map(|process| process.name.as_str().into())
            .unwrap_or_default(),
        balance,
    };
    let ledger = ledger.into_iter().flat_map(Ledger::accounts);
    let mut accounts: Vec<Account> = ledger.map(account).collect();
    accounts.sort_by_key(|account| Reverse(account.balance.charged()));
    accounts
}

/// What a reader tells chains apart by.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Identity {
    account: Option<u32>,
    image: u32,
    symbol: Option<u32>,
    /// Of a leaf without a symbol.
    address: u64,
    steps: Vec<Step>,
    cut: bool,
}

fn merge(known: &mut Chain, other: &Chain) {
    known.count += other.count;
    known.leaf.offset = known.leaf.offset.min(other.leaf.offset);
    known.high = known.high.max(other.high);
    if let (Some(more), Some(other)) = (&mut known.more, &other.more) {
        more.least = more.least.min(other.least);
        more.most = more.most.max(other.most);
        more.open |= other.open;
    }
}

struct Names<'c, 'a> {
    atlas: Atlas<'c, 'a>,
    accounts: BTreeMap<Payer, u32>,
    strings: Vec<String>,
    known_strings: BTreeMap<String, u32>,
    images: Vec<ImageName>,
    known_spaces: BTreeMap<Space, u32>,
    known_images: BTreeMap<u32, u32>,
    known_symbols: BTreeMap<(Space, SymbolId), u32>,
}

impl<'c, 'a> Names<'c, 'a> {
    fn new(atlas: Atlas<'c, 'a>, accounts: &[Account]) -> Self {
        Self {
            atlas,
            accounts: accounts
                .iter()
                .map(|account| account.payer)
                .zip(0..)
                .collect(),
            strings: Vec::new(),
            known_strings: BTreeMap::new(),
            images: Vec::new(),
            known_spaces: BTreeMap::new(),
            known_images: BTreeMap::new(),
            known_symbols: BTreeMap::new(),
        }
    }

    fn chain(&mut self, key: &Key, tally: &Tally) -> (Identity, Chain) {
        let (leaf, high) = self.leaf(key.leaf, tally);
        let steps: Vec<Step> = key.steps.iter().map(|&step| self.step(step)).collect();
        let account = key
            .payer
            .and_then(|payer| self.accounts.get(&payer).copied());
        let identity = Identity {
            account,
            image: leaf.image,
            symbol: leaf.symbol,
            address: if leaf.symbol.is_some() {
                0
            } else {
                leaf.offset
            },
            steps: steps.clone(),
            cut: key.cut,
        };
        let (least, most) = tally.beyond;
        let more = key.cut.then_some(More {
            least,
            most,
            open: tally.open,
        });
        (
            identity,
            Chain {
                count: tally.count,
                account,
                leaf,
                high,
                steps,
                more,
            },
        )
    }

    fn leaf(&mut self, leaf: Leaf, tally: &Tally) -> (Frame, u64) {
        let place = match leaf {
            Leaf::Function(space, _) => Place {
                space,
                address: tally.low,
            },
            Leaf::Address(place) => self.refreshed(place),
        };
        let frame = self.frame(place, self.atlas.function(place));
        (frame, frame.offset + (tally.high - tally.low))
    }

    fn step(&mut self, step: RawStep) -> Step {
        match step {
            RawStep::Caller(place) => Step::Caller(self.call_site(place)),
            RawStep::Client(place) => Step::Client(self.call_site(place)),
            RawStep::Missing => Step::Missing,
            RawStep::MissingClient => Step::MissingClient,
        }
    }

    fn call_site(&mut self, place: Place) -> Frame {
        let place = self.refreshed(place);
        self.frame(place, self.atlas.code_at(place, true))
    }

    fn frame(&mut self, place: Place, function: Option<(SymbolId, u64)>) -> Frame {
        let image = self.image(place.space);
        match function {
            Some((symbol, offset)) => {
                let symbol = Some(self.symbol(place.space, symbol));
                Frame {
                    image,
                    symbol,
                    offset,
                }
            }
            None => Frame {
                image,
                symbol: None,
                offset: place.address,
            },
        }
    }

    /// A place that was folded before init told of its process may have an image by now.
    fn refreshed(&self, place: Place) -> Place {
        match place.space {
            Space::Process(pid) => self.atlas.owner(pid).place(place.address),
            Space::Image(_) => place,
        }
    }

    fn symbol(&mut self, space: Space, symbol: SymbolId) -> u32 {
        if let Some(&known) = self.known_symbols.get(&(space, symbol)) {
            return known;
        }
        let name = match space {
            Space::Image(image) => self.atlas.catalog.symbol_name(image, symbol),
            Space::Process(_) => String::new(),
        };
        let string = self.string(name);
        self.known_symbols.insert((space, symbol), string);
        string
    }

    fn image(&mut self, space: Space) -> u32 {
        if let Some(&known) = self.known_spaces.get(&space) {
            return known;
        }
        let name = match (self.atlas.space_name(space), space) {
            (Some(name), _) => name.to_string(),
            (None, Space::Process(pid)) => format!("pid{pid}"),
            (None, Space::Image(_)) => String::new(),
        };
        let name = self.string(name);
        let image = match self.known_images.get(&name) {
            Some(&image) => image,
            None => self.new_image(name, space),
        };
        self.known_spaces.insert(space, image);
        image
    }

    fn new_image(&mut self, name: u32, space: Space) -> u32 {
        let problem = self.atlas.problem(space);
        let problem = problem.map(|problem| self.string(problem.text().to_string()));
        let build_id = match space {
            Space::Image(image) => self
                .atlas
                .catalog
                .image(image)
                .ok()
                .and_then(|image| image.build_id),
            Space::Process(pid) => self
                .atlas
                .processes
                .get(pid)
                .map(|process| &process.build_id[..]),
        };
        let image = self.images.len() as u32;
        self.images.push(ImageName {
            name,
            build_id: build_id.unwrap_or_default().to_vec(),
            problem,
        });
        self.known_images.insert(name, image);
        image
    }

    fn string(&mut self, text: String) -> u32 {
        if let Some(&known) = self.known_strings.get(&text) {
            return known;
        }
        let index = self.strings.len() as u32;
        self.strings.push(text.clone());
        self.known_strings.insert(text, index);
        index
    }
}
