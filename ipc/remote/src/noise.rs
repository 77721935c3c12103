//! The handshake of the keyed mode: Noise `NNpsk0` by the crate `snow`.
//!
//! Both ends have the key already, so the pattern needs no certificates and only two messages. The key authenticates from
//! the first message on, so that a server can be silent to everybody else; the exchange of ephemeral keys gives each
//! session keys of its own, which the key does not tell who gets hold of it later.

use alloc::boxed::Box;

use snow::params::{CipherChoice, DHChoice, HashChoice, NoiseParams};
use snow::resolvers::{CryptoResolver, DefaultResolver};
use snow::types::{Cipher, Dh, Hash, Random};
use snow::{Builder, Error, HandshakeState, StatelessTransportState};

use crate::Key;

const PATTERN: &str = "Noise_NNpsk0_25519_ChaChaPoly_BLAKE2s";
/// What the first message is longer than its payload: an ephemeral key and a tag. The second one is, too.
pub(crate) const OVERHEAD: usize = 32 + 16;

/// Random bytes for one handshake, which takes 32 for its ephemeral key.
pub(crate) type Seed = [u8; 32];

/// The default algorithms, with the caller's random bytes.
struct Resolver(Seed);

/// Gives the seed once: a second key from it would be the same one.
struct Once(Option<Seed>);

impl Random for Once {
    fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), Error> {
        let seed = self.0.take().ok_or(Error::Rng)?;
        let seed = seed.get(..bytes.len()).ok_or(Error::Rng)?;
        bytes.copy_from_slice(seed);
        Ok(())
    }
}

impl CryptoResolver for Resolver {
    fn resolve_rng(&self) -> Option<Box<dyn Random>> {
        Some(Box::new(Once(Some(self.0))))
    }
    fn resolve_dh(&self, choice: &DHChoice) -> Option<Box<dyn Dh>> {
        DefaultResolver.resolve_dh(choice)
    }
    fn resolve_hash(&self, choice: &HashChoice) -> Option<Box<dyn Hash>> {
        DefaultResolver.resolve_hash(choice)
    }
    fn resolve_cipher(&self, choice: &CipherChoice) -> Option<Box<dyn Cipher>> {
        DefaultResolver.resolve_cipher(choice)
    }
}

/// The client's half of a handshake. `header` is bound to it: it must be what the server saw.
pub(crate) fn initiator(key: &Key, seed: Seed, header: &[u8]) -> Result<HandshakeState, Error> {
    builder(key, seed, header)?.build_initiator()
}

/// The server's half.
pub(crate) fn responder(key: &Key, seed: Seed, header: &[u8]) -> Result<HandshakeState, Error> {
    builder(key, seed, header)?.build_responder()
}

fn builder<'a>(key: &'a Key, seed: Seed, header: &'a [u8]) -> Result<Builder<'a>, Error> {
    let params: NoiseParams = PATTERN.parse()?;
    Builder::with_resolver(params, Box::new(Resolver(seed)))
        .psk(0, key.bytes())?
        .prologue(header)
}

/// The session's keys, after both messages.
pub(crate) fn transport(done: HandshakeState) -> Result<Box<StatelessTransportState>, Error> {
    done.into_stateless_transport_mode().map(Box::new)
}
