//! Reads of what users say they are doing, and of a person's agents.

use super::{Page, require_service};
use crate::domain::access::User;
use crate::domain::id::TokenId;
use crate::domain::name::UserName;
use crate::service::{Service, ServiceError};
use crate::wire::admin::{Agent, Token};
use crate::wire::view::ActivityView;

impl Service {
    /// What each user says it is doing whom the caller may see, by name, after the one called
    /// `after`.
    ///
    /// # Errors
    /// [`ServiceError`]
    pub fn activities(
        &self,
        caller: TokenId,
        after: Option<&UserName>,
        most: usize,
    ) -> Result<Page<ActivityView, UserName>, ServiceError> {
        self.look(caller, |state, asker| {
            require_service(state, asker)?;
            let users = state.activities_after(after).map(|(user, _)| user);
            let circle = state.access().circle_of(asker);
            let seen = users.filter(|user| circle.sees(user));
            let views = seen.map(|user| ActivityView::of(state, user));
            Ok(Page::take(views, most, state.head(), |view| view.user.clone()))
        })
    }

    /// The caller's agents by name, each with its tokens, after the one called `after`.
    ///
    /// # Errors
    /// [`ServiceError`]
    pub fn agents(
        &self,
        caller: TokenId,
        after: Option<&UserName>,
        most: usize,
    ) -> Result<Page<Agent, UserName>, ServiceError> {
        self.look(caller, |state, person| {
            require_service(state, person)?;
            let access = state.access();
            let rest = access.agents_of(person).filter(|(name, _)| after.is_none_or(|a| *name > a));
            let agent = |(name, user): (&UserName, &User)| {
                let tokens = access.tokens_of(name);
                let shown = |(id, token)| Token::new(id, token, self.token_last_used_at(id));
                Agent::new(name, user, tokens.map(shown).collect())
            };
            Ok(Page::take(rest.map(agent), most, state.head(), |agent| agent.user.clone()))
        })
    }
}
