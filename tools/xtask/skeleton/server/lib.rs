//! The @name@ server: keeps one sum for all its callers. Its logic, tested on the host.
#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]

use ipc::proto::@name@::{self, @Name@Error, LARGEST_SUM};
use ipc::proto::{Call, Responder, Served};

/// The server, and what it remembers.
#[derive(Debug, Default)]
pub struct Server {
    sum: u64,
}

impl<P: Responder> @name@::Service<P> for Server {
    fn add(
        &mut self,
        call: Call<'_, P, @name@::Add>,
        number: u32,
    ) -> Served<@name@::Add, P::Handle> {
        let sum = self.sum + u64::from(number);
        if sum > LARGEST_SUM {
            return Err(@Name@Error::Full);
        }
        self.sum = sum;
        Ok(call.reply(sum))
    }

    fn sum(&mut self, call: Call<'_, P, @name@::Sum>, (): ()) -> Served<@name@::Sum, P::Handle> {
        Ok(call.reply(self.sum))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ipc::proto::{self, Loopback};

    #[test]
    fn numbers_are_added_up_to_the_largest_sum() {
        let server = Server { sum: LARGEST_SUM - 5 };
        let mut client = @name@::Client::new(Loopback::new(server, @name@::dispatch));
        assert_eq!(client.add(&3), Ok(LARGEST_SUM - 2));
        let full = proto::CallError::Service(@Name@Error::Full);
        assert_eq!(client.add(&3), Err(full));
        assert_eq!(client.sum(&()), Ok(LARGEST_SUM - 2));
    }
}
