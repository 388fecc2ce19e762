//! The operations over the whole ledger, for the server's administrators.

use super::Group::Administration;
use super::Method::{Get, Post};
use super::parameter::{EXPORT_AFTER, EXPORT_FORMAT};
use super::{Answer, Content, Operation};
use crate::wire::checkpoint::SignedCheckpoint;
use crate::wire::problem::Code::NotFound;
use crate::wire::verification::{BackupStatus, VerificationStatus};

operations! {
    /// Exports the ledger.
    EXPORT_LEDGER = Operation::new(
        Administration, Get, "/v1/admin/ledger", "export_ledger",
        "Exports the ledger up to its present head, one record a line.",
    )
    .parameters(&[EXPORT_AFTER, EXPORT_FORMAT])
    .answers(&[Answer {
        status: 200,
        when: "The records, as they are read.",
        content: Content::Text(&["text/plain"]),
    }]);
    /// Tells of the verification.
    GET_LEDGER_VERIFICATION = Operation::new(
        Administration, Get, "/v1/admin/ledger/verification", "get_ledger_verification",
        "Shows how far the last verification of the ledger is, and what it found.",
    )
    .command("verify_ledger")
    .ok::<VerificationStatus>()
    .problems(&[NotFound]);
    /// Verifies the ledger.
    VERIFY_LEDGER = Operation::new(
        Administration, Post, "/v1/admin/ledger/verification", "verify_ledger",
        "Verifies the whole ledger as it is now, unless that is going on already.",
    )
    .answers(&[Answer::json::<VerificationStatus>(202, "It goes on.")]);
    /// Tells of the backup.
    GET_BACKUP = Operation::new(
        Administration, Get, "/v1/admin/ledger/backup", "get_backup",
        "Shows how far the last backup of the ledger is.",
    )
    .command("create_backup")
    .ok::<BackupStatus>()
    .problems(&[NotFound]);
    /// Makes a backup.
    CREATE_BACKUP = Operation::new(
        Administration, Post, "/v1/admin/ledger/backup", "create_backup",
        "Makes a verified backup of the ledger as it is now, unless one is being made.",
    )
    .answers(&[Answer::json::<BackupStatus>(202, "It goes on.")])
    .problems(&[NotFound]);
    /// Signs a checkpoint.
    CREATE_CHECKPOINT = Operation::new(
        Administration, Post, "/v1/admin/ledger/checkpoints", "create_checkpoint",
        "Signs a note of the ledger's last record, which proves later that it still has all.",
    )
    .made::<SignedCheckpoint>()
    .problems(&[NotFound]);
}
