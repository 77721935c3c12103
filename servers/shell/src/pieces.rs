//! Text that comes in pieces, shown piece by piece without a character being torn.

/// Bytes read at a time.
const PIECE: usize = 1024;

/// Shows `len` bytes of text, which `read` copies out from an offset on, saying how many it had. Bytes that are not UTF-8 are
/// shown as U+FFFD.
pub fn show(
    len: usize,
    mut read: impl FnMut(usize, &mut [u8]) -> usize,
    show: &mut dyn FnMut(&str),
) {
    let mut offset = 0;
    while offset < len {
        let mut piece = [0; PIECE];
        let most = PIECE.min(len - offset);
        let had = read(offset, &mut piece[..most]);
        if had == 0 {
            return;
        }
        let bytes = &piece[..had.min(most)];
        let good = match core::str::from_utf8(bytes) {
            Ok(_) => bytes.len(),
            Err(error) => error.valid_up_to(),
        };
        if good == 0 {
            show("\u{fffd}");
            offset += 1;
            continue;
        }
        show(core::str::from_utf8(&bytes[..good]).unwrap_or_default());
        offset += good;
    }
}

#[cfg(test)]
mod tests {
    use super::PIECE;
    use proptest::prelude::*;

    fn shown(bytes: &[u8]) -> String {
        let mut text = String::new();
        let read = |offset: usize, out: &mut [u8]| {
            let rest = &bytes[offset..];
            let len = rest.len().min(out.len());
            out[..len].copy_from_slice(&rest[..len]);
            len
        };
        super::show(bytes.len(), read, &mut |piece| text.push_str(piece));
        text
    }

    #[test]
    fn a_character_across_two_pieces_stays_whole() {
        for filler in PIECE - 4..=PIECE {
            let text = "x".repeat(filler) + "→é🦀";
            assert_eq!(shown(text.as_bytes()), text);
        }
    }

    #[test]
    fn a_text_that_ends_early_ends() {
        let mut text = String::new();
        super::show(10, |_, _| 0, &mut |piece| text.push_str(piece));
        assert_eq!(text, "");
    }

    proptest! {
        #[test]
        fn any_bytes_are_shown_and_text_as_it_is(bytes in prop::collection::vec(any::<u8>(), 0..3000), text in ".{0,900}") {
            prop_assert!(shown(&bytes).chars().count() <= bytes.len());
            prop_assert_eq!(shown(text.as_bytes()), text);
        }
    }
}
