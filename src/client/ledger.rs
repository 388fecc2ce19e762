//! Calls over the whole ledger.

use reqwest::{Method, Response};

use super::error::ClientError;
use super::transport::{Call, Client, Repeat, Reply};
use crate::domain::id::Sequence;
use crate::wire::checkpoint::SignedCheckpoint;
use crate::wire::verification::{BackupStatus, VerificationStatus};

const VERIFICATION: [&str; 3] = ["admin", "ledger", "verification"];
const BACKUP: [&str; 3] = ["admin", "ledger", "backup"];

impl Client {
    /// Has the server verify its ledger, unless it does already.
    ///
    /// # Errors
    /// As for every call.
    pub async fn verify_ledger(&self) -> Result<Reply<VerificationStatus>, ClientError> {
        self.call(Call { method: Method::POST, ..Call::get(&VERIFICATION) }).await
    }

    /// How far the server's last verification is.
    ///
    /// # Errors
    /// As for every call.
    pub async fn ledger_verification(&self) -> Result<Reply<VerificationStatus>, ClientError> {
        self.call(Call::get(&VERIFICATION)).await
    }

    /// Has the server make a backup, unless it makes one already.
    ///
    /// # Errors
    /// As for every call.
    pub async fn create_backup(&self) -> Result<Reply<BackupStatus>, ClientError> {
        let call = Call { method: Method::POST, repeat: Repeat::WhenBusy, ..Call::get(&BACKUP) };
        self.call(call).await
    }

    /// How far the server's last backup is.
    ///
    /// # Errors
    /// As for every call.
    pub async fn backup(&self) -> Result<Reply<BackupStatus>, ClientError> {
        self.call(Call::get(&BACKUP)).await
    }

    /// Has the server sign a note of its last record.
    ///
    /// # Errors
    /// As for every call.
    pub async fn create_checkpoint(&self) -> Result<Reply<SignedCheckpoint>, ClientError> {
        let path = ["admin", "ledger", "checkpoints"];
        self.call(Call { method: Method::POST, ..Call::get(&path) }).await
    }

    /// Opens an export of the ledger after a sequence, as `text` or as `cloudevents`.
    ///
    /// # Errors
    /// As for every call.
    pub async fn export_ledger(
        &self,
        after: Sequence,
        format: &str,
    ) -> Result<Export, ClientError> {
        let call = Call::get(&["admin", "ledger"]);
        let call = call.with("after", Some(after)).with("format", Some(format));
        Ok(Export(self.open_text(&call).await?))
    }
}

/// An export that arrives.
pub struct Export(Response);

impl Export {
    /// The next bytes of it; `None` at its end.
    ///
    /// # Errors
    /// [`ClientError::Unreachable`] if it broke off. The last line that arrived whole says where to
    /// go on.
    pub async fn next(&mut self) -> Result<Option<bytes::Bytes>, ClientError> {
        self.0.chunk().await.map_err(|error| super::transport::no_answer(&error))
    }
}
