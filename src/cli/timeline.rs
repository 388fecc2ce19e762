//! Draws what happened to locks.

use super::args::TimelineArgs;
use super::output::Output;
use super::{Ended, Failure};
use crate::client::{Client, Drawing, Timeline};
use crate::columns::of_terminal;
use crate::wire::problem::EXIT_DONE;

pub(super) async fn draw(client: &Client, output: &mut Output, args: &TimelineArgs) -> Ended {
    let drawing = if args.svg {
        Drawing::Svg
    } else {
        let is_shown = args.out.is_none();
        Drawing::Text(args.width.or_else(|| is_shown.then(of_terminal).flatten()))
    };
    let timeline = Timeline {
        scope: args.scope.scope(),
        lock_name: args.lock_name.clone(),
        from: args.from.clone(),
        to: args.to.clone(),
    };
    let drawn = client.timeline(&timeline, drawing).await?;
    match &args.out {
        Some(path) => {
            let failed = |error| Failure::Store(format!("{}: {error}", path.display()));
            std::fs::write(path, drawn).map_err(failed)?;
        }
        None => {
            let json = serde_json::to_string(&drawn).expect("a text is JSON");
            output.result(&json, || drawn)?;
        }
    }
    Ok(EXIT_DONE)
}
