//! Target of `plait get`.

use crate::failure::Failure;

const ALLOWED: &str = "allowed: http://HOST[:PORT]/PATH, or HOST:PORT";

/// Server and resource to fetch.
#[derive(PartialEq, Eq, Debug)]
pub(super) struct Target {
    /// `HOST:PORT`.
    pub(super) authority: String,
    /// Path of a URL; `None` for `HOST:PORT`.
    pub(super) resource: Option<String>,
}

impl Target {
    pub(super) fn parse(text: &str) -> Result<Target, Failure> {
        let given = text.escape_debug();
        let refuse = |what: &str| Err(Failure::Usage(format!("`{given}`: {what}")));
        let Some((scheme, rest)) = text.split_once("://") else {
            if text.contains(['/', '@']) {
                return refuse(&format!("it is neither a URL nor HOST:PORT\n  {ALLOWED}"));
            }
            return Ok(Target { authority: text.to_owned(), resource: None });
        };
        if !scheme.eq_ignore_ascii_case("http") {
            let scheme = scheme.escape_debug();
            return refuse(&format!(
                "`{scheme}` is not supported\n  allowed: http://HOST[:PORT]/PATH"
            ));
        }
        let at = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        let (authority, path) = rest.split_at(at);
        if authority.contains('@') {
            return refuse(&format!("users and passwords are not supported\n  {ALLOWED}"));
        }
        if authority.is_empty() {
            return refuse(&format!("the host is missing\n  {ALLOWED}"));
        }
        let path = path.split('#').next().unwrap_or_default();
        if path.contains(|c: char| c.is_ascii_control() || c == ' ') {
            return refuse("it has spaces or control characters\n  write them as %20 and the like");
        }
        let has_port = authority.rsplit(']').next().is_some_and(|tail| tail.contains(':'));
        let port = if has_port { "" } else { ":80" };
        let slash = if path.starts_with('/') { "" } else { "/" };
        let resource = Some(format!("{slash}{path}"));
        Ok(Target { authority: format!("{authority}{port}"), resource })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_is_a_url_or_a_host_and_port() {
        for (text, authority, resource) in [
            ("10.0.0.1:7", "10.0.0.1:7", None),
            ("http://10.0.0.1", "10.0.0.1:80", Some("/")),
            ("HTTP://web:81/a/b?c#d", "web:81", Some("/a/b?c")),
            ("http://web?c", "web:80", Some("/?c")),
            ("http://web#d", "web:80", Some("/")),
            ("http://[fd77::1]/@", "[fd77::1]:80", Some("/@")),
            ("http://[fd77::1]:81/x", "[fd77::1]:81", Some("/x")),
        ] {
            let resource = resource.map(str::to_owned);
            let target = Target { authority: authority.to_owned(), resource };
            assert_eq!(Target::parse(text).unwrap(), target);
        }
    }

    #[test]
    fn what_is_no_target_is_refused_with_what_would_be_one() {
        for (text, problem) in [
            ("http:/10.0.0.1/x", "it is neither a URL nor HOST:PORT\n  allowed: http://HOST"),
            ("10.0.0.1:80/x", "it is neither a URL nor HOST:PORT\n  allowed: http://HOST"),
            ("https://web/", "`https` is not supported\n  allowed: http://HOST[:PORT]/PATH"),
            ("http://user:pw@web/", "users and passwords are not supported"),
            ("user:pw@web:80", "it is neither a URL nor HOST:PORT"),
            ("http:///x", "the host is missing"),
            ("http://web/a b", "write them as %20"),
        ] {
            let told = Target::parse(text).unwrap_err().to_string();
            assert!(told.contains(problem), "{told}");
        }
    }
}
