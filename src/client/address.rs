//! The address of a server, so that two of them can be compared.

use std::fmt;
use std::str::FromStr;

use reqwest::Url;

/// Where a server is.
#[derive(Clone, PartialEq, Eq)]
pub struct ServerUrl(Url);

impl ServerUrl {
    /// The address as it was given, but for its form. It can hold a password.
    pub fn as_str(&self) -> &str {
        self.0.as_str().trim_end_matches('/')
    }

    /// What calls are made of.
    pub(super) fn url(&self) -> &Url {
        &self.0
    }

    /// Whether it is on this machine.
    pub(super) fn is_loopback(&self) -> bool {
        let host = self.0.host_str().unwrap_or("").trim_start_matches('[').trim_end_matches(']');
        host == "localhost" || host.parse().is_ok_and(|ip: std::net::IpAddr| ip.is_loopback())
    }
}

impl FromStr for ServerUrl {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        // The text itself is not repeated: a token can be pasted into the wrong place.
        let mut url = Url::parse(text).map_err(|why| format!("is no address: {why}"))?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err("is no http or https address".to_owned());
        }
        if url.query().is_some() || url.fragment().is_some() {
            return Err("holds more than an address: ? or #".to_owned());
        }
        let path = url.path().trim_end_matches('/').to_owned();
        url.set_path(&path);
        Ok(Self(url))
    }
}

/// Without its password, which is nobody's who reads messages.
impl fmt::Display for ServerUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = self.clone();
        // Both work for each http address; and if not, what is shown is what was there.
        let _ = shown.0.set_username("");
        let _ = shown.0.set_password(None);
        f.write_str(shown.as_str())
    }
}

impl fmt::Debug for ServerUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(text: &str) -> ServerUrl {
        text.parse().unwrap_or_else(|why| panic!("{text}: {why}"))
    }

    #[test]
    fn one_server_in_two_spellings_is_one_address() {
        for (one, other) in [
            ("http://host:80", "HTTP://Host/"),
            ("https://host/base", "https://host:443/base/"),
            ("http://127.0.0.1:7420", "http://127.0.0.1:7420/"),
        ] {
            assert_eq!(url(one), url(other));
        }
        for other in ["http://host:81", "https://host", "http://hosts", "http://host/b"] {
            assert_ne!(url("http://host"), url(other));
        }
        assert_eq!(url("http://127.0.0.1:7420/").as_str(), "http://127.0.0.1:7420");
    }

    #[test]
    fn an_address_is_shown_without_its_password() {
        assert_eq!(url("http://ana:secret@host:1/a@b").to_string(), "http://host:1/a@b");
        assert_eq!(format!("{:?}", url("http://ana:secret@host:1")), "http://host:1");
        assert_eq!(url("http://ana:secret@host:1").as_str(), "http://ana:secret@host:1");
    }

    #[test]
    fn what_is_no_address_is_refused_and_not_repeated() {
        for bad in ["", "secret", "secret:1", "ftp://secret", "http://", "http://a?secret", "/a"] {
            let why = bad.parse::<ServerUrl>().expect_err(bad);
            assert!(!why.contains("secret"), "{why}");
        }
    }
}
