//! Enums that cross the system-call boundary as a number.

/// Declares an enum of which each variant has a number, and may have a text, which the method that is named behind the type of the
/// number gives. Both are said here and nowhere else.
macro_rules! numbered {
    (
        $(#[$meta:meta])*
        pub enum $name:ident: $number:ident {
            $($(#[$attribute:meta])* $variant:ident = $value:literal,)*
        }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr($number)]
        pub enum $name { $($(#[$attribute])* $variant = $value,)* }

        impl $name {
            /// Every one, in the order of the numbers.
            pub const ALL: [Self; [$($value),*].len()] = [$(Self::$variant),*];

            /// The one with this number.
            #[must_use]
            pub const fn from_raw(raw: $number) -> Option<Self> {
                match raw { $($value => Some(Self::$variant),)* _ => None }
            }
        }
    };
    (
        $(#[$meta:meta])*
        pub enum $name:ident: $number:ident, $text:ident {
            $($(#[$attribute:meta])* $variant:ident = $value:literal => $words:literal,)*
        }
    ) => {
        $crate::abi::numbered::numbered! {
            $(#[$meta])*
            pub enum $name: $number { $($(#[$attribute])* $variant = $value,)* }
        }

        impl $name {
            /// What a person reads for it.
            #[must_use]
            pub const fn $text(self) -> &'static str {
                match self { $(Self::$variant => $words,)* }
            }
        }
    };
}
pub(super) use numbered;

#[cfg(test)]
mod tests {
    numbered! {
        /// Has gaps.
        pub enum Sample: u32, text {
            /// First.
            One = 1 => "the first",
            /// Last.
            Seven = 7 => "the last",
        }
    }

    #[test]
    fn numbers_round_trip_and_no_other_is_one() {
        for number in 0..10 {
            let known = Sample::from_raw(number);
            assert_eq!(known.is_some(), [1, 7].contains(&number));
            assert!(known.is_none_or(|known| known as u32 == number));
        }
        assert_eq!(Sample::ALL.map(Sample::text), ["the first", "the last"]);
    }
}
