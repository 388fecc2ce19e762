//! Which hosts a server answers to, and whose pages may ask it.
//!
//! A page of another site can make a browser send requests to a server on this machine, and can
//! have a name of its own point at it, after which the browser takes the page and the server for
//! one site. What it can't do is send another `Host` than the name that it used, or another
//! `Origin` than its own. So both must be names that the server is known by.
//!
//! Deliberately absent: CORS headers. No page of another site may read an answer.

use std::net::{IpAddr, Ipv6Addr};
use std::sync::Arc;

use axum::http::uri::{Authority, Uri};
use axum::http::{HeaderValue, Request, Version, header};

use super::failure::Failure;

/// The hosts that a server answers to.
#[derive(Debug, Clone)]
pub(super) enum Hosts {
    /// All: it isn't known by which names it is reached.
    Any,
    /// These, as [`canonical`] spells them.
    These(Arc<[String]>),
}

impl Hosts {
    /// The allowed ones, and those of the loopback if that is where the server listens. A server
    /// that others reach and that was told no names answers to any.
    pub(super) fn new(listen: IpAddr, allowed: &[String]) -> Self {
        let mut hosts: Vec<String> = allowed.iter().map(|host| canonical(host)).collect();
        if listen.to_canonical().is_loopback() {
            hosts.extend(["localhost", "127.0.0.1", "[::1]"].map(str::to_owned));
            // Another address of the loopback is reached by itself only.
            hosts.push(match listen {
                IpAddr::V4(address) => address.to_string(),
                IpAddr::V6(address) => format!("[{address}]"),
            });
        }
        if hosts.is_empty() { Self::Any } else { Self::These(hosts.into()) }
    }

    /// Refuses a request that is meant for another host, or comes from another site's page.
    pub(super) fn admit<B>(&self, request: &Request<B>) -> Result<(), Failure> {
        let mut hosts = request.headers().get_all(header::HOST).iter();
        match (hosts.next(), hosts.next()) {
            (Some(host), None) if self.has_host(host) => {}
            (Some(_), None) => return Err(Failure::OtherHost),
            // Only old health checks send none. A browser always does.
            (None, _) if request.version() == Version::HTTP_10 => {}
            (None, _) | (Some(_), Some(_)) => {
                return Err(Failure::malformed("a request has one header Host"));
            }
        }
        // A target with a host in it stands above the header.
        if request.uri().authority().is_some_and(|authority| !self.has(authority)) {
            return Err(Failure::OtherHost);
        }
        let origins = request.headers().get_all(header::ORIGIN);
        if origins.iter().all(|origin| self.has_origin(origin)) {
            Ok(())
        } else {
            Err(Failure::OtherOrigin)
        }
    }

    fn has_host(&self, host: &HeaderValue) -> bool {
        match self {
            Self::Any => true,
            Self::These(_) => {
                Authority::try_from(host.as_bytes()).is_ok_and(|authority| self.has(&authority))
            }
        }
    }

    /// Whether it is the origin of a page that the server itself, by one of its names, could have
    /// sent. `null` stands for a page that hides where it is from.
    fn has_origin(&self, origin: &HeaderValue) -> bool {
        let Ok(origin) = Uri::try_from(origin.as_bytes()) else { return false };
        let has_scheme = origin.scheme().is_some();
        has_scheme && origin.authority().is_some_and(|authority| self.has(authority))
    }

    /// Whether a host is one of these, at any port.
    fn has(&self, authority: &Authority) -> bool {
        match self {
            Self::Any => true,
            // What stands before an @ is no host, and nobody needs it here.
            Self::These(_) if authority.as_str().contains('@') => false,
            Self::These(hosts) => hosts.contains(&canonical(authority.host())),
        }
    }
}

