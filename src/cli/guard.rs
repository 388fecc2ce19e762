//! Commands about fence guards.

use super::args::GuardCommand;
use super::connection::Said;
use super::output::Output;
use super::{Ended, drill, git_push};
use crate::wire::problem::EXIT_DONE;

/// Runs one of them.
pub(super) async fn run(said: Said<'_>, output: &mut Output, command: &GuardCommand) -> Ended {
    match command {
        GuardCommand::PrintGuard { target } => {
            output.verbatim(target.text())?;
            Ok(EXIT_DONE)
        }
        GuardCommand::GitPush(args) => git_push::push(said.environment, output, args).await,
        GuardCommand::Drill => drill::run(said, output).await,
    }
}
