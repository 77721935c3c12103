//! Frames and datagrams as somebody makes them who knows the formats: with right checksums, so that what is behind those is
//! reached. Written from the formats' descriptions, not with the code that is fuzzed.

use blake2::Blake2sMac;
use blake2::digest::consts::U16;
use blake2::digest::{FixedOutput, KeyInit, Update};

/// The sum of RFC 1071 over these bytes.
fn checksum(parts: &[&[u8]]) -> [u8; 2] {
    let mut sum = 0_u32;
    for part in parts {
        for pair in part.chunks(2) {
            let low = pair.get(1).copied().unwrap_or(0);
            sum += u32::from(u16::from_be_bytes([pair[0], low]));
        }
    }
    while sum >> 16 != 0 {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    (!(sum as u16)).to_be_bytes()
}

/// An Ethernet frame.
pub fn ethernet(to: [u8; 6], from: [u8; 6], ethertype: u16, payload: &[u8]) -> Vec<u8> {
    [&to[..], &from, &ethertype.to_be_bytes(), payload].concat()
}

/// An IPv4 datagram without options; `fragment` has its flags and offset.
pub fn ipv4(from: [u8; 4], to: [u8; 4], protocol: u8, fragment: u16, payload: &[u8]) -> Vec<u8> {
    let length = (20 + payload.len()) as u16;
    let mut header = [0; 20];
    (header[0], header[8], header[9]) = (0x45, 64, protocol);
    header[2..4].copy_from_slice(&length.to_be_bytes());
    header[6..8].copy_from_slice(&fragment.to_be_bytes());
    header[12..16].copy_from_slice(&from);
    header[16..].copy_from_slice(&to);
    let sum = checksum(&[&header]);
    header[10..12].copy_from_slice(&sum);
    [&header[..], payload].concat()
}

/// A UDP datagram, to be the payload of [`ipv4`] between the same addresses. `ports`: from, to.
pub fn udp(from: [u8; 4], to: [u8; 4], ports: [u16; 2], payload: &[u8]) -> Vec<u8> {
    let length = ((8 + payload.len()) as u16).to_be_bytes();
    let [source, destination] = ports.map(u16::to_be_bytes);
    let head = [source, destination, length].concat();
    let sum = checksum(&[&from, &to, &[0, 17], &length, &head, payload]);
    // A sum of zero is sent as ones: zero says that there is none.
    let sum = if sum == [0, 0] { [0xff; 2] } else { sum };
    [&head[..], &sum, payload].concat()
}

/// An ICMP message, to be the payload of [`ipv4`].
pub fn icmp(kind: u8, code: u8, rest: &[u8]) -> Vec<u8> {
    let head = [kind, code];
    let sum = checksum(&[&head, &[0, 0], rest]);
    [&head[..], &sum, rest].concat()
}

/// The header of a packet of the remote shell's protocol (docs/remote-shell.md).
pub fn packet_header(version: u8, kind: u8, keyed: u8, session: u64, number: u64) -> Vec<u8> {
    let mut header = vec![0xf5, b'S', b'D', version, kind, keyed, 0, 0];
    header.extend(session.to_le_bytes());
    header.extend(number.to_le_bytes());
    header
}

/// A packet of the open mode, with the hash behind it. `key`: what the hash is keyed with, by what the packet is.
pub fn open_packet(key: &str, header: &[u8], body: &[u8]) -> Vec<u8> {
    let Ok(mut mac) = Blake2sMac::<U16>::new_from_slice(key.as_bytes()) else {
        unreachable!("BLAKE2s takes keys of up to 32 bytes")
    };
    mac.update(header);
    mac.update(body);
    [header, body, &mac.finalize_fixed()].concat()
}

/// Keys of [`open_packet`].
pub const HELLO: &str = "sonde hello";
/// A frame from a client.
pub const FROM_CLIENT: &str = "sonde open client";
/// A frame from a server.
pub const FROM_SERVER: &str = "sonde open server";

/// The body of a frame. `chunk`: stream, sequence, index, count and bytes.
pub fn frame(
    next: u64,
    behind: u32,
    window: u8,
    chunk: Option<(u8, u64, u16, u16, &[u8])>,
) -> Vec<u8> {
    let mut body = next.to_le_bytes().to_vec();
    body.extend(behind.to_le_bytes());
    body.push(window);
    let (stream, sequence, index, count, bytes) = chunk.unwrap_or_default();
    body.push(stream);
    body.extend(index.to_le_bytes());
    body.extend(count.to_le_bytes());
    body.extend(sequence.to_le_bytes());
    body.extend(bytes);
    body
}
