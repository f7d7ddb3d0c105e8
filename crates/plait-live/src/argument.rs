//! Parses addresses in arguments, and explains invalid ones.

use std::fmt;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};

/// The reason why a text is not a valid address, and the allowed form.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AddressProblem {
    problem: String,
    /// The form, and an example close to the given text.
    allowed: String,
}

impl fmt::Display for AddressProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}\n  allowed: {}", self.problem, self.allowed)
    }
}

impl std::error::Error for AddressProblem {}

/// Parses an argument `ADDR:PORT`.
///
/// # Errors
/// If the text has another form. The error contains the allowed form.
pub fn address_and_port(text: &str) -> Result<SocketAddr, AddressProblem> {
    let refuse = |problem: &str, example: String| {
        let allowed = format!("ADDR:PORT, such as {example}");
        Err(AddressProblem { problem: problem.to_owned(), allowed })
    };
    match text.parse::<SocketAddr>() {
        Ok(address) if address.port() > 0 => return Ok(address),
        Ok(address) => {
            return refuse("port 0 cannot be used", SocketAddr::new(address.ip(), 80).to_string());
        }
        Err(_) => {}
    }
    let bare = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')).unwrap_or(text);
    if let Ok(address) = bare.parse::<IpAddr>() {
        let example = without_port(text, address);
        return refuse("the port is missing", example);
    }
    match text.rsplit_once(':') {
        Some((address, port)) if port.parse::<u16>().is_ok() && !address.is_empty() => {
            if address.parse::<Ipv6Addr>().is_ok() {
                return refuse("an IPv6 address needs brackets", format!("[{address}]:{port}"));
            }
            let problem = format!("`{}` is not an IP address", address.escape_debug());
            refuse(&problem, format!("10.77.0.1:{port}"))
        }
        Some((address, port)) if address.trim_matches(['[', ']']).parse::<IpAddr>().is_ok() => {
            let problem = format!("`{}` is not a port (1 to 65535)", port.escape_debug());
            refuse(&problem, format!("{address}:80"))
        }
        _ => refuse("no address and port", "10.77.0.1:80 or [fd77::1]:80".to_owned()),
    }
}

/// Returns possible readings of an address without a port. `fd77::1:80` may be an address and a port
/// without brackets.
fn without_port(text: &str, address: IpAddr) -> String {
    let whole = SocketAddr::new(address, 80).to_string();
    match text.rsplit_once(':') {
        Some((address, port)) if address.parse::<Ipv6Addr>().is_ok() => match port.parse::<u16>() {
            Ok(1..) => format!("[{address}]:{port}, or {whole}"),
            _ => whole,
        },
        _ => whole,
    }
}

/// Returns why no host can own this address. Returns `None` if a host can.
#[must_use]
pub fn not_of_a_host(address: IpAddr) -> Option<String> {
    let mapped = match address {
        IpAddr::V6(address) => address.to_ipv4_mapped(),
        IpAddr::V4(_) => None,
    };
    match address {
        _ if address.is_multicast() => Some("it is a multicast address, and TCP has none".into()),
        _ if address.is_unspecified() => Some("it stands for all addresses of a host".into()),
        IpAddr::V4(address) if address.is_broadcast() => Some("it stands for all hosts".into()),
        _ => mapped.map(|v4| format!("it is an IPv4 address in the form of IPv6\n  give {v4}")),
    }
}

/// Returns why no packet to this address can leave by a device. Returns `None` if one can.
#[must_use]
pub fn not_dialled(address: IpAddr) -> Option<String> {
    let own = "it is this host itself: no packet for it leaves by a device";
    not_of_a_host(address).or_else(|| address.is_loopback().then(|| own.to_owned()))
}

/// Parses the name of a network device. The kernel allows at most 15 bytes.
///
/// # Errors
/// If the name is invalid. The error contains the allowed form.
pub fn device_name(text: &str) -> Result<String, AddressProblem> {
    let problem = match text {
        "" => "it is empty",
        "." | ".." => "it is not a name",
        _ if text.len() > 15 => "it is longer than 15 bytes",
        _ if text
            .contains(|c: char| c == '/' || c == ':' || c.is_whitespace() || c.is_control()) =>
        {
            "slashes, colons, spaces and control characters"
        }
        _ if text.matches('%').count() > text.matches("%d").count() => "a `%` that is not `%d`",
        _ if text.matches("%d").count() > 1 => "more than one `%d`",
        _ => return Ok(text.to_owned()),
    };
    let allowed =
        "1 to 15 bytes without `/`, such as mptcp0; one `%d` becomes the next free number";
    Err(AddressProblem { problem: problem.to_owned(), allowed: allowed.to_owned() })
}

/// Parses an argument `ADDR`.
///
/// # Errors
/// If the text is not an IP address. The error contains the allowed form.
pub fn address(text: &str) -> Result<IpAddr, AddressProblem> {
    text.parse().map_err(|_| {
        let (problem, example) = match text.parse::<SocketAddr>() {
            Ok(both) => ("it has a port, which is not allowed here", both.ip().to_string()),
            Err(_) => ("no IP address", "10.77.0.2 or fd77::2".to_owned()),
        };
        AddressProblem { problem: problem.to_owned(), allowed: format!("ADDR, such as {example}") }
    })
}

