//! Replies to replies: they nest so deep, and no deeper.

use super::play_text;

const GIVEN: &str = "given users ana\ngiven team t\ngiven repo teams/t/r\n\
                     given members t write ana\ngiven locks in teams/t/r\n";
const DEEPEST: usize = 32;

/// A thread with a chain of replies, the last one as deep as may be.
fn chain() -> String {
    let mut story = "at 0s ana creates thread \"t\" -> thread.created number 1\n\
                     at 1s ana replies to 1 as R1 -> thread.replied R1 level 1 replies 1\n"
        .to_owned();
    for level in 2..=DEEPEST {
        story += &format!(
            "at 1s ana replies to 1 to R{0} as R{level}\n\
             -> thread.replied R{level} parent R{0} level {level} replies {level}\n",
            level - 1
        );
    }
    story
}

fn plays(story: &str) {
    let text = format!("{GIVEN}scenario: s\n{story}");
    assert_eq!(play_text("nest", &text), Ok(1), "{text}");
}

#[test]
fn replies_nest_32_deep_and_no_deeper() {
    let end = "at 2s ana replies to 1 to R32 -> refused invalid-argument\n\
               at 3s restart -> nothing\n\
               at 4s ana replies to 1 to R32 -> refused invalid-argument\n\
               at 4s ana replies to 1 to R31 as L -> thread.replied level 32 replies 33\n\
               at 4s ana replies to 1 as M -> thread.replied level 1 replies 34\n";
    plays(&format!("{}{end}", chain()));
}

#[test]
fn a_chain_in_one_batch_nests_no_deeper() {
    let story = chain().replace("at 1s", "and  ");
    plays(&format!("{story}and ana replies to 1 to R32 -> refused invalid-argument\n"));
}
