//! Command lines: those that the guides promise, and those that must be refused.

use std::collections::BTreeSet;

use clap::CommandFactory as _;

use super::*;
use crate::domain::access::Role;
use crate::wire::operation;

fn parse(line: &str) -> Result<Cli, clap::Error> {
    Cli::try_parse_from(line.split_whitespace())
}

fn command(line: &str) -> Call {
    match parse(line).unwrap_or_else(|error| panic!("{line}: {error}")).command {
        Command::Call(call) => call,
        other => panic!("{line} is no call: {other:?}"),
    }
}

/// The exit code of a line that is refused, and what is said.
fn refused(line: &str) -> (i32, String) {
    match parse(line) {
        Ok(cli) => panic!("{line} is taken as {:?}", cli.command),
        Err(error) => (error.exit_code(), error.to_string()),
    }
}

#[test]
fn the_command_line_is_consistent() {
    Cli::command().debug_assert();
}

#[test]
fn every_command_that_asks_the_server_is_of_an_operation_and_every_operation_has_its_own() {
    let calls = Call::augment_subcommands(clap::Command::new("calls"));
    let commands: BTreeSet<String> =
        calls.get_subcommands().map(|command| command.get_name().replace('-', "_")).collect();
    let operations = operation::all().filter_map(|operation| operation.command);
    assert_eq!(commands, operations.map(str::to_owned).collect());
}

#[test]
fn the_guides_acquire_runs_as_it_stands() {
    let line = "pearing-cli acquire-lock thread-work.42 \
        --request-uuid e41b7608-1fe8-4f54-a5f3-67e8605f480c \
        --lease-seconds 60 --wait-seconds 30 --repo teams/platform/website";
    let Call::AcquireLock(args) = command(line) else {
        panic!("another command");
    };
    let lock = args.lock.lock();
    assert_eq!(lock.lock_name.as_str(), "thread-work.42");
    assert_eq!(lock.scope.as_str(), "teams/platform/website");
    assert_eq!(args.lease_seconds.map(LeaseSeconds::get), Some(60));
    assert_eq!(args.wait_seconds.map(WaitSeconds::get), Some(30));
    let uuid = args.request_uuid.map(|uuid| uuid.to_string());
    assert_eq!(uuid.as_deref(), Some("e41b7608-1fe8-4f54-a5f3-67e8605f480c"));
    assert!(!args.no_reentrant && !args.block);
}

#[test]
fn the_guides_other_lock_commands_run_as_they_stand() {
    let rest = "thread-work.42 6bb65939-0db9-4fe2-83a7-ff6dfc3b00af --repo teams/platform/website";
    let get = command(&format!("pearing-cli get-lock-ticket {rest}"));
    assert!(matches!(get, Call::GetLockTicket { exit_status: false, wait: None, .. }), "{get:?}");
    let line = format!("pearing-cli heartbeat-lock-ticket {rest} --lease-seconds 60");
    let Call::HeartbeatLockTicket { ticket, lease_seconds } = command(&line) else {
        panic!("another command");
    };
    assert_eq!(ticket.ticket_id.to_string(), "6bb65939-0db9-4fe2-83a7-ff6dfc3b00af");
    assert_eq!(ticket.lock().lock_name.as_str(), "thread-work.42");
    assert_eq!(lease_seconds.map(LeaseSeconds::get), Some(60));
    let release = command(&format!("pearing-cli release-lock-ticket {rest}"));
    assert!(matches!(release, Call::ReleaseLockTicket { .. }), "{release:?}");
}

#[test]
fn a_scope_is_named_by_exactly_one_flag() {
    for (flags, scope) in [
        ("--repo teams/platform/website", "teams/platform/website"),
        ("--repo users/ana/notes", "users/ana/notes"),
        ("--team platform", "teams/platform"),
        ("--user ana", "users/ana"),
    ] {
        let Call::GetLock { lock, .. } = command(&format!("pearing-cli get-lock x {flags}")) else {
            panic!("another command");
        };
        assert_eq!(lock.lock().scope.as_str(), scope);
    }
    for flags in [
        "",
        "--team a --user b",
        "--repo teams/a/b --team a",
        "--repo teams/a",
        "--repo website",
        "--team a/b",
        "--user ANA",
        "--user ledger",
    ] {
        let (code, said) = refused(&format!("pearing-cli get-lock x {flags}"));
        assert_eq!(code, 2, "{flags}: {said}");
    }
}

#[test]
fn a_length_out_of_range_is_refused_in_the_servers_words() {
    for lease in ["0", "4", "301", "5.5", "1e9", "null", "\"60\"", "", "-1"] {
        let line = ["pearing-cli", "acquire-lock", "x", "--team", "a", "--lease-seconds", lease];
        let error = Cli::try_parse_from(line).expect_err(lease);
        assert_eq!(error.exit_code(), 2, "{lease}");
        let words = "invalid-argument: lease_seconds must be a whole number from 5 to 300";
        assert!(lease == "-1" || error.to_string().contains(words), "{lease}: {error}");
    }
    for lease in ["5", "300"] {
        command(&format!("pearing-cli acquire-lock x --team a --lease-seconds {lease}"));
    }
    let (code, said) = refused("pearing-cli acquire-lock x --team a --wait-seconds 3601");
    assert!(code == 2 && said.contains("invalid-argument: wait_seconds"), "{said}");
}

