//! Addresses as arguments, and what to say of texts that are none.

use std::fmt;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};

/// Why a text is not the address that is wanted, and what would be.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct AddressProblem {
    problem: String,
    /// The shape, and an example close to what was given.
    allowed: String,
}

impl fmt::Display for AddressProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}\n  allowed: {}", self.problem, self.allowed)
    }
}

impl std::error::Error for AddressProblem {}

/// Of an argument `ADDR:PORT`.
pub(crate) fn address_and_port(text: &str) -> Result<SocketAddr, AddressProblem> {
    let refuse = |problem: &str, example: String| {
        let allowed = format!("ADDR:PORT, as {example}");
        Err(AddressProblem { problem: problem.to_owned(), allowed })
    };
    match text.parse::<SocketAddr>() {
        Ok(address) if address.port() > 0 => return Ok(address),
        Ok(address) => {
            return refuse("port 0 is none", SocketAddr::new(address.ip(), 80).to_string());
        }
        Err(_) => {}
    }
    let bare = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')).unwrap_or(text);
    if let Ok(address) = bare.parse::<IpAddr>() {
        let example = SocketAddr::new(address, 80).to_string();
        return refuse("the port is missing", example);
    }
    match text.rsplit_once(':') {
        Some((address, port)) if port.parse::<u16>().is_ok() && !address.is_empty() => {
            if address.parse::<Ipv6Addr>().is_ok() {
                return refuse("IPv6 addresses stand in brackets", format!("[{address}]:{port}"));
            }
            let problem = format!("`{}` is no IP address", address.escape_debug());
            refuse(&problem, format!("10.77.0.1:{port}"))
        }
        Some((address, port)) if address.trim_matches(['[', ']']).parse::<IpAddr>().is_ok() => {
            let problem = format!("`{}` is no port (1 to 65535)", port.escape_debug());
            refuse(&problem, format!("{address}:80"))
        }
        _ => refuse("no address and port", "10.77.0.1:80 or [fd77::1]:80".to_owned()),
    }
}

/// Of an argument `ADDR`.
pub(crate) fn address(text: &str) -> Result<IpAddr, AddressProblem> {
    text.parse().map_err(|_| {
        let (problem, example) = match text.parse::<SocketAddr>() {
            Ok(both) => ("it has a port, which has no place here", both.ip().to_string()),
            Err(_) => ("no IP address", "10.77.0.2 or fd77::2".to_owned()),
        };
        AddressProblem { problem: problem.to_owned(), allowed: format!("ADDR, as {example}") }
    })
}

/// What is wrong with an argument `HOST:PORT`, as far as that can be seen without asking for names.
pub(crate) fn host_problem(text: &str) -> Option<AddressProblem> {
    let refuse = |problem: String, example: String| {
        Some(AddressProblem { problem, allowed: format!("HOST:PORT, as {example}") })
    };
    let bare = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')).unwrap_or(text);
    if bare.parse::<Ipv6Addr>().is_ok() {
        return refuse("the port is missing".to_owned(), format!("[{bare}]:80"));
    }
    match text.rsplit_once(':') {
        None if text.is_empty() => refuse("no host and port".to_owned(), "127.0.0.1:80".to_owned()),
        None => refuse("the port is missing".to_owned(), format!("{}:80", text.escape_debug())),
        Some(("", _)) => refuse("the host is missing".to_owned(), format!("127.0.0.1{text}")),
        Some((host, port)) => match port.parse::<u16>() {
            Ok(1..) => None,
            _ => {
                let problem = format!("`{}` is no port (1 to 65535)", port.escape_debug());
                refuse(problem, format!("{}:80", host.escape_debug()))
            }
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said<T: fmt::Debug>(outcome: Result<T, AddressProblem>) -> String {
        outcome.unwrap_err().to_string()
    }

    #[test]
    fn what_is_no_address_and_port_is_told_with_the_nearest_one() {
        for (text, problem, example) in [
            ("10.0.0.1", "the port is missing", "10.0.0.1:80"),
            ("fd77::1", "the port is missing", "[fd77::1]:80"),
            ("[fd77::1]", "the port is missing", "[fd77::1]:80"),
            ("10.0.0.1:0", "port 0 is none", "10.0.0.1:80"),
            ("10.0.0.1:x", "`x` is no port (1 to 65535)", "10.0.0.1:80"),
            ("10.0.0.1:", "`` is no port (1 to 65535)", "10.0.0.1:80"),
            ("[fd77::1]:70000", "`70000` is no port (1 to 65535)", "[fd77::1]:80"),
            ("localhost:80", "`localhost` is no IP address", "10.77.0.1:80"),
            ("80", "no address and port", "10.77.0.1:80 or [fd77::1]:80"),
            (":80", "no address and port", "10.77.0.1:80 or [fd77::1]:80"),
            ("", "no address and port", "10.77.0.1:80 or [fd77::1]:80"),
        ] {
            let told = format!("{problem}\n  allowed: ADDR:PORT, as {example}");
            assert_eq!(said(address_and_port(text)), told, "{text}");
        }
        assert_eq!(address_and_port("[fd77::1]:80").unwrap().port(), 80);
        // It could be an address of eight groups that lacks a port, and is one with a port.
        let told = said(address_and_port("1:2:3:4:5:6:7:8:80"));
        assert!(told.contains("[1:2:3:4:5:6:7:8]:80"), "{told}");
    }

    #[test]
    fn what_is_no_address_is_told() {
        assert_eq!(
            said(address("10.0.0.1:80")),
            "it has a port, which has no place here\n  allowed: ADDR, as 10.0.0.1"
        );
        assert!(said(address("x")).starts_with("no IP address\n"));
    }

    #[test]
    fn what_is_no_host_and_port_is_told_before_names_are_asked_for() {
        for (text, told) in [
            ("web", "the port is missing\n  allowed: HOST:PORT, as web:80"),
            ("::1", "the port is missing\n  allowed: HOST:PORT, as [::1]:80"),
            (":80", "the host is missing\n  allowed: HOST:PORT, as 127.0.0.1:80"),
            ("web:http", "`http` is no port (1 to 65535)\n  allowed: HOST:PORT, as web:80"),
            ("", "no host and port\n  allowed: HOST:PORT, as 127.0.0.1:80"),
        ] {
            assert_eq!(host_problem(text).unwrap().to_string(), told, "{text}");
        }
        for text in ["web:80", "127.0.0.1:8080", "[::1]:80"] {
            assert_eq!(host_problem(text), None);
        }
    }
}
