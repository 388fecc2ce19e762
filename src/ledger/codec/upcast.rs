//! Old shapes of events, and what each means in the newest one.
//!
//! A shape that was ever written stands here for ever, so that every ledger stays readable.

use schemars::JsonSchema;
use serde::Deserialize;

use crate::domain::event::{Event, Shape, UserCreated};
use crate::domain::name::UserName;

/// Declares the old shapes once: type on the wire, version, data.
macro_rules! old_shapes {
    ($($type:literal, $version:literal = $data:ident;)*) => {
        /// The old versions of all types.
        pub(super) const OLD_SHAPES: &[Shape] = &[$(Shape::new::<$data>($type, $version),)*];

        /// Reads the `data` of an old version of a type; `None` if there never was that version.
        pub(super) fn from_old_data(
            type_name: &str,
            version: u32,
            data: &str,
        ) -> Option<serde_json::Result<Event>> {
            match (type_name, version) {
                $(($type, $version) => {
                    Some(serde_json::from_str(data).map(|old: $data| old.into()))
                })*
                _ => None,
            }
        }
    };
}

old_shapes! {
    "user.created", 1 = UserCreated1;
}

/// `user.created`, version 1: there were no agents.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct UserCreated1 {
    /// The user.
    user: UserName,
    /// Whether it administers the server.
    admin: bool,
}

impl From<UserCreated1> for Event {
    fn from(old: UserCreated1) -> Self {
        let UserCreated1 { user, admin } = old;
        Self::UserCreated(UserCreated { user, admin, person: None })
    }
}

#[cfg(test)]
mod tests {
    use super::super::decode;

    #[test]
    fn a_user_of_the_first_version_is_no_agent() {
        let line = concat!(
            r#"{"sequence":4,"time":"2025-11-29T15:54:55.007Z","actor":"ana","#,
            r#""type":"user.created","version":1,"subject":"users/bo","#,
            r#""data":{"user":"bo","admin":true}}"#
        );
        let record = decode(line.as_bytes()).expect("a record of the first version");
        let data = serde_json::to_string(&record.event).expect("it has text keys only");
        assert_eq!(data, r#"{"user":"bo","admin":true,"person":null}"#);
    }
}
