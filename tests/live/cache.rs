//! An RPKI cache (RFC 8210) with one payload, in a thread of its own: the AS of the router may not originate
//! [`REFUSED_PREFIX`].

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;

/// The address of the cache.
pub(crate) const ADDRESS: &str = "127.0.0.5";
/// Its prefix.
pub(crate) const REFUSED_PREFIX: &str = "192.0.2.0/24";

/// Starts it, and returns its port.
pub(crate) fn start() -> u16 {
    let listener = TcpListener::bind((ADDRESS, 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            // A client that is gone has its answers.
            thread::spawn(move || drop(serve(stream)));
        }
    });
    port
}

/// Answers each query with all data; a Reset Query has 8 octets, a Serial Query 12.
fn serve(mut stream: TcpStream) -> std::io::Result<()> {
    let mut head = [0; 8];
    loop {
        stream.read_exact(&mut head)?;
        let rest = u32::from_be_bytes([head[4], head[5], head[6], head[7]]) - 8;
        stream.read_exact(&mut vec![0; rest as usize])?;
        let mut answer = vec![1, 3, 0, 7, 0, 0, 0, 8];
        answer.extend([1, 4, 0, 0, 0, 0, 0, 20, 1, 24, 24, 0, 192, 0, 2, 0]);
        answer.extend(64_999_u32.to_be_bytes());
        answer.extend([1, 7, 0, 7, 0, 0, 0, 24, 0, 0, 0, 1]);
        for seconds in [3_600_u32, 600, 7_200] {
            answer.extend(seconds.to_be_bytes());
        }
        stream.write_all(&answer)?;
    }
}
