//! Shell completions and man pages, made from a program's own command line, so that they can't
//! say anything else than its help.

use std::fs;
use std::io;
use std::path::Path;

use clap::Command;
use clap_complete::Shell;
use clap_mangen::Man;

/// The script that completes a program's command lines in a shell.
pub fn completions(mut command: Command, shell: Shell) -> String {
    let mut script = Vec::new();
    let name = command.get_name().to_owned();
    clap_complete::generate(shell, &mut command, &name, &mut script);
    let script = String::from_utf8(script).expect("names and help are text");
    match shell {
        Shell::Bash => with_one_spelling(&name, &script),
        _ => script,
    }
}

/// A script for bash in which a program with a hyphen in its name completes more than its first
/// word. clap_complete (up to 4.6.12 at least) escapes such a name in two ways, once where it
/// notes the command and once where it looks that up: https://github.com/clap-rs/clap/issues/6421
fn with_one_spelling(name: &str, script: &str) -> String {
    const BETWEEN: &str = "__subcmd__";
    let looked_up = name.replace('-', BETWEEN) + BETWEEN;
    let noted = name.replace('-', "__") + BETWEEN;
    script.replace(&looked_up, &noted)
}

/// The man page of a program.
///
/// # Errors
/// None that memory doesn't give.
pub fn page(command: Command) -> io::Result<String> {
    let mut page = Vec::new();
    Man::new(command.disable_help_subcommand(true)).render(&mut page)?;
    Ok(String::from_utf8(page).expect("names and help are text"))
}

/// Writes the man page of a program and one of each of its commands that its help lists to a
/// folder, which is made if there is none.
///
/// # Errors
/// The folder can't be made, or a page can't be written.
pub fn write_pages(command: Command, folder: &Path) -> io::Result<()> {
    let mut command = command.disable_help_subcommand(true);
    command.build();
    let version = command.get_version().unwrap_or_default();
    let source = format!("{} {version}", command.get_name());
    fs::create_dir_all(folder)?;
    for command in command.get_subcommands().filter(|command| !command.is_hide_set()) {
        Man::new(command.clone()).source(&source).generate_to(folder)?;
    }
    Man::new(command).generate_to(folder)?;
    Ok(())
}
