//! What a client finds behind an address: a server on a machine that says the name of this machine. It is this test's
//! own binary, run again inside the namespace, as is the client.

use std::ffi::OsStr;
use std::io::{Read, Write};
use std::net::{IpAddr, Ipv6Addr, SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result};

use lab::namespace::{Namespace, Place};
use lab::process::{Process, output_of};

const SERVE: &str = "@serve";
const FETCH: &str = "@fetch";
/// Where it listens, on all addresses of both families.
pub(crate) const PORT: u16 = 8080;
/// For one step of a conversation.
const LIMIT: Duration = Duration::from_secs(2);

/// Starts the server of `machine`, which says `text`.
pub(crate) fn serve(machine: &Namespace, text: &str, log: &Path) -> Result<Process> {
    let binary = std::env::current_exe().context("the path of this binary")?;
    Process::spawn(machine, &binary, &[SERVE.to_owned(), text.to_owned()], log)
}

/// What the server at `address` says to `client`.
pub(crate) fn fetch(client: &Namespace, address: &str) -> Result<String> {
    let binary = std::env::current_exe().context("the path of this binary")?;
    let mut command = client.command(OsStr::new(&binary));
    let text = output_of(command.args([FETCH, address]))?;
    Ok(text.trim().to_owned())
}

/// Plays one of these roles when the command line asks for it.
pub(crate) fn other_role() -> Option<ExitCode> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let outcome = match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [SERVE, text] => say(text),
        [FETCH, address] => ask(address),
        _ => return None,
    };
    Some(match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error:#}");
            ExitCode::FAILURE
        }
    })
}

fn say(text: &str) -> Result<()> {
    let listener = TcpListener::bind((Ipv6Addr::UNSPECIFIED, PORT)).context("listening")?;
    for connection in listener.incoming() {
        let mut connection = connection.context("a connection")?;
        connection.set_read_timeout(Some(LIMIT))?;
        // A check that only connects sends nothing.
        let length = connection.read(&mut [0; 1_024]).unwrap_or_default();
        if length > 0 {
            let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", text.len());
            // The client may be gone.
            drop(connection.write_all(format!("{head}{text}").as_bytes()));
        }
    }
    Ok(())
}

fn ask(address: &str) -> Result<()> {
    let address: IpAddr = address.parse().context("an address")?;
    let address = SocketAddr::new(address, PORT);
    let mut connection = TcpStream::connect_timeout(&address, LIMIT).context("connecting")?;
    connection.set_read_timeout(Some(LIMIT))?;
    connection.write_all(b"GET / HTTP/1.1\r\nConnection: close\r\n\r\n")?;
    let mut answer = String::new();
    connection.read_to_string(&mut answer).context("the answer")?;
    println!("{}", answer.rsplit("\r\n\r\n").next().unwrap_or_default());
    Ok(())
}
