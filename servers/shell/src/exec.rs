//! A session of one command: what stands in a terminal's place. Output goes out as it is, and of what is typed only
//! Ctrl-C counts; nobody holds output, and there is no prompt.

use ipc::proto::stream::{self, Chunk, StreamError};
use ipc::proto::{Call, Responder, Served};

use crate::line::keys::INTERRUPT;
use crate::protocol::{
    COMMANDS, Completion, Front, Guard, INPUT, Input, NextLine, Page, Print, Service, Stop,
    TerminalError, only,
};
use crate::terminal::{Closed, Sink};

/// Where the output of one command and of its programs goes, and where its Ctrl-C comes from.
#[derive(Debug)]
pub struct Exec<S> {
    sink: S,
    /// Ctrl-C was pressed, and the command was not told so.
    interrupted: bool,
    /// What it ends.
    stop: Stop,
    /// Nobody reads any more.
    gone: bool,
}

impl<S: Sink> Exec<S> {
    /// With its output to `sink`.
    pub const fn new(sink: S) -> Self {
        Self {
            sink,
            interrupted: false,
            stop: Stop::Nothing,
            gone: false,
        }
    }
}

impl<S: Sink, P: Responder> Service<P> for Exec<S> {
    fn input(&mut self, call: Call<'_, P, Input>, bytes: Chunk) -> Served<Input, P::Handle> {
        only(INPUT, call.badge())?;
        let pressed = bytes.contains(&INTERRUPT);
        self.interrupted |= pressed;
        Ok(call.reply(match pressed {
            true => self.stop,
            false => Stop::Nothing,
        }))
    }

    fn next_line(
        &mut self,
        _: Call<'_, P, NextLine>,
        _: Completion,
    ) -> Served<NextLine, P::Handle> {
        Err(TerminalError::Closed)
    }

    fn print(&mut self, call: Call<'_, P, Print>, bytes: Chunk) -> Served<Print, P::Handle> {
        only(COMMANDS, call.badge())?;
        if !self.interrupted {
            let written = self.sink.write(&bytes);
            written.map_err(|Closed| TerminalError::Closed)?;
        }
        Ok(call.reply(self.interrupted))
    }

    fn guard(&mut self, call: Call<'_, P, Guard>, what: Stop) -> Served<Guard, P::Handle> {
        only(COMMANDS, call.badge())?;
        self.stop = what;
        let was = core::mem::take(&mut self.interrupted);
        Ok(call.reply(was || self.gone))
    }

    fn page(&mut self, call: Call<'_, P, Page>, _: bool) -> Served<Page, P::Handle> {
        only(COMMANDS, call.badge())?;
        Ok(call.reply(()))
    }
}

impl<S: Sink, P: Responder> stream::Service<P> for Exec<S> {
    fn write(
        &mut self,
        call: Call<'_, P, stream::Write>,
        bytes: Chunk,
    ) -> Served<stream::Write, P::Handle> {
        let written = self.sink.write(&bytes);
        written.map_err(|Closed| StreamError::Closed)?;
        Ok(call.reply(()))
    }

    fn flush(
        &mut self,
        call: Call<'_, P, stream::Flush>,
        (): (),
    ) -> Served<stream::Flush, P::Handle> {
        Ok(call.reply(()))
    }

    fn read(&mut self, _: Call<'_, P, stream::Read>, _: u16) -> Served<stream::Read, P::Handle> {
        Err(StreamError::WriteOnly)
    }
}

