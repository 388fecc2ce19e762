//! Calls about what users say they are doing.

use reqwest::Method;
use serde::Serialize;

use super::error::ClientError;
use super::locks::Page;
use super::transport::{Call, Client, Repeat, Reply};
use crate::domain::id::RequestUuid;
use crate::domain::text::ActivityText;
use crate::wire::activity::Activity;
use crate::wire::list::List;

#[derive(Serialize)]
struct ActivityBody<'a> {
    activity: &'a ActivityText,
    request_uuid: RequestUuid,
}

impl Client {
    /// Says what the caller is doing.
    ///
    /// # Errors
    /// As for every call.
    pub async fn update_activity(
        &self,
        activity: &ActivityText,
        request_uuid: RequestUuid,
    ) -> Result<Reply<Activity>, ClientError> {
        let body = ActivityBody { activity, request_uuid };
        self.call(Call::send(Method::PUT, &["activity"], &body, Repeat::Harmless)).await
    }

    /// Says that the caller is doing nothing.
    ///
    /// # Errors
    /// As for every call.
    pub async fn clear_activity(&self) -> Result<Reply<Activity>, ClientError> {
        self.call(Call::delete(&["activity"])).await
    }

    /// Lists what others say they are doing, and the caller.
    ///
    /// # Errors
    /// As for every call.
    pub async fn activities(&self, page: &Page) -> Result<Reply<List<Activity>>, ClientError> {
        self.call(Call::get(&["activity"]).page(page)).await
    }
}
