//! The command line of what users say they are doing.

use clap::Subcommand;

use super::PageArgs;
use crate::domain::id::RequestUuid;
use crate::domain::text::ActivityText;
use crate::flags::{Parsed, invalid, uuid};

/// A command about what users say they are doing.
#[derive(Debug, Subcommand)]
pub(in crate::cli) enum ActivityCommand {
    /// Say what you are doing, or that you are doing nothing
    #[command(group = clap::ArgGroup::new("what").required(true))]
    UpdateUserActivity {
        /// What you are doing, in up to 500 characters
        #[arg(long, value_name = "TEXT", group = "what", value_parser = activity)]
        activity: Option<ActivityText>,
        /// You are doing nothing
        #[arg(long, group = "what", conflicts_with = "request_uuid")]
        clear: bool,
        /// Names this update, so that a retry of it is known as such; made and printed if left out
        #[arg(long, value_name = "UUID", value_parser = uuid::<RequestUuid>("request_uuid"))]
        request_uuid: Option<RequestUuid>,
    },
    /// List what everyone is doing whom you share a team or repository with
    ListActivity(PageArgs),
}

fn activity(text: &str) -> Parsed<ActivityText> {
    ActivityText::try_from(text.to_owned()).map_err(|rule| invalid("activity", rule))
}
