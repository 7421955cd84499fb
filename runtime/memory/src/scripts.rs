//! Lua scripts that Redis runs atomically. Each takes the key of the conversation's list, that of the legacy format, and
//! that of the hash with what else is known about the conversation.
//!
//! An element of the list is one turn and begins with `{"v":2,"n":MESSAGES,"t":TOKENS,"run":RUN,`, or without `t` in version
//! 1: a script reads only that. The hash has the fields `until` and `summary`, the same with `:DIGEST` for each
//! tag filter, `removals`, `u:DIGEST` for each user, and `many` if there were more users than it remembers. A set for each user has the keys of the lists with turns of the user.
//! Every reply is a list of texts; the first text names the kind of the reply. Numbers come in one argument: a command of a
//! client that has not given its password may have only ten words, and shall fail for that reason.

use redis::Script;
use std::sync::LazyLock;

/// Reads the beginning of a turn, and a list from its end. Pages grow, so that one large element does not bring many more.
/// A turn of version 1 has no tokens: they are estimated from its length.
const READ: &str = r#"
local function read(turn)
  local n, t, at = string.match(turn, '^{"v":2,"n":(%d+),"t":(%d+),()')
  if n then return tonumber(n), tonumber(t), at end
  n, at = string.match(turn, '^{"v":1,"n":(%d+),()')
  if n then return tonumber(n), math.ceil(#turn / 3) + 4 * tonumber(n), at end
end
local function numbers(text)
  local all = {}
  for number in string.gmatch(text, '%d+') do all[#all + 1] = tonumber(number) end
  return unpack(all)
end
local function whole(number) return string.format('%.0f', number) end
local function newest_first(key)
  local length, back, start, size, page = redis.call('LLEN', key), 0, 0, 1, {}
  return function()
    back = back + 1
    if back > length then return nil end
    if back > start + #page then
      start, size = back - 1, math.min(size * 2, 64)
      page = redis.call('LRANGE', key, -(start + size), -(start + 1))
    end
    return back, page[#page - (back - start) + 1]
  end
end
local function is_hash(key)
  local kind = redis.call('TYPE', key).ok
  return kind == 'none' or kind == 'hash'
end
-- The hash lives as long as the list.
local function live_as_long(key, list)
  local left = redis.call('PTTL', list)
  if left > 0 then redis.call('PEXPIRE', key, left) else redis.call('PERSIST', key) end
end
-- Removes the hash, and the list from the sets of its users.
local function remove_about(about, list, users)
  if redis.call('TYPE', about).ok ~= 'hash' then return end
  for _, field in ipairs(redis.call('HKEYS', about)) do
    local digest = string.match(field, '^u:(.+)$')
    if digest then redis.call('SREM', users .. digest, list) end
  end
  redis.call('DEL', about)
end
"#;

fn script(body: &str) -> Script {
    Script::new(&[READ, body].concat())
}

/// Replies `done` if Redis lets the memory write: a replica, a full Redis or a missing permission does not.
pub(crate) static CHECK: LazyLock<Script> = LazyLock::new(|| {
    Script::new("redis.call('RPUSH', KEYS[1], ''); redis.call('DEL', KEYS[1]); return {'done'}")
});

/// Replies `turns` and the newest turns within the limits, newest first; or `legacy` and its bytes; or an
/// error: `type KEY`, `junk`, `large KEY BYTES LIMIT`. If asked for a summary, its fields `until` and `summary` and
/// `removals` come before the turns.
///
/// Arguments: limits on messages, bytes, turns and tokens, and on bytes of the legacy format, in one text; `1` for a
/// summary; the end of its fields' names.
pub(crate) static RECALL: LazyLock<Script> = LazyLock::new(|| {
    script(
        r"
local most, room, most_turns, most_tokens, legacy_room = numbers(ARGV[1])
local reply = {'turns'}
if ARGV[2] == '1' then
  if not is_hash(KEYS[3]) then return {'type', KEYS[3]} end
  local about = redis.call('HMGET', KEYS[3], 'until' .. ARGV[3], 'summary' .. ARGV[3], 'removals')
  reply = {'turns', about[1] or '', about[2] or '', about[3] or '0'}
end
local kind = redis.call('TYPE', KEYS[1]).ok
if kind == 'none' then
  local old = redis.call('TYPE', KEYS[2]).ok
  -- A list there is a conversation of another flow with this very key.
  if old == 'none' or old == 'list' then return reply end
  if old ~= 'string' then return {'type', KEYS[2]} end
  local size = redis.call('STRLEN', KEYS[2])
  if size > legacy_room then return {'large', KEYS[2], whole(size), whole(legacy_room)} end
  return {'legacy', redis.call('GET', KEYS[2])}
end
if kind ~= 'list' then return {'type', KEYS[1]} end
local messages, bytes, tokens = 0, 0, 0
for back, turn in newest_first(KEYS[1]) do
  local its_messages, its_tokens = read(turn)
  if not its_messages then return {'junk'} end
  messages, bytes, tokens = messages + its_messages, bytes + #turn, tokens + its_tokens
  if back == 1 and bytes > room then return {'large', KEYS[1], whole(bytes), whole(room)} end
  local fits = messages <= most and bytes <= room and back <= most_turns and tokens <= most_tokens
  if back > 1 and not fits then break end
  reply[#reply + 1] = turn
end
return reply
",
    )
});

/// Adds a turn unless a turn of the same run is stored, removes the oldest beyond the limits, and sets the
/// time to live. Replies `done`; or `legacy`, if the legacy format must be migrated first; or an error: `type
/// KEY`, `junk`. A fourth key is the set of the turn's user; it lives as long as the last of its conversations.
///
/// Arguments: limits on messages, bytes, turns and tokens, time to live, messages and tokens of the turn, the most fields of
/// the hash, in one text; the turn's `"run":RUN,`; the turn.
pub(crate) static APPEND: LazyLock<Script> = LazyLock::new(|| {
    script(
        r"
local most, room, most_turns, most_tokens, ttl, messages, tokens, most_fields = numbers(ARGV[1])
local run, turn = ARGV[2], ARGV[3]
local kind = redis.call('TYPE', KEYS[1]).ok
if kind == 'none' then
  local old = redis.call('TYPE', KEYS[2]).ok
  if old ~= 'none' and old ~= 'list' then return {'legacy'} end
elseif kind ~= 'list' then
  return {'type', KEYS[1]}
end
local is_new = false
if KEYS[4] then
  if not is_hash(KEYS[3]) then return {'type', KEYS[3]} end
  local set = redis.call('TYPE', KEYS[4]).ok
  if set ~= 'none' and set ~= 'set' then return {'type', KEYS[4]} end
  is_new = set == 'none'
end
local bytes, keep = #turn, 0
for back, other in newest_first(KEYS[1]) do
  local its_messages, its_tokens, start = read(other)
  if not its_messages then return {'junk'} end
  if string.sub(other, start, start + #run - 1) == run then return {'done'} end
  messages, bytes, tokens = messages + its_messages, bytes + #other, tokens + its_tokens
  -- A stored turn of the same run fits the limits, so it was found before this point.
  if messages > most or bytes > room or back >= most_turns or tokens > most_tokens then break end
  keep = back
end
-- The push comes first: if Redis has no memory for it, nothing has changed.
redis.call('RPUSH', KEYS[1], turn)
redis.call('LTRIM', KEYS[1], -(keep + 1), -1)
if ttl > 0 then redis.call('EXPIRE', KEYS[1], ttl) else redis.call('PERSIST', KEYS[1]) end
if KEYS[4] then
  local field = 'u:' .. string.match(KEYS[4], '[^:]+$')
  if redis.call('HLEN', KEYS[3]) < most_fields then
    redis.call('HSET', KEYS[3], field, '1')
  elseif redis.call('HEXISTS', KEYS[3], field) == 0 then
    redis.call('HSET', KEYS[3], 'many', '1')
  end
  redis.call('SADD', KEYS[4], KEYS[1])
  local left = redis.call('PTTL', KEYS[4])
  if ttl == 0 then
    redis.call('PERSIST', KEYS[4])
  elseif is_new or (left >= 0 and left < ttl * 1000) then
    redis.call('EXPIRE', KEYS[4], ttl)
  end
  -- Each append looks at two entries, so that those of ended conversations do not pile up.
  for _, other in ipairs(redis.call('SRANDMEMBER', KEYS[4], 2)) do
    if redis.call('EXISTS', other) == 0 then redis.call('SREM', KEYS[4], other) end
  end
end
if redis.call('TYPE', KEYS[3]).ok == 'hash' then live_as_long(KEYS[3], KEYS[1]) end
return {'done'}
",
    )
});

/// Migrates the legacy format, if it has not changed since it was read and there is no list yet. Replies
/// `done`, else `changed`.
///
/// Arguments: the bytes that were read, time to live, the turns.
pub(crate) static MIGRATE: LazyLock<Script> = LazyLock::new(|| {
    Script::new(
        r#"
if redis.call('EXISTS', KEYS[1]) == 1 then return {'changed'} end
if redis.call('TYPE', KEYS[2]).ok ~= 'string' then return {'changed'} end
if redis.call('GET', KEYS[2]) ~= ARGV[1] then return {'changed'} end
local left, ttl = redis.call('PTTL', KEYS[2]), tonumber(ARGV[2])
for at = 3, #ARGV do redis.call('RPUSH', KEYS[1], ARGV[at]) end
if left > 0 then
  redis.call('PEXPIRE', KEYS[1], left)
elseif ttl > 0 then
  redis.call('EXPIRE', KEYS[1], ttl)
end
redis.call('DEL', KEYS[2])
return {'done'}
"#,
    )
});

/// Removes the conversation in both formats, with its summaries. Replies `done` and `1` if there was one; or the error `type
/// KEY`, and then removes nothing.
///
/// Arguments: the beginning of the keys of users.
pub(crate) static CLEAR: LazyLock<Script> = LazyLock::new(|| {
    script(
        r"
local kind, old = redis.call('TYPE', KEYS[1]).ok, redis.call('TYPE', KEYS[2]).ok
if kind ~= 'none' and kind ~= 'list' then return {'type', KEYS[1]} end
-- A list there is a conversation of another flow, and stays.
if old ~= 'none' and old ~= 'list' and old ~= 'string' then return {'type', KEYS[2]} end
if not is_hash(KEYS[3]) then return {'type', KEYS[3]} end
local removed = redis.call('DEL', KEYS[1])
if old == 'string' then removed = removed + redis.call('DEL', KEYS[2]) end
remove_about(KEYS[3], KEYS[1], ARGV[1])
return {'done', removed > 0 and '1' or '0'}
",
    )
});

/// Replaces the summary, if it still ends with the expected run and no turns of a user were removed since. A first summary
/// also needs its last turn: without it the conversation was cleared meanwhile. Replies `done`, else `changed`; or an error:
/// `type KEY`, `junk`.
///
/// Arguments: the last run of the summary so far, the number of removals, the last run of the new one, its `"run":RUN,`, the
/// new summary, the end of its fields' names.
pub(crate) static SUMMARISE: LazyLock<Script> = LazyLock::new(|| {
    script(
        r"
if redis.call('TYPE', KEYS[1]).ok ~= 'list' then return {'changed'} end
if not is_hash(KEYS[3]) then return {'type', KEYS[3]} end
local about = redis.call('HMGET', KEYS[3], 'until' .. ARGV[6], 'removals', 'summary' .. ARGV[6])
-- The same call again, after its answer was lost.
if about[1] == ARGV[3] and about[3] == ARGV[5] then return {'done'} end
if (about[1] or '') ~= ARGV[1] or (about[2] or '0') ~= ARGV[2] then return {'changed'} end
if ARGV[1] == '' then
  local found = false
  for _, turn in newest_first(KEYS[1]) do
    local messages, _, start = read(turn)
    if not messages then return {'junk'} end
    found = string.sub(turn, start, start + #ARGV[4] - 1) == ARGV[4]
    if found then break end
  end
  if not found then return {'changed'} end
end
redis.call('HSET', KEYS[3], 'until' .. ARGV[6], ARGV[3], 'summary' .. ARGV[6], ARGV[5])
live_as_long(KEYS[3], KEYS[1])
return {'done'}
",
    )
});

/// Replies `turns`, `1` if the user had turns in the conversation, and a page of turns, newest last; or `junk` if it is no
/// conversation.
///
/// Arguments: how many turns are after the page, the size of the page, digests of the user.
pub(crate) static PAGE: LazyLock<Script> = LazyLock::new(|| {
    script(
        r"
if redis.call('TYPE', KEYS[1]).ok ~= 'list' then return {'turns', '0'} end
local skip, size = tonumber(ARGV[1]), tonumber(ARGV[2])
local page = redis.call('LRANGE', KEYS[1], -(skip + size), -(skip + 1))
local reply = {'turns', '0'}
for at, turn in ipairs(page) do
  if not read(turn) then return {'junk'} end
  reply[at + 2] = turn
end
if redis.call('TYPE', KEYS[3]).ok == 'hash' then
  for at = 3, #ARGV do
    if redis.call('HEXISTS', KEYS[3], 'u:' .. ARGV[at]) == 1 then reply[2] = '1' end
  end
  if redis.call('HEXISTS', KEYS[3], 'many') == 1 then reply[2] = '1' end
end
return reply
",
    )
});

/// Removes turns of a user from a conversation, and its summaries. Replies `done` and how much it has removed.
///
/// Arguments: the beginning of the keys of users, two digests of the user, the turns.
pub(crate) static FORGET: LazyLock<Script> = LazyLock::new(|| {
    script(
        r"
local removed = 0
for at = 4, #ARGV do removed = removed + redis.call('LREM', KEYS[1], 0, ARGV[at]) end
for at = 2, 3 do
  if redis.call('TYPE', ARGV[1] .. ARGV[at]).ok == 'set' then
    redis.call('SREM', ARGV[1] .. ARGV[at], KEYS[1])
  end
end
if redis.call('TYPE', KEYS[3]).ok == 'hash' then
  redis.call('HDEL', KEYS[3], 'u:' .. ARGV[2], 'u:' .. ARGV[3])
  for _, field in ipairs(redis.call('HKEYS', KEYS[3])) do
    local kind = string.match(field, '^[^:]+')
    if kind == 'summary' then removed = removed + redis.call('HDEL', KEYS[3], field) end
    if kind == 'until' then redis.call('HDEL', KEYS[3], field) end
  end
end
if redis.call('EXISTS', KEYS[1]) == 0 then
  remove_about(KEYS[3], KEYS[1], ARGV[1])
elseif is_hash(KEYS[3]) then
  redis.call('HINCRBY', KEYS[3], 'removals', 1)
  live_as_long(KEYS[3], KEYS[1])
end
return {'done', tostring(removed)}
",
    )
});

/// Replies `done`, the next cursor, and lists whose key fits the pattern.
///
/// Arguments: the cursor, the pattern, how many keys to look at.
pub(crate) static FIND: LazyLock<Script> = LazyLock::new(|| {
    Script::new(
        r"
local found = redis.call('SCAN', ARGV[1], 'MATCH', ARGV[2], 'COUNT', ARGV[3])
local reply = {'done', found[1]}
for _, key in ipairs(found[2]) do
  if redis.call('TYPE', key).ok == 'list' then reply[#reply + 1] = key end
end
return reply
",
    )
});

/// Replies `done` and the members of the sets of a user. Arguments: `1` to remove the sets.
pub(crate) static USER: LazyLock<Script> = LazyLock::new(|| {
    Script::new(
        r"
local reply = {'done'}
for _, key in ipairs(KEYS) do
  if redis.call('TYPE', key).ok == 'set' then
    if ARGV[1] == '1' then
      redis.call('DEL', key)
    else
      for _, list in ipairs(redis.call('SMEMBERS', key)) do reply[#reply + 1] = list end
    end
  end
end
return reply
",
    )
});

#[cfg(test)]
#[path = "scripts_tests.rs"]
mod tests;
