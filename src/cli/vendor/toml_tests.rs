//! What is put into a file of TOML, and taken out again, to the byte.

use super::*;
use crate::cli::vendor::entry::tests::entry;

/// What others have in such a file, in every shape.
const OTHERS: [&str; 12] = [
    "",
    "model = \"gpt\" # mine\n",
    "model = \"gpt\"",
    "# only a comment\n",
    "model = \"gpt\"\r\n\r\n[a]\r\nb = 1\r\n",
    "[mcp_servers]\n",
    "[mcp_servers.x]\ncommand = \"y\" # c\n\n[mcp_servers.x.env]\nA = \"b\"\n\n[z]\na=1\n# end\n",
    "mcp_servers = { x = { command = \"y\" } }\n",
    "mcp_servers.x.command = \"y\"\n",
    "[mcp_servers]\nx.command = 'y'\n\n[z]\nb = 2\n\n\n",
    "[a]\nb=1\n\n# the end",
    "[[projects]]\npath = '/a'\n\n[[projects]]\npath = \"/b\"\n",
];

fn server() -> Server {
    entry("/opt/pearing-cli", None).server()
}

#[test]
fn what_is_put_in_and_taken_out_again_leaves_every_byte_of_others() {
    for text in OTHERS {
        let with = put_server(text, &server()).unwrap_or_else(|why| panic!("{text}: {why}"));
        assert_ne!(with, text);
        assert_eq!(super::server(&with), Ok(Some(server())), "{with}");
        assert_eq!(put_server(&with, &server()).as_deref(), Ok(with.as_str()), "twice is once");
        assert_eq!(remove_server(&with).as_deref(), Ok(text), "out of {with}");
        assert_eq!(remove_server(text).as_deref(), Ok(text), "there is nothing of ours");
    }
}

#[test]
fn a_file_of_ours_is_plain() {
    assert_eq!(
        put_server("", &server()).as_deref(),
        Ok("[mcp_servers.pearing]\ncommand = \"/opt/pearing-cli\"\n\
            args = [\"--profile\", \"claude-code\", \"mcp\"]\ntool_timeout_sec = 120\n")
    );
}

#[test]
fn an_entry_that_is_different_is_changed_where_it_stands() {
    let text = "# above\n\n[mcp_servers.pearing] # ours\ncommand = \"/old\" # here\n\
                args = [\"--profile\", \"x\", \"mcp\"]\nenabled = false # for now\n\
                tool_timeout_sec = 90.5\n\n# below\n[z]\n";
    let changed = put_server(text, &server()).expect("it is ours");
    let wanted = text.replace("/old", "/opt/pearing-cli").replace("\"x\"", "\"claude-code\"");
    assert_eq!(changed, wanted);
    let short = put_server(&changed.replace("90.5", "20"), &server()).expect("it is ours");
    assert_eq!(short, changed.replace("90.5", "120"), "a wait takes up to 45 s");
    assert_eq!(remove_server(&changed).as_deref(), Ok("# above\n\n# below\n[z]\n"));
}

#[test]
fn what_others_added_goes_with_the_entry_and_what_stands_around_it_stays() {
    let text = r#"[a]

# note
[mcp_servers.pearing]
command = "/p"
args = [
  "--profile",
  "x",
  "mcp",
]
# tail

[mcp_servers.pearing.env]
A = "b"
[z]
"#;
    assert_eq!(remove_server(text).as_deref(), Ok("[a]\n\n# note\n# tail\n[z]\n"));
}

#[test]
fn what_cannot_be_changed_is_refused_without_its_text() {
    for (text, said) in [
        ("a = 1\n\n= secret", "line 3 is no TOML"),
        ("mcp_servers = 'secret'", "mcp_servers is no table"),
        ("[mcp_servers.pearing]\nurl = 'secret'", "mcp_servers.pearing is there"),
        ("mcp_servers.pearing = 'secret'", "mcp_servers.pearing is there"),
        ("a = 1\r\nb = 2\n", "its lines end in two ways"),
    ] {
        let why = put_server(text, &server()).expect_err(text);
        assert!(why.starts_with(said) && !why.contains("secret"), "{text}: {why}");
    }
}
