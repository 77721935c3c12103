//! Counters that are shown: each has its name in print where it is declared, so that none is counted and not told.

/// Declares a structure of counters, which are `u64` and begin with 0.
macro_rules! counters {
    (
        $(#[$meta:meta])* $name:ident
        $($(#[$doc:meta])* $field:ident => $text:literal;)*
    ) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, MaxSize)]
        pub struct $name {
            $($(#[$doc])* pub $field: u64,)*
        }

        impl $name {
            /// Each count with its name.
            pub fn each(&self) -> impl Iterator<Item = (&'static str, u64)> {
                [$(($text, self.$field)),*].into_iter()
            }
        }
    };
}
pub(super) use counters;
