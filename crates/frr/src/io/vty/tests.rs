//! Answers in pieces, too long and missing. With a real FRR: `crates/frr/tests/daemons`.

use tokio::net::UnixListener;

use super::*;

/// A daemon that answers each command with the next of these pieces, and then is silent.
struct Daemon {
    folder: tempfile::TempDir,
}

impl Daemon {
    fn answering(answers: Vec<Vec<&'static [u8]>>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let listener = UnixListener::bind(folder.path().join("bgpd.vty")).unwrap();
        tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            for pieces in answers {
                while stream.read_u8().await.unwrap() != 0 {}
                for piece in pieces {
                    stream.write_all(piece).await.unwrap();
                    stream.flush().await.unwrap();
                    tokio::task::yield_now().await;
                }
            }
            // Open, and silent.
            while stream.read_u8().await.is_ok() {}
        });
        Self { folder }
    }

    async fn connect(&self) -> Connection {
        let path = self.folder.path().join("bgpd.vty");
        Connection::connect_with_timeout(path, Duration::from_millis(200)).await.unwrap()
    }
}

#[tokio::test]
async fn an_answer_in_pieces_is_one_answer() {
    let pieces: Vec<&[u8]> = vec![b"hostname ", b"tor", b"\0", b"\0\0", b"\0"];
    let daemon = Daemon::answering(vec![pieces, vec![b"% Unknown\n\0\0\0\x02"]]);
    let mut connection = daemon.connect().await;
    let reply = connection.command("show running-config").await.unwrap();
    assert_eq!(reply, Reply { status: Status::Success, text: "hostname tor".to_owned() });
    let reply = connection.command("bogus").await.unwrap();
    assert_eq!((reply.status, reply.text.as_str()), (Status::Unknown, "% Unknown\n"));
}

#[tokio::test]
async fn a_silent_daemon_ends_the_conversation_in_time() {
    let daemon = Daemon::answering(vec![vec![b"half an answer"]]);
    let mut connection = daemon.connect().await;
    let error = connection.command("show version").await.unwrap_err();
    assert!(matches!(error, VtyError::Silent { .. }), "{error}");
    let error = connection.command("show version").await.unwrap_err();
    assert!(matches!(error, VtyError::Unanswered(_)), "{error}");
}

#[tokio::test]
async fn a_line_that_would_be_two_is_never_said() {
    let daemon = Daemon::answering(vec![vec![b"\0\0\0\0"]]);
    let mut connection = daemon.connect().await;
    for line in ["a\nb", "a\0b", "a\rb"] {
        assert!(matches!(connection.command(line).await, Err(VtyError::NotALine(_))));
    }
    assert_eq!(connection.command("enable").await.unwrap().status, Status::Success);
}

#[tokio::test]
async fn nobody_there_says_where() {
    let error = Connection::connect("/nonexistent/bgpd.vty").await.unwrap_err();
    assert!(error.to_string().contains("/nonexistent/bgpd.vty"), "{error}");
}