#[test]
fn wrong_names_and_ids_are_refused() {
    for line in [
        "pearing-cli acquire-lock _x --team a",
        "pearing-cli acquire-lock a/b --team a",
        "pearing-cli acquire-lock x --team a --request-uuid 1",
        "pearing-cli get-lock-ticket x not-a-uuid --team a",
        "pearing-cli break-lock x --team a --fence-token -1 --reason stuck",
        "pearing-cli break-lock x --team a --reason stuck",
        "pearing-cli break-lock x --team a --fence-token 1",
        "pearing-cli set-team-member a b --role owner",
        "pearing-cli acquire-lock x --team a --token secret",
        "pearing-cli acquire-locks x --team a",
        "pearing-cli",
    ] {
        let (code, said) = refused(line);
        assert_eq!(code, 2, "{line}: {said}");
    }
}

#[test]
fn every_other_command_has_a_line() {
    for line in [
        "list-locks --user ana --as-of 12",
        "list-tickets --state held",
        "lock-history x --repo teams/a/b --cursor 9 --limit 10",
        "break-lock x --team a --fence-token 41 --reason stuck",
        "watch-events --after 0 --team a --lock x --type lock.* --exclude-type user.* --actor b",
        "watch-events --json",
        "list-events --after 9 --type lock.*,team.* --url http://localhost:1",
        "whoami --token-file /x",
        "create-user ana --admin",
        "disable-user ana",
        "enable-user ana",
        "list-users",
        "create-token ana --label laptop --expires-in-days 30",
        "revoke-token e41b7608-1fe8-4f54-a5f3-67e8605f480c",
        "list-tokens",
        "create-team platform",
        "list-teams",
        "set-team-member platform ana --role write",
        "remove-team-member platform ana",
        "list-team-members platform",
        "create-repo teams/platform/website",
        "list-repos",
        "grant-access bo --role read --user ana",
        "revoke-access bo --repo users/ana/notes",
        "list-access --team platform",
        "get-lock-ticket x e41b7608-1fe8-4f54-a5f3-67e8605f480c --team a --exit-status --wait 25",
        "acquire-lock x --user ana --note why --no-reentrant --block",
    ] {
        command(&format!("pearing-cli {line}"));
    }
}

#[test]
fn the_commands_about_this_machine_have_their_lines() {
    for line in [
        "login --profile work --url http://localhost:1 --config /x",
        "logout --profile work",
        "list-profiles --json",
        "completions bash",
        "man --out /x",
    ] {
        let cli = parse(&format!("pearing-cli {line}")).unwrap_or_else(|e| panic!("{line}: {e}"));
        assert!(matches!(cli.command, Command::Setup(_)), "{line}");
    }
}

#[test]
fn a_command_that_is_run_comes_after_two_dashes_and_keeps_its_flags() {
    let with_lock = "with-lock x --team a --wait-seconds 9 --on-conflict skip --grace 2";
    let respond = "respond --repo teams/a/b --on thread.replied --lock w.{thread} --cursor /x \
        --after 0 --attempts 2 --until-caught-up --lease-seconds 5 --grace 1 --note why";
    for line in [with_lock, respond] {
        let line = format!("pearing-cli {line} -- make --json -- all");
        let cli = parse(&line).unwrap_or_else(|error| panic!("{line}: {error}"));
        let (Command::Agent(AgentCommand::WithLock(WithLockArgs { command, .. }))
        | Command::Agent(AgentCommand::Respond(RespondArgs { command, .. }))) = &cli.command
        else {
            panic!("{line}")
        };
        assert_eq!(*command, ["make", "--json", "--", "all"]);
        assert!(!cli.global.json);
    }
    for line in [
        "pearing-cli with-lock x --team a",
        "pearing-cli with-lock x --team a make",
        "pearing-cli respond --repo teams/a/b --lock w.{thread}",
        "pearing-cli respond --lock w.{thread} -- make",
        "pearing-cli respond --repo teams/a/b -- make",
    ] {
        assert_eq!(refused(line).0, 2, "{line}");
    }
}

#[test]
fn a_limit_out_of_range_is_refused_in_the_servers_words() {
    for limit in ["0", "1001", "-1", "x", ""] {
        let line = ["pearing-cli", "list-users", "--limit", limit];
        assert_eq!(Cli::try_parse_from(line).expect_err(limit).exit_code(), 2);
    }
    let (_, said) = refused("pearing-cli list-users --limit 1001");
    assert!(said.contains("limit must be a whole number from 1 to 1000"), "{said}");
}

#[test]
fn the_grantee_and_the_scopes_user_are_two_values() {
    let line = "pearing-cli grant-access bo --role write --user ana";
    let Call::Access(AccessCommand::GrantAccess { grantee, role, scope }) = command(line) else {
        panic!("another command");
    };
    assert_eq!((grantee.as_str(), role), ("bo", Role::Write));
    assert_eq!(scope.scope().as_str(), "users/ana");
}