/// A host in one spelling.
fn canonical(host: &str) -> String {
    let bracketed = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
    match bracketed.and_then(|address| address.parse::<Ipv6Addr>().ok()) {
        Some(address) => format!("[{address}]"),
        None => host.to_ascii_lowercase(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hosts(listen: &str, allowed: &[&str]) -> Hosts {
        let allowed: Vec<String> = allowed.iter().map(|&host| host.to_owned()).collect();
        Hosts::new(listen.parse().expect("an address"), &allowed)
    }

    /// What a request is told: it has this target and these headers.
    fn said(hosts: &Hosts, target: &str, headers: &[(&str, &str)]) -> String {
        let mut request = Request::builder().uri(target);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(()).expect("a request that HTTP allows");
        hosts.admit(&request).map_or_else(|failure| failure.to_string(), |()| "ok".to_owned())
    }

    fn is_admitted(hosts: &Hosts, host: &str) -> bool {
        said(hosts, "/livez", &[("host", host)]) == "ok"
    }

    #[test]
    fn on_the_loopback_only_its_own_names_are_answered() {
        for listen in ["127.0.0.1", "::1", "::ffff:127.0.0.1"] {
            let hosts = hosts(listen, &[]);
            for host in [
                "localhost",
                "localhost:7420",
                "LocalHost:1",
                "127.0.0.1:7420",
                "[::1]:7420",
                "[0:0:0:0:0:0:0:1]",
            ] {
                assert!(is_admitted(&hosts, host), "{listen} {host}");
            }
            for host in [
                "evil.example",
                "evil.example:7420",
                "localhost.evil.example",
                "127.0.0.1.evil.example",
                "evil.example@localhost",
                "localhost@evil.example",
                "127.0.0.2",
                "localhost, evil.example",
                "",
            ] {
                assert!(!is_admitted(&hosts, host), "{listen} {host}");
            }
        }
        assert!(is_admitted(&hosts("127.0.0.2", &[]), "127.0.0.2:7420"));
    }

    #[test]
    fn names_that_are_allowed_come_beside_those_of_the_loopback_and_are_all_elsewhere() {
        let loopback = hosts("127.0.0.1", &["Locks.Example"]);
        assert!(is_admitted(&loopback, "locks.example:443") && is_admitted(&loopback, "localhost"));
        assert!(!is_admitted(&loopback, "evil.example"));
        for listen in ["0.0.0.0", "192.0.2.1", "::"] {
            assert!(is_admitted(&hosts(listen, &[]), "evil.example"), "{listen}");
            let named = hosts(listen, &["locks.example", "[2001:db8::1]"]);
            assert!(is_admitted(&named, "locks.example") && is_admitted(&named, "[2001:DB8::1]:1"));
            assert!(!is_admitted(&named, "evil.example") && !is_admitted(&named, "localhost"));
        }
    }

    #[test]
    fn an_origin_has_to_be_an_allowed_host_too() {
        let loopback = hosts("127.0.0.1", &[]);
        let said = |hosts: &Hosts, origin| {
            said(hosts, "/v1/whoami", &[("host", "localhost"), ("origin", origin)])
        };
        for origin in ["http://localhost", "http://127.0.0.1:7420", "https://[::1]:1"] {
            assert_eq!(said(&loopback, origin), "ok", "{origin}");
        }
        for origin in
            ["null", "", "https://evil.example", "localhost", "localhost:7420", "file://", "*"]
        {
            assert_eq!(said(&loopback, origin), "forbidden: origin", "{origin}");
        }
        let any = hosts("0.0.0.0", &[]);
        assert_eq!(said(&any, "https://locks.example"), "ok");
        assert_eq!(said(&any, "null"), "forbidden: origin");
    }

    #[test]
    fn each_header_and_the_target_are_judged() {
        let hosts = hosts("127.0.0.1", &[]);
        let local = ("host", "localhost");
        for (target, headers, expected) in [
            ("http://localhost:7420/livez", vec![local], "ok"),
            ("http://evil.example/livez", vec![local], "forbidden: host"),
            ("/livez", vec![], "malformed: a request has one header Host"),
            ("/livez", vec![local, local], "malformed: a request has one header Host"),
            (
                "/livez",
                vec![local, ("origin", "http://localhost"), ("origin", "http://evil.example")],
                "forbidden: origin",
            ),
        ] {
            assert_eq!(said(&hosts, target, &headers), expected, "{target} {headers:?}");
        }
        let mut old = Request::new(());
        *old.version_mut() = Version::HTTP_10;
        assert!(hosts.admit(&old).is_ok());
    }
}
