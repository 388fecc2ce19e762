-- Makes Redis refuse what is written late under a lock of Pearing.
--
-- The holder claims its fence token before it reads what it is going to change:
--     EVAL SCRIPT 1 {deploy}:fence claim 17
-- and each write is one command that the guard runs, if 17 is the newest fence token:
--     EVAL SCRIPT 2 {deploy}:fence {deploy}:state guard 17 SET live EX 60
-- which does SET {deploy}:state live EX 60, and answers as it does. The first key has the newest
-- fence token; the others are the command's keys, which stand before its other arguments. In a
-- cluster all are to be in one slot: give them one hash tag, as {deploy} here.
--
-- A lower fence token than the newest one is refused, an equal one is accepted:
--     STALEFENCE      a newer holder has claimed
--     UNCLAIMEDFENCE  this holder has not, or the claim was lost; guard never claims, since what
--                     was read before a claim may have been changed since then
--
-- A claim lasts as its key does: give it no expiry, let nothing evict it (maxmemory-policy
-- noeviction or volatile-*), and know that a fail-over can lose the last writes, a claim too, and
-- so can a restart unless appendonly is on, with appendfsync always.

local NEWEST_POSSIBLE = 9007199254740991 -- 2^53 - 1, up to which a number here is exact

local function number(text)
    if not text or not string.match(text, '^[1-9]%d*$') or #text > 16 then return nil end
    local value = tonumber(text)
    if value > NEWEST_POSSIBLE then return nil end
    return value
end

local task, said = ARGV[1], ARGV[2]
local fence = number(said)
if #KEYS < 1 or not fence then
    return redis.error_reply('ERR it takes a key, claim or guard, and a fence token: 1 to 2^53 - 1')
end

local stored = redis.call('GET', KEYS[1])
local newest = number(stored or nil)
if stored and not newest then
    return redis.error_reply('ERR ' .. KEYS[1] .. ' holds no fence token')
end
if newest and fence < newest then
    return redis.error_reply('STALEFENCE ' .. KEYS[1] .. ' is claimed with fence token ' .. stored
        .. ', and ' .. said .. ' is lower')
end

if task == 'claim' and #KEYS == 1 and #ARGV == 2 then
    return redis.call('SET', KEYS[1], said)
elseif task == 'guard' and #ARGV > 2 then
    if fence ~= newest then
        return redis.error_reply('UNCLAIMEDFENCE ' .. KEYS[1] .. ' is claimed with fence token '
            .. (stored or 'none') .. ', and not with ' .. said .. ': claim it first')
    end
    local command = { ARGV[3] }
    for i = 2, #KEYS do command[#command + 1] = KEYS[i] end
    for i = 4, #ARGV do command[#command + 1] = ARGV[i] end
    return redis.call(unpack(command))
end
return redis.error_reply('ERR it is claim FENCE, or guard FENCE COMMAND with its arguments')
