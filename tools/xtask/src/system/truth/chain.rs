//! What a chain of a report says: which functions are on it, and on whose behalf it was.

use super::super::report::Chain;

/// Whether a function, as ``image`name``, is the leaf.
pub fn is_at(chain: &Chain, function: &str) -> bool {
    function.split_once('`') == Some((&chain.image, &chain.symbol))
}

/// Whether a function is the leaf or one of its callers: the time is spent in it, or in what it called.
pub fn is_in(chain: &Chain, function: &str) -> bool {
    is_at(chain, function) || lines(chain, "<- ").any(|caller| caller == function)
}

/// The functions in which the clients wait, the nearest first.
pub fn clients(chain: &Chain) -> Vec<&str> {
    lines(chain, "<= ")
        .filter(|client| *client != "?")
        .collect()
}

/// Whether these are the clients, or those of them before a mark that says that the rest is missing; each as ``image`name``.
pub fn serves(chain: &Chain, expected: &[&str]) -> bool {
    let clients = clients(chain);
    clients == expected || is_open(chain) && expected.starts_with(&clients)
}

/// Whether a part is marked as missing.
fn is_open(chain: &Chain) -> bool {
    let mut callers = chain.callers.iter();
    callers.any(|line| line == "<= ?" || line == "<- ?" || line.starts_with("<- ..."))
}

/// The functions in the lines that begin so.
fn lines<'a>(chain: &'a Chain, mark: &'a str) -> impl Iterator<Item = &'a str> {
    let lines = chain.callers.iter();
    let places = lines.filter_map(move |line| line.strip_prefix(mark));
    // Symbols may hold a plus sign of their own.
    places.map(|place| place.rsplit_once('+').map_or(place, |(name, _)| name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chain(callers: &[&str]) -> Chain {
        Chain {
            count: 1,
            tenths: 1000,
            image: "back".into(),
            symbol: "work".into(),
            offsets: 0..=0,
            account: None,
            callers: callers.iter().map(|&line| line.to_owned()).collect(),
        }
    }

    #[test]
    fn functions_are_found_in_their_own_program_and_among_its_callers() {
        let served = chain(&[
            "<- back`main+0x1",
            "<= relay`main+0x2",
            "<- relay`start+0x3",
        ]);
        assert!(is_at(&served, "back`work") && is_in(&served, "back`work"));
        assert!(is_in(&served, "back`main") && !is_at(&served, "back`main"));
        assert!(!is_in(&served, "relay`main"));
        assert_eq!(clients(&served), ["relay`main"]);
    }

    #[test]
    fn clients_are_those_expected_or_said_to_be_missing() {
        let expected = ["relay`main", "front`main"];
        let both = ["<= relay`main+0x2", "<= front`main+0x3"];
        assert!(serves(&chain(&both), &expected));
        assert!(!serves(&chain(&both), &expected[..1]));
        assert!(!serves(&chain(&both[..1]), &expected));
        assert!(serves(&chain(&[both[0], "<= ?"]), &expected));
        assert!(serves(
            &chain(&["<- back`main+0x1", "<- ... (2 more)"]),
            &expected
        ));
        assert!(!serves(&chain(&[both[1], "<= ?"]), &expected));
    }
}
