-- Makes a PostgreSQL database refuse what is written late under a lock of Pearing.
--
-- Install it once, as the database's owner; a second time changes nothing:
--     pearing-cli print-guard postgres | psql -d DATABASE
--     GRANT USAGE ON SCHEMA pearing TO WRITER;
--
-- The holder claims its fence token before it reads what it is going to change:
--     SELECT pearing.claim('teams/platform/website/locks/deploy', 17);
-- and each transaction that writes guards itself, before or after its writes:
--     SELECT pearing.guard('teams/platform/website/locks/deploy', 17);
-- A lower fence token than the newest one is refused, an equal one is accepted. A refusal is an
-- exception, and must end its transaction:
--     PF001  stale-fence: a newer holder has claimed
--     PF002  unclaimed-fence: this holder has not; guard never claims, since what was read before
--            a claim may have been changed since then
--
-- It holds at every isolation level. Both functions write the lock's row in their caller's
-- transaction. So a claim waits for every guarded transaction that is open, and after it none of
-- an older holder gets through. At REPEATABLE READ and SERIALIZABLE a row that was changed since
-- the snapshot is a serialization failure (40001): begin the transaction anew. That guard changes
-- the row, and doesn't only lock it, is what keeps a claim there from reading, by a snapshot that
-- is older than its wait, a state without the last write before it. So the transactions that
-- write under one lock go one after the other.
--
-- Each is a statement of its own, and takes effect with its transaction:
--   - a statement that claims and reads at once sees what was there before the claim had waited;
--   - a guard in a part of a query that nothing refers to (WITH ...) isn't run;
--   - a guard that is rolled back to a savepoint guards nothing: guard after the last one.
--
-- A claim lasts as the database does: it is lost where a commit can be lost (synchronous_commit
-- off, a fail-over to a standby that lags).

BEGIN;

CREATE SCHEMA IF NOT EXISTS pearing;

CREATE TABLE IF NOT EXISTS pearing.fence (
    -- The lock: its scope, "/locks/", its name.
    lock_key text PRIMARY KEY,
    -- The newest fence token that was claimed.
    fence_token bigint NOT NULL,
    -- How many transactions were guarded; there to be changed by each.
    guarded bigint NOT NULL DEFAULT 0
);

-- What was there already must be an earlier installation. Somebody else's table could have a
-- trigger, which would run with the rights of whoever installs this.
DO $$
DECLARE
    own CONSTANT pg_catalog.regrole :=
        pg_catalog.to_regrole(pg_catalog.quote_ident(current_user));
    fence CONSTANT pg_catalog.regclass := 'pearing.fence';
BEGIN
    IF EXISTS (SELECT FROM pg_catalog.pg_namespace n
            WHERE n.nspname = 'pearing' AND n.nspowner <> own)
        OR EXISTS (SELECT FROM pg_catalog.pg_class c
            WHERE c.oid = fence AND (c.relkind <> 'r' OR c.relhasrules OR c.relowner <> own))
        OR EXISTS (SELECT FROM pg_catalog.pg_trigger t WHERE t.tgrelid = fence)
    THEN
        RAISE EXCEPTION
            'the schema pearing is another''s, or its table fence no plain table of yours'
            USING ERRCODE = 'duplicate_schema';
    END IF;
END
$$;

-- Raises the newest fence token of a lock to this one. Equal is accepted: a holder may claim again.
CREATE OR REPLACE FUNCTION pearing.claim(of_lock text, fence bigint) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    newest bigint;
BEGIN
    IF of_lock IS NULL OR fence IS NULL OR fence NOT BETWEEN 1 AND 9007199254740991 THEN
        RAISE EXCEPTION 'a claim needs a lock, and a fence token from 1 to 2^53 - 1'
            USING ERRCODE = 'invalid_parameter_value';
    END IF;
    INSERT INTO pearing.fence AS f (lock_key, fence_token) VALUES (of_lock, fence)
    ON CONFLICT (lock_key) DO UPDATE SET fence_token = EXCLUDED.fence_token
        WHERE f.fence_token <= EXCLUDED.fence_token;
    IF NOT FOUND THEN
        SELECT f.fence_token INTO newest FROM pearing.fence f WHERE f.lock_key = of_lock;
        RAISE EXCEPTION 'stale-fence: % is claimed with fence token %, and % is lower',
            of_lock, newest, fence USING ERRCODE = 'PF001';
    END IF;
END
$$;

-- Passes if this is the newest fence token of a lock; no newer one can be claimed from then on,
-- until the transaction has ended.
CREATE OR REPLACE FUNCTION pearing.guard(of_lock text, fence bigint) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    newest bigint;
BEGIN
    -- Without a look at the fence token: at the higher levels a row that is newer than the snapshot
    -- must be an error, and would just not be found if it had to match.
    UPDATE pearing.fence f SET guarded = f.guarded + 1 WHERE f.lock_key = of_lock
        RETURNING f.fence_token INTO newest;
    IF fence < newest THEN
        RAISE EXCEPTION 'stale-fence: % is claimed with fence token %, and % is lower',
            of_lock, newest, fence USING ERRCODE = 'PF001';
    ELSIF fence = newest THEN
        RETURN;
    END IF;
    RAISE EXCEPTION
        'unclaimed-fence: % is claimed with fence token %, and not with %: claim it first',
        coalesce(of_lock, 'no lock'), coalesce(newest::text, 'none'), coalesce(fence::text, 'none')
        USING ERRCODE = 'PF002';
END
$$;

COMMIT;
