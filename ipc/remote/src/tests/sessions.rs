//! A session from its hello to its end, in both modes.

use super::link::{Faults, World, address, exec, key, modes, ring};
use crate::{ClientEvent, End, Mode, Purpose, Role, ServerEvent, ServerMode, Status, Stream};

#[test]
fn a_command_runs_and_its_output_and_status_come_back() {
    for (server, client) in modes() {
        let mut world = World::new(server, Faults::default(), 1);
        let index = world.client(client, exec("ps"));
        let opened = ServerEvent::Opened {
            number: 1,
            role: Role::Control,
            purpose: exec("ps"),
            peer: address(0),
        };
        assert_eq!(world.server_event(), opened);
        assert_eq!(world.server.write(1, Stream::Binary, b"PID NAME\n"), 9);
        world.server.finish(world.now, 1, Status::Interrupted);
        let role = Role::Control;
        assert_eq!(world.client_event(index), ClientEvent::Connected { role });
        let output = ClientEvent::Output(Stream::Binary, b"PID NAME\n".to_vec());
        assert_eq!(world.client_event(index), output);
        assert_eq!(
            world.client_event(index),
            ClientEvent::Finished(Status::Interrupted)
        );
        world.until(|world| world.clients[index].is_over().then_some(()));
        world.until(|world| (world.server.sessions() == 0).then_some(()));
    }
}

#[test]
fn what_is_typed_arrives_and_a_client_that_leaves_is_noticed() {
    for (server, client) in modes() {
        let mut world = World::new(server, Faults::default(), 2);
        let index = world.client(client, Purpose::Shell);
        assert_eq!(world.clients[index].send(b"ps\r"), 3);
        assert!(matches!(world.server_event(), ServerEvent::Opened { .. }));
        assert_eq!(world.server_event(), ServerEvent::Input(1));
        let mut buffer = [0; 16];
        assert_eq!(world.server.read(world.now, 1, &mut buffer[..2]), 2);
        assert_eq!(world.server.read(world.now, 1, &mut buffer[2..]), 1);
        assert_eq!(&buffer[..3], b"ps\r");
        assert_eq!(world.server.read(world.now, 1, &mut buffer), 0);
        let role = Role::Control;
        assert_eq!(world.client_event(index), ClientEvent::Connected { role });
        let now = world.now;
        world.clients[index].close(now);
        assert_eq!(world.server_event(), ServerEvent::Closed(1, End::Left));
        world.until(|world| world.clients[index].is_over().then_some(()));
        world.until(|world| (world.server.sessions() == 0).then_some(()));
    }
}

#[test]
fn a_ping_is_answered_and_leaves_nothing_behind() {
    for (server, client) in modes() {
        let mut world = World::new(server, Faults::default(), 3);
        let index = world.ping(client);
        let event = world.client_event(index);
        let role = Role::Control;
        assert!(matches!(event, ClientEvent::Pong { role: is, .. } if is == role));
        assert!(world.clients[index].is_over());
        assert_eq!((world.server.sessions(), world.server.half_open()), (0, 0));
    }
}

#[test]
fn a_key_gives_its_role() {
    let mut world = World::new(ServerMode::Keyed(ring()), Faults::default(), 4);
    for (byte, is) in [(1, Role::Control), (2, Role::Observe)] {
        world.client(Mode::Keyed(key(byte)), Purpose::Shell);
        let event = world.server_event();
        assert!(matches!(event, ServerEvent::Opened { role, .. } if role == is));
    }
}