impl<S: Sink, P: Responder> Front<P> for Exec<S> {
    fn hang_up(&mut self, _: &mut P) -> Stop {
        (self.interrupted, self.gone) = (true, true);
        self.stop
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::{PROGRAMS, serve};
    use ipc::proto::{Desk, Disposition, Message, Operation};

    #[derive(Default)]
    struct Wire {
        bytes: Vec<u8>,
        closed: bool,
    }

    impl Sink for Wire {
        fn write(&mut self, bytes: &[u8]) -> Result<(), Closed> {
            self.bytes.extend(bytes);
            match self.closed {
                true => Err(Closed),
                false => Ok(()),
            }
        }
    }

    fn exec() -> Exec<Wire> {
        Exec::new(Wire::default())
    }

    /// A call; the status if it is refused.
    fn call<O: Operation>(
        exec: &mut Exec<Wire>,
        badge: u64,
        request: &O::Request,
    ) -> Result<O::Reply, u16> {
        let mut message = Message::new();
        message.put(O::NUMBER, request).expect("it fits");
        let done = serve(exec, &mut Desk::new(), badge, &mut message);
        assert_eq!(done, Disposition::Reply);
        match message.op {
            0 => Ok(message.get().expect("a reply")),
            status => Err(status),
        }
    }

    fn chunk(bytes: &[u8]) -> Chunk {
        Chunk::try_from(bytes).expect("a chunk")
    }

    #[test]
    fn output_goes_out_as_it_is() {
        let mut exec = exec();
        assert_eq!(
            call::<Print>(&mut exec, COMMANDS, &chunk(b"a\n")),
            Ok(false)
        );
        let bytes = chunk(b"\xff\r\n\x1b[K");
        assert_eq!(call::<stream::Write>(&mut exec, PROGRAMS, &bytes), Ok(()));
        assert_eq!(exec.sink.bytes, b"a\n\xff\r\n\x1b[K");
    }

    #[test]
    fn ctrl_c_ends_what_the_command_said_and_nothing_else_that_is_typed_does_anything() {
        let mut exec = exec();
        let typed = chunk(b"ps\n\x04\x13q");
        assert_eq!(call::<Guard>(&mut exec, COMMANDS, &Stop::Wait), Ok(false));
        assert_eq!(call::<Input>(&mut exec, INPUT, &typed), Ok(Stop::Nothing));
        let typed = chunk(b"x\x03y");
        assert_eq!(call::<Input>(&mut exec, INPUT, &typed), Ok(Stop::Wait));
        let text = chunk(b"no more\n");
        assert_eq!(call::<Print>(&mut exec, COMMANDS, &text), Ok(true));
        assert_eq!(call::<Guard>(&mut exec, COMMANDS, &Stop::Nothing), Ok(true));
        assert_eq!(
            call::<Guard>(&mut exec, COMMANDS, &Stop::Nothing),
            Ok(false)
        );
        assert_eq!(call::<Print>(&mut exec, COMMANDS, &text), Ok(false));
        assert_eq!(exec.sink.bytes, b"no more\n");
    }

    #[test]
    fn what_nobody_reads_any_more_ends() {
        let mut exec = exec();
        assert_eq!(
            call::<Guard>(&mut exec, COMMANDS, &Stop::Process(9)),
            Ok(false)
        );
        exec.sink.closed = true;
        assert_eq!(exec.hang_up(&mut Desk::new()), Stop::Process(9));
        for _ in 0..3 {
            assert_eq!(call::<Guard>(&mut exec, COMMANDS, &Stop::Nothing), Ok(true));
        }
        let text = chunk(b"x");
        assert_eq!(call::<Print>(&mut exec, COMMANDS, &text), Err(1));
        assert_eq!(call::<stream::Write>(&mut exec, PROGRAMS, &text), Err(1));
    }

    #[test]
    fn each_operation_is_for_its_caller() {
        let mut exec = exec();
        let text = chunk(b"x\x03");
        assert_eq!(call::<Input>(&mut exec, PROGRAMS, &text), Err(1));
        assert_eq!(call::<Input>(&mut exec, COMMANDS, &text), Err(1));
        assert_eq!(call::<Print>(&mut exec, PROGRAMS, &text), Err(1));
        assert_eq!(call::<Guard>(&mut exec, INPUT, &Stop::Nothing), Err(1));
        assert_eq!(call::<Page>(&mut exec, PROGRAMS, &true), Err(1));
        assert_eq!(call::<stream::Read>(&mut exec, PROGRAMS, &1), Err(1));
        assert_eq!(call::<stream::Flush>(&mut exec, PROGRAMS, &()), Ok(()));
        // Pages are for who sits at a terminal.
        assert_eq!(call::<Page>(&mut exec, COMMANDS, &true), Ok(()));
        assert!(exec.sink.bytes.is_empty());
    }
}