/// Returns the error in an argument `HOST:PORT`, if there is one. Does not resolve the name.
#[must_use]
pub fn host_problem(text: &str) -> Option<AddressProblem> {
    let refuse = |problem: String, example: String| {
        Some(AddressProblem { problem, allowed: format!("HOST:PORT, such as {example}") })
    };
    let bare = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')).unwrap_or(text);
    if let Ok(address) = bare.parse::<Ipv6Addr>() {
        let example = without_port(text, address.into());
        return refuse("the port is missing".to_owned(), example);
    }
    if let Some((_, rest)) = text.split_once("://") {
        let bare = rest.split('/').next().unwrap_or_default();
        let port = if bare.contains(':') { "" } else { ":80" };
        let example = format!("{}{port}", bare.escape_debug());
        return refuse("it is a URL".to_owned(), example);
    }
    if text.contains('/') {
        return refuse("no host has a `/` in its name".to_owned(), "127.0.0.1:80".to_owned());
    }
    match text.rsplit_once(':') {
        None if text.is_empty() => refuse("no host and port".to_owned(), "127.0.0.1:80".to_owned()),
        None => refuse("the port is missing".to_owned(), format!("{}:80", text.escape_debug())),
        Some(("", _)) => refuse("the host is missing".to_owned(), format!("127.0.0.1{text}")),
        Some((host, port)) => match port.parse::<u16>() {
            Ok(1..) => None,
            _ => {
                let problem = format!("`{}` is not a port (1 to 65535)", port.escape_debug());
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
            ("fd77::1:80", "the port is missing", "[fd77::1]:80, or [fd77::1:80]:80"),
            ("10.0.0.1:0", "port 0 cannot be used", "10.0.0.1:80"),
            ("10.0.0.1:x", "`x` is not a port (1 to 65535)", "10.0.0.1:80"),
            ("10.0.0.1:", "`` is not a port (1 to 65535)", "10.0.0.1:80"),
            ("[fd77::1]:70000", "`70000` is not a port (1 to 65535)", "[fd77::1]:80"),
            ("localhost:80", "`localhost` is not an IP address", "10.77.0.1:80"),
            ("80", "no address and port", "10.77.0.1:80 or [fd77::1]:80"),
            (":80", "no address and port", "10.77.0.1:80 or [fd77::1]:80"),
            ("", "no address and port", "10.77.0.1:80 or [fd77::1]:80"),
        ] {
            let told = format!("{problem}\n  allowed: ADDR:PORT, such as {example}");
            assert_eq!(said(address_and_port(text)), told, "{text}");
        }
        assert_eq!(address_and_port("[fd77::1]:80").unwrap().port(), 80);
        // Nine groups can only be an address of eight groups and a port.
        let told = said(address_and_port("1:2:3:4:5:6:7:8:80"));
        assert!(told.contains("[1:2:3:4:5:6:7:8]:80"), "{told}");
    }

    #[test]
    fn addresses_that_no_host_has_are_known() {
        let at = |text: &str| text.parse::<IpAddr>().unwrap();
        for (address, words) in [
            ("224.0.0.1", "multicast"),
            ("ff02::1", "multicast"),
            ("0.0.0.0", "all addresses"),
            ("::", "all addresses"),
            ("255.255.255.255", "all hosts"),
            ("::ffff:10.0.0.1", "give 10.0.0.1"),
        ] {
            let told = not_of_a_host(at(address)).unwrap();
            assert!(told.contains(words), "{address}: {told}");
            assert_eq!(not_dialled(at(address)), Some(told));
        }
        for address in ["127.0.0.1", "127.255.0.9", "::1"] {
            assert_eq!(not_of_a_host(at(address)), None);
            assert!(not_dialled(at(address)).unwrap().contains("this host itself"));
        }
        for address in ["10.0.0.1", "fd77::1", "198.18.0.1", "fe80::1"] {
            assert_eq!(not_dialled(at(address)), None);
        }
    }

    #[test]
    fn names_of_devices_are_those_that_the_kernel_takes() {
        for name in ["plait%d", "a", "123456789012345", "wlan0.7"] {
            assert_eq!(device_name(name).unwrap(), name);
        }
        for (name, problem) in [
            ("1234567890123456", "it is longer than 15 bytes"),
            ("a/b", "slashes"),
            ("a b", "spaces"),
            ("", "it is empty"),
            ("..", "it is not a name"),
            ("a%s", "not `%d`"),
            ("a%d%d", "more than one"),
        ] {
            let told = said(device_name(name));
            assert!(told.contains(problem) && told.contains("\n  allowed: 1 to 15"), "{told}");
        }
    }

    #[test]
    fn what_is_no_address_is_told() {
        assert_eq!(
            said(address("10.0.0.1:80")),
            "it has a port, which is not allowed here\n  allowed: ADDR, such as 10.0.0.1"
        );
        assert!(said(address("x")).starts_with("no IP address\n"));
    }

    #[test]
    fn what_is_no_host_and_port_is_told_before_names_are_asked_for() {
        for (text, told) in [
            ("web", "the port is missing\n  allowed: HOST:PORT, such as web:80"),
            ("::1", "the port is missing\n  allowed: HOST:PORT, such as [::1]:80"),
            (":80", "the host is missing\n  allowed: HOST:PORT, such as 127.0.0.1:80"),
            ("web:http", "`http` is not a port (1 to 65535)\n  allowed: HOST:PORT, such as web:80"),
            ("", "no host and port\n  allowed: HOST:PORT, such as 127.0.0.1:80"),
            ("http://web:81/x", "it is a URL\n  allowed: HOST:PORT, such as web:81"),
            ("http://web", "it is a URL\n  allowed: HOST:PORT, such as web:80"),
            (
                "web:80/x",
                "no host has a `/` in its name\n  allowed: HOST:PORT, such as 127.0.0.1:80",
            ),
        ] {
            assert_eq!(host_problem(text).unwrap().to_string(), told, "{text}");
        }
        for text in ["web:80", "127.0.0.1:8080", "[::1]:80"] {
            assert_eq!(host_problem(text), None);
        }
    }
}
