//! The workflow, as a model reads it: instructions for every session, and prompts for two moments.

use rmcp::model::{GetPromptResult, Prompt, PromptArgument, PromptMessage, Role};
use serde_json::{Map, Value};

use super::tool::WHAT_DO_I_HOLD;

const WORK: &str = "work_under_lock";
const RECOVER: &str = "recover_after_lease_loss";

/// What every client tells its model.
pub(super) fn instructions(can_keep_alive: bool) -> String {
    let keep = if can_keep_alive {
        "4. Keep it. Before a step that takes longer than a third of the lease, either call \
         heartbeat_lock_ticket, or have acquired with keep_alive_minutes, which heartbeats for you."
    } else {
        "4. Keep it. Call heartbeat_lock_ticket about every third of lease_seconds; take a \
         lease_seconds (5 to 300) that outlasts your longest step."
    };
    format!(
        "Pearing gives one identity at a time a time-limited claim on named work, so that the same \
         work is not done twice.\n\
         1. Take it. Derive one lock name from the work (thread 42 is thread-work.42) and call \
         acquire_lock with the repository, a new random request_uuid and a wait_seconds. If the \
         answer gets lost, call again with the same request_uuid.\n\
         2. Look at ticket.state. held: go on. waiting: call get_lock_ticket until it is not. \
         contended: somebody else does it; leave it. deadlock_rejected: release what you hold, \
         or give up.\n\
         3. Read the current state of the work. Holding the lock doesn't mean that work is left: \
         whoever held it before may have finished. If so, release and stop.\n\
         {keep}\n\
         5. Fence what you write: give the fence_token to whatever you write to (create_reply \
         takes fence_lock_name and fence_token).\n\
         6. If a heartbeat is refused, or the lease ran out, stop writing at once: another may \
         hold the lock now.\n\
         7. Release every ticket that you acquired.\n\
         Two sessions with the same token are ONE identity; with reentrant false the second one \
         is told so. If you don't know what you were doing, call {WHAT_DO_I_HOLD}."
    )
}

/// The prompts, as a client lists them.
pub(super) fn prompts() -> Vec<Prompt> {
    let argument = |name: &str, what: &str, is_required: bool| {
        PromptArgument::new(name).with_description(what).with_required(is_required)
    };
    let repo = argument("repo", "The repository, like teams/platform/website", true);
    let lock_name = argument("lock_name", "The lock, like thread-work.42", true);
    vec![
        Prompt::new(
            WORK,
            Some("Do some work that must not be done twice, under its lock."),
            Some(vec![
                repo.clone(),
                lock_name.clone(),
                argument("task", "What is to be done", false),
            ]),
        ),
        Prompt::new(
            RECOVER,
            Some("Go on safely after a lease was lost, or may have been."),
            Some(vec![repo, lock_name, argument("ticket_id", "The ticket that was lost", false)]),
        ),
    ]
}

/// A prompt with its arguments.
///
/// # Errors
/// There is no such prompt, or an argument is missing: why.
pub(super) fn prompt(name: &str, given: &Map<String, Value>) -> Result<GetPromptResult, String> {
    let known = prompts();
    let prompt = known.iter().find(|prompt| prompt.name == name);
    let prompt = prompt.ok_or_else(|| format!("there is no prompt {name}"))?;
    let said = |name: &str| given.get(name).and_then(Value::as_str).unwrap_or_default();
    let arguments = prompt.arguments.iter().flatten();
    if let Some(missing) =
        arguments.filter(|one| one.required == Some(true)).find(|one| said(&one.name).is_empty())
    {
        return Err(format!("{} is required", missing.name));
    }
    let (repo, lock_name) = (said("repo"), said("lock_name"));
    let text = if name == WORK {
        let task = match said("task") {
            "" => format!("the work that the lock {lock_name} stands for"),
            task => task.to_owned(),
        };
        format!(
            "Do this under the lock {lock_name} in {repo}: {task}\n\n\
             Call acquire_lock with repo {repo}, lock_name {lock_name}, a new random request_uuid, \
             lease_seconds 300 and wait_seconds 600. If ticket.state is waiting, call \
             get_lock_ticket until it is not. If it is contended or deadlock_rejected, or the wait \
             ended, stop and say who has the lock. When it is held, first read the current state: \
             if the work is done already, release the ticket and say so. Else do it, call \
             heartbeat_lock_ticket between steps, and give the fence token with everything that \
             you write. If a heartbeat is refused, stop at once. At the end, call \
             release_lock_ticket, also when you failed, and say what you did."
        )
    } else {
        let ticket = match said("ticket_id") {
            "" => format!("Call {WHAT_DO_I_HOLD} to see whether you still hold it."),
            ticket => {
                format!("Call get_lock_ticket with ticket_id {ticket} and wait_here_seconds 0.")
            }
        };
        format!(
            "Your lease on {lock_name} in {repo} may be lost. Write nothing for it until this is \
             clear.\n\n{ticket} If the state is held and lease_remaining_ms is more than 0, \
             heartbeat it and go on. Otherwise the lock is not yours any more, whatever you were \
             in the middle of: call why_lock_ticket to learn how it ended, and don't write with \
             the old fence token. If the work still has to be done, acquire the lock again with a \
             new request_uuid; when it is held, read the current state before anything else, since \
             another may have gone on from where you stopped, and only then decide what is left."
        )
    };
    let message = PromptMessage::new_text(Role::User, text);
    Ok(GetPromptResult::new(vec![message]))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_a_text_tells_a_model_to_call_is_there() {
        let names: Vec<String> =
            super::super::tools(true).iter().map(|tool| tool.name.to_string()).collect();
        let given = json!({ "repo": "users/a/b", "lock_name": "x" });
        let given = given.as_object().expect("an object");
        let mut texts = vec![instructions(true), instructions(false)];
        for name in [WORK, RECOVER] {
            let prompt = prompt(name, given).expect("there is such a prompt");
            texts.push(serde_json::to_string(&prompt).expect("it is JSON"));
        }
        let is_call = |word: &&str| {
            ["_lock", "_ticket", "_reply", "_hold"].iter().any(|end| word.ends_with(end))
        };
        for text in texts {
            let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
            for word in words.filter(is_call).filter(|word| *word != WORK) {
                assert!(names.iter().any(|name| name == word), "{word} in {text}");
            }
        }
    }

    #[test]
    fn a_prompt_needs_its_arguments() {
        let none = Map::new();
        assert_eq!(prompt(WORK, &none).expect_err("none"), "repo is required");
        assert_eq!(prompt("sing", &none).expect_err("none"), "there is no prompt sing");
    }
}
