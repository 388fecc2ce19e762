//! A ledger's whole state at one of its sequences, as JSON: what a replay comes to.
//!
//! Everything is as it was at the ledger time of that sequence, so it is the same whenever and
//! wherever it is asked for.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::activity::Activity;
use super::admin::{Grant, Member, Repo, Team, Token, User};
use super::lock::Lock;
use super::thread::ThreadItem;
use super::view::{ActivityView, LockView};
use crate::domain::State;
use crate::domain::id::{LedgerId, Sequence};
use crate::domain::scope::Scope;
use crate::domain::time::Time;
use crate::ledger::Hash;

/// The state at a sequence.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LedgerState {
    /// The ledger; null before its first record.
    pub ledger_id: Option<LedgerId>,
    /// The last record.
    pub sequence: Sequence,
    /// Its time.
    pub time: Time,
    /// Its hash, which stands for everything up to it.
    pub hash: String,
    /// The held locks, with who waits.
    pub locks: Vec<Lock>,
    /// The users.
    pub users: Vec<User>,
    /// Their tokens, without secrets.
    pub tokens: Vec<Token>,
    /// The teams.
    pub teams: Vec<Team>,
    /// Their members.
    pub members: Vec<Member>,
    /// The repositories.
    pub repos: Vec<Repo>,
    /// The direct grants.
    pub grants: Vec<Grant>,
    /// What users say they are doing.
    pub activities: Vec<Activity>,
    /// The threads.
    pub threads: Vec<ThreadItem>,
}

impl LedgerState {
    /// Of a state, the hash of its last record, and the threads of that moment.
    pub fn new(state: &State, hash: &Hash, threads: Vec<ThreadItem>) -> Self {
        let (access, time) = (state.access(), state.time());
        let locks = state.locks().map(|(key, _)| LockView::of(state, key, state.head()));
        let mut members = Vec::new();
        for (team, data) in access.teams() {
            let member = |(user, role): (&_, &_)| Member {
                team: team.clone(),
                user: Clone::clone(user),
                role: *role,
            };
            members.extend(data.members.iter().map(member));
        }
        let users = access.users().map(|(user, _)| Scope::user(user));
        let teams = access.teams().map(|(team, _)| Scope::team(team));
        let repos = access.repos().map(|(repo, _)| repo.clone());
        let mut grants = Vec::new();
        for scope in users.chain(teams).chain(repos) {
            let given = access.grants(&scope);
            grants.extend(given.map(|(user, role)| Grant {
                scope: scope.clone(),
                user: user.clone(),
                role,
            }));
        }
        let activities = state.activities_after(None).map(|(user, _)| {
            let view = ActivityView::of(state, user);
            Activity::new(&view, time)
        });
        Self {
            ledger_id: state.ledger_id(),
            sequence: state.head(),
            time,
            hash: hash.to_string(),
            locks: locks.map(|view| Lock::new(&view, time)).collect(),
            users: access.users().map(|(name, user)| User::new(name, user)).collect(),
            tokens: access.tokens().map(|(id, token)| Token::new(id, token, None)).collect(),
            teams: access
                .teams()
                .map(|(team, data)| Team { team: team.clone(), members: data.members.len() as u64 })
                .collect(),
            members,
            repos: access
                .repos()
                .map(|(repo, created_at)| Repo { repo: repo.clone(), created_at })
                .collect(),
            grants,
            activities: activities.collect(),
            threads,
        }
    }
}
