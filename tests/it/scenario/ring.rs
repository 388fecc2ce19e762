//! Rings of waits, of every length from 2 to 8: the wait that would close one is rejected.

use super::play_text;

/// A ring of `length` identities: each holds a lock and asks for the next one's, in `order`.
fn ring(length: usize, order: &[usize]) -> String {
    let users: Vec<String> = (0..length).map(|user| format!("u{user}")).collect();
    let mut story = format!(
        "given users {0}\ngiven team t\ngiven members t write {0}\ngiven locks in teams/t\n\
         scenario: a ring of {length}, closed in the order {order:?}\n",
        users.join(" ")
    );
    for user in 0..length {
        story += &format!("at 0s u{user} acquires lock{user} as H{user} -> held u{user}\n");
    }
    let (last, waiting) = order.split_last().expect("a ring has members");
    for user in waiting {
        let next = (user + 1) % length;
        story += &format!("at 1s u{user} acquires lock{next} wait 60 as T{user} -> waiting\n");
    }
    // The way round, from the one that closes it.
    let cycle: Vec<String> =
        (0..length).map(|step| format!("T{}", (last + step) % length)).collect();
    let next = (last + 1) % length;
    story += &format!(
        "at 2s u{last} acquires lock{next} wait 60 as T{last}\n\
         -> deadlock_rejected u{last} T{last} holder u{next} cycle {0}\n",
        cycle.join(" ")
    );
    for user in waiting {
        story += &format!("ticket T{user} -> waiting position 1 until 61s\n");
    }
    // The rejected one lets go, and the others finish one after the other.
    for step in 0..length {
        let user = (last + length - step) % length;
        let before = (user + length - 1) % length;
        let released = format!("at 3s u{user} releases H{user} -> released u{user} H{user}");
        let promoted = format!("; promoted u{before} T{before}\n");
        story += &released;
        story += if before == *last { "\n" } else { &promoted };
    }
    story
}

#[test]
fn a_ring_of_any_length_is_not_closed_whoever_comes_last() {
    for length in 2..=8 {
        for last in 0..length {
            let upwards: Vec<usize> = (1..=length).map(|step| (last + step) % length).collect();
            let mut downwards = upwards.clone();
            downwards[..length - 1].reverse();
            for order in [upwards, downwards] {
                let story = ring(length, &order);
                assert_eq!(play_text("ring", &story), Ok(1), "{story}");
            }
        }
    }
}
