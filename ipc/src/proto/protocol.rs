//! The macro that declares a protocol once, for both sides.
//!
//! ```
//! use ipc::proto::{Disposition, Loopback, Message, Responder, Served, Call};
//! # use serde::{Deserialize, Serialize};
//! # use postcard::experimental::max_size::MaxSize;
//! mod counter {
//!     use serde::{Deserialize, Serialize};
//!     use postcard::experimental::max_size::MaxSize;
//!
//!     /// Why the counter refuses.
//!     #[derive(Debug, PartialEq, Serialize, Deserialize, MaxSize)]
//!     pub enum CounterError { Overflow }
//!
//!     ipc::protocol! {
//!         error CounterError;
//!         retired [2];
//!         /// Adds, and answers the sum.
//!         1 Add = add(u32) -> u64;
//!         /// Gives the log as a memory object.
//!         3 Log = log(()) -> u64, handles [H; 1];
//!     }
//! }
//!
//! struct Counter(u64);
//!
//! impl<P: Responder> counter::Service<P> for Counter {
//!     fn add(&mut self, call: Call<'_, P, counter::Add>, request: u32) -> Served<counter::Add, P::Handle> {
//!         self.0 += u64::from(request);
//!         Ok(call.reply(self.0))
//!     }
//!     fn log(&mut self, call: Call<'_, P, counter::Log>, (): ()) -> Served<counter::Log, P::Handle> {
//!         # let _ = call;
//!         Err(counter::CounterError::Overflow)
//!     }
//! }
//!
//! let mut client = counter::Client::new(Loopback::new(Counter(40), counter::dispatch));
//! assert_eq!(client.add(&2), Ok(42));
//! ```
//!
//! A message that might not fit the IPC buffer does not compile:
//! ```compile_fail
//! ipc::protocol! {
//!     error ();
//!     1 Write = write(ipc::proto::Bytes<2048>) -> ();
//! }
//! ```
//! nor does the number of an operation that is no more:
//! ```compile_fail
//! ipc::protocol! {
//!     error ();
//!     retired [1];
//!     1 Write = write(u8) -> ();
//! }
//! ```

/// Declares a protocol, in a module of its own: for each operation a marker type, in all a `Service` trait for servers, a
/// `Client` for callers, `dispatch`, and the table `OPERATIONS` of numbers and names.
///
/// A row is `number Marker = method(Request [, handles Set]) -> Reply [, handles Set];` where a set of handles is
/// `[H; N]` or `Option<H>`, and `H` stands for the platform's owned handle. Numbers are never reused: that of an
/// operation that is no more goes to `retired`.
#[macro_export]
macro_rules! protocol {
    (
        error $error:ty;
        $(retired [$($retired:literal),* $(,)?];)?
        $(
            $(#[$doc:meta])*
            $number:literal $marker:ident = $method:ident($request:ty $(, handles $given:ty)?)
                -> $reply:ty $(, handles $returned:ty)?;
        )*
    ) => {
        $(
            $(#[$doc])*
            #[derive(Clone, Copy, Debug)]
            pub struct $marker;

            impl $crate::proto::Operation for $marker {
                const NUMBER: u16 = $number;
                const NAME: &'static str = stringify!($method);
                type Request = $request;
                type RequestHandles<H> = $crate::protocol!(@set $($given)?);
                type Reply = $reply;
                type ReplyHandles<H> = $crate::protocol!(@set $($returned)?);
                type Error = $error;
            }

            const _: () = assert!($crate::proto::fits::<$marker>(), "a message may not fit the IPC buffer");
        )*

        /// Number and name of each operation.
        pub const OPERATIONS: &[(u16, &str)] = &[$(($number, stringify!($method)),)*];

        const _: () = {
            let retired: &[u16] = &[$($($retired),*)?];
            let mut index = 0;
            while index < OPERATIONS.len() {
                assert!(index == 0 || OPERATIONS[index - 1].0 < OPERATIONS[index].0, "operations are in the order of their numbers");
                let mut other = 0;
                while other < retired.len() {
                    assert!(OPERATIONS[index].0 != retired[other], "the number of a retired operation is not used again");
                    other += 1;
                }
                index += 1;
            }
        };

        /// What a server does.
        pub trait Service<P: $crate::proto::Responder> {
            $(
                $(#[$doc])*
                ///
                /// # Errors
                /// The service's own.
                fn $method(
                    &mut self,
                    call: $crate::proto::Call<'_, P, $marker>,
                    request: $request
                    $(, handles: $crate::protocol!(@handles $marker, P::Handle, $given))?
                ) -> $crate::proto::Served<$marker, P::Handle>;
            )*
        }

        /// What a caller has.
        #[derive(Debug)]
        pub struct Client<T: $crate::proto::Transport> {
            transport: T,
            message: $crate::proto::Message<T::Handle>,
        }

        impl<T: $crate::proto::Transport> Client<T> {
            /// A client over a transport.
            pub const fn new(transport: T) -> Self {
                Self { transport, message: $crate::proto::Message::new() }
            }
            /// The transport.
            pub const fn transport(&mut self) -> &mut T {
                &mut self.transport
            }
            $(
                $(#[$doc])*
                ///
                /// # Errors
                /// See [`CallError`]($crate::proto::CallError).
                pub fn $method(
                    &mut self,
                    request: &$request
                    $(, handles: $crate::protocol!(@handles $marker, T::Handle, $given))?
                ) -> Result<
                    $crate::protocol!(@result $marker, T::Handle, $reply $(, $returned)?),
                    $crate::proto::CallError<$error>,
                > {
                    let given = $crate::protocol!(@given handles $($given)?);
                    let reply = $crate::proto::call::<$marker, T>(&mut self.transport, &mut self.message, request, given);
                    reply.map(|reply| $crate::protocol!(@value reply $($returned)?))
                }
            )*
        }

        /// Serves the call in `message`, which came with `badge`, and leaves the reply there.
        pub fn dispatch<S, P>(
            service: &mut S,
            responder: &mut P,
            badge: u64,
            message: &mut $crate::proto::Message<P::Handle>,
        ) -> $crate::proto::Disposition
        where
            S: Service<P>,
            P: $crate::proto::Responder,
        {
            match message.op {
                $(
                    $number => $crate::proto::serve::<$marker, P>(responder, badge, message, |call, request, handles| {
                        $crate::protocol!(@serve service $method call request handles $($given)?)
                    }),
                )*
                _ => $crate::proto::misunderstood(message, $crate::proto::ProtocolError::UnknownOperation),
            }
        }
    };

    (@set) => { () };
    (@set $set:ty) => { $set };
    (@handles $marker:ident, $handle:ty, $set:ty) => {
        <$marker as $crate::proto::Operation>::RequestHandles<$handle>
    };
    (@result $marker:ident, $handle:ty, $reply:ty) => { $reply };
    (@result $marker:ident, $handle:ty, $reply:ty, $set:ty) => {
        ($reply, <$marker as $crate::proto::Operation>::ReplyHandles<$handle>)
    };
    (@given $handles:ident) => { () };
    (@given $handles:ident $set:ty) => { $handles };
    (@value $reply:ident) => { $reply.0 };
    (@value $reply:ident $set:ty) => { $reply };
    (@serve $service:ident $method:ident $call:ident $request:ident $handles:ident) => {{
        let () = $handles;
        $service.$method($call, $request)
    }};
    (@serve $service:ident $method:ident $call:ident $request:ident $handles:ident $set:ty) => {
        $service.$method($call, $request, $handles)
    };
}

#[cfg(test)]
mod tests;
