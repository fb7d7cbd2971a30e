//! How a call comes from the plugin to the daemon, and its answer back: over a socket, or as a file that waits.
//!
//! A call is `NAME=VALUE` for each variable of the environment that CNI defines, each ended by a zero byte; an empty one; and
//! the configuration. An answer is the exit code in decimal, a line feed, and what is printed.

use super::{Answer, Invocation};

/// The longest call: runtimes send configurations of a few kilobytes; GC names every container of the node, each with some
/// 200 bytes.
pub const CALL_BYTES_MAX: usize = 1 << 20;

/// The first entry of a call: which form it has.
const FORM: &str = "FAIRWAY_CNI=1";

/// Why bytes are no call or answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum WireError {
    /// Another program, or another release of it.
    #[error("it does not begin with {FORM}")]
    Form,
    /// The end is missing.
    #[error("it is cut short")]
    Short,
    /// No text.
    #[error("it is not text")]
    Text,
}

impl<'a> Invocation<'a> {
    /// A call out of an environment.
    pub fn of_environment(variable: impl Fn(&str) -> Option<String>, stdin: &'a [u8]) -> Self {
        Self {
            command: variable("CNI_COMMAND"),
            container_id: variable("CNI_CONTAINERID"),
            netns: variable("CNI_NETNS"),
            interface: variable("CNI_IFNAME"),
            args: variable("CNI_ARGS"),
            stdin,
        }
    }

    /// The call as bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        let Self { command, container_id, netns, interface, args, stdin } = self;
        let variables = [
            ("CNI_COMMAND", command),
            ("CNI_CONTAINERID", container_id),
            ("CNI_NETNS", netns),
            ("CNI_IFNAME", interface),
            ("CNI_ARGS", args),
        ];
        let mut bytes = Vec::with_capacity(stdin.len().saturating_add(1024));
        bytes.extend_from_slice(FORM.as_bytes());
        bytes.push(0);
        for (name, value) in variables {
            if let Some(value) = value {
                bytes.extend_from_slice(name.as_bytes());
                bytes.push(b'=');
                // An environment has no zero bytes; the end of a value must be the end.
                bytes.extend(value.bytes().filter(|it| *it != 0));
                bytes.push(0);
            }
        }
        bytes.push(0);
        bytes.extend_from_slice(stdin);
        bytes
    }

    /// The call that these bytes are.
    ///
    /// # Errors
    /// They are none.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, WireError> {
        let (first, mut rest) = entry(bytes)?;
        if first != FORM.as_bytes() {
            return Err(WireError::Form);
        }
        let mut variables: Vec<(&str, &str)> = Vec::new();
        loop {
            let (entry, after) = entry(rest)?;
            rest = after;
            if entry.is_empty() {
                break;
            }
            let text = std::str::from_utf8(entry).map_err(|_| WireError::Text)?;
            variables.extend(text.split_once('='));
        }
        let variable = |name: &str| {
            let found = variables.iter().find(|(it, _)| *it == name);
            found.map(|(_, value)| (*value).to_owned())
        };
        Ok(Self::of_environment(variable, rest))
    }
}

/// The bytes before the next zero byte, and those after it.
fn entry(bytes: &[u8]) -> Result<(&[u8], &[u8]), WireError> {
    let end = bytes.iter().position(|it| *it == 0).ok_or(WireError::Short)?;
    let (entry, rest) = bytes.split_at_checked(end).ok_or(WireError::Short)?;
    Ok((entry, rest.get(1..).unwrap_or_default()))
}

impl Answer {
    /// The answer as bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        let stdout = self.stdout.as_ref().map(ToString::to_string).unwrap_or_default();
        format!("{}\n{stdout}", self.exit).into_bytes()
    }

    /// The exit code and what is printed, out of the bytes of an answer.
    ///
    /// # Errors
    /// They are none.
    pub fn parse(bytes: &[u8]) -> Result<(u8, &[u8]), WireError> {
        let end = bytes.iter().position(|it| *it == b'\n').ok_or(WireError::Short)?;
        let (code, stdout) = bytes.split_at_checked(end).ok_or(WireError::Short)?;
        let code = std::str::from_utf8(code).ok().and_then(|it| it.parse().ok());
        Ok((code.ok_or(WireError::Text)?, stdout.get(1..).unwrap_or_default()))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_call_arrives_as_it_was_sent() {
        let call = Invocation {
            command: Some("ADD".to_owned()),
            container_id: Some("c1".to_owned()),
            netns: None,
            interface: Some("eth0".to_owned()),
            args: Some("IgnoreUnknown=1;K8S_POD_NAME=web=1".to_owned()),
            stdin: b"{\"a\": \"\0\"}\0",
        };
        assert_eq!(Invocation::parse(&call.to_bytes()), Ok(call));
        assert_eq!(Invocation::parse(b"FAIRWAY_CNI=1\0\0"), Ok(Invocation::default()));
    }

    #[test]
    fn bytes_that_are_no_call_are_refused() {
        let cases: [(&[u8], WireError); 5] = [
            (b"", WireError::Short),
            (b"FAIRWAY_CNI=1", WireError::Short),
            (b"FAIRWAY_CNI=1\0CNI_COMMAND=ADD\0", WireError::Short),
            (b"CNI_COMMAND=ADD\0\0", WireError::Form),
            (b"FAIRWAY_CNI=1\0CNI_ARGS=\xff\0\0", WireError::Text),
        ];
        for (bytes, error) in cases {
            assert_eq!(Invocation::parse(bytes), Err(error));
        }
    }

    #[test]
    fn an_answer_arrives_as_it_was_given() {
        let answer = Answer { exit: 1, stdout: Some(json!({"code": 11})) };
        assert_eq!(Answer::parse(&answer.to_bytes()), Ok((1, &b"{\"code\":11}"[..])));
        assert_eq!(Answer::parse(b"0\n"), Ok((0, &b""[..])));
        assert_eq!(Answer::parse(b"0"), Err(WireError::Short));
        assert_eq!(Answer::parse(b"256\n"), Err(WireError::Text));
    }
}
