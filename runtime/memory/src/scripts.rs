//! Lua scripts that Redis runs atomically. Each takes the key of the conversation's list and that of the
//! legacy format.
//!
//! An element of the list is one turn and begins with `{"v":1,"n":MESSAGES,"run":RUN,`: a script reads only
//! that. Every reply is a list of texts; the first text names the kind of the reply.

use redis::Script;
use std::sync::LazyLock;

/// Replies `done` if Redis lets the memory write: a replica, a full Redis or a missing permission does not.
pub(crate) static CHECK: LazyLock<Script> = LazyLock::new(|| {
    Script::new("redis.call('RPUSH', KEYS[1], ''); redis.call('DEL', KEYS[1]); return {'done'}")
});

/// Replies `turns` and the newest turns within the limits, newest first; or `legacy` and its bytes; or an
/// error: `type KEY`, `junk`, `large KEY BYTES LIMIT`.
///
/// Arguments: limits on messages, on bytes, and on bytes of the legacy format.
pub(crate) static RECALL: LazyLock<Script> = LazyLock::new(|| {
    Script::new(
        r#"
local most, room = tonumber(ARGV[1]), tonumber(ARGV[2])
local kind = redis.call('TYPE', KEYS[1]).ok
if kind == 'none' then
  local old = redis.call('TYPE', KEYS[2]).ok
  -- A list there is a conversation of another flow with this very key.
  if old == 'none' or old == 'list' then return {'turns'} end
  if old ~= 'string' then return {'type', KEYS[2]} end
  local size = redis.call('STRLEN', KEYS[2])
  if size > tonumber(ARGV[3]) then return {'large', KEYS[2], tostring(size), ARGV[3]} end
  return {'legacy', redis.call('GET', KEYS[2])}
end
if kind ~= 'list' then return {'type', KEYS[1]} end
local reply, messages, bytes = {'turns'}, 0, 0
for back = 1, redis.call('LLEN', KEYS[1]) do
  local turn = redis.call('LINDEX', KEYS[1], -back)
  local count = string.match(turn, '^{"v":1,"n":(%d+),')
  if not count then return {'junk'} end
  messages, bytes = messages + tonumber(count), bytes + #turn
  if back == 1 and bytes > room then return {'large', KEYS[1], tostring(bytes), ARGV[2]} end
  if back > 1 and (messages > most or bytes > room) then break end
  reply[back + 1] = turn
end
return reply
"#,
    )
});

/// Adds a turn unless a turn of the same run is stored, removes the oldest beyond the limits, and sets the
/// time to live. Replies `done`; or `legacy`, if the legacy format must be migrated first; or an error: `type
/// KEY`, `junk`.
///
/// Arguments: limits on messages and bytes, time to live, messages of the turn, its `"run":RUN,`, the turn.
pub(crate) static APPEND: LazyLock<Script> = LazyLock::new(|| {
    Script::new(
        r#"
local most, room, ttl = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local count, run, turn = tonumber(ARGV[4]), ARGV[5], ARGV[6]
local kind = redis.call('TYPE', KEYS[1]).ok
if kind == 'none' then
  local old = redis.call('TYPE', KEYS[2]).ok
  if old ~= 'none' and old ~= 'list' then return {'legacy'} end
elseif kind ~= 'list' then
  return {'type', KEYS[1]}
end
local messages, bytes, keep = 0, 0, 0
for back = 1, redis.call('LLEN', KEYS[1]) do
  local other = redis.call('LINDEX', KEYS[1], -back)
  local its_count, start = string.match(other, '^{"v":1,"n":(%d+),()')
  if not its_count then return {'junk'} end
  if string.sub(other, start, start + #run - 1) == run then return {'done'} end
  messages, bytes = messages + tonumber(its_count), bytes + #other
  -- A stored turn of the same run fits the limits, so it was found before this point.
  if messages + count > most or bytes + #turn > room then break end
  keep = back
end
-- The push comes first: if Redis has no memory for it, nothing has changed.
redis.call('RPUSH', KEYS[1], turn)
redis.call('LTRIM', KEYS[1], -(keep + 1), -1)
if ttl > 0 then redis.call('EXPIRE', KEYS[1], ttl) else redis.call('PERSIST', KEYS[1]) end
return {'done'}
"#,
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

/// Removes the conversation in both formats. Replies `done`; or the error `type KEY`, and then removes
/// nothing.
pub(crate) static CLEAR: LazyLock<Script> = LazyLock::new(|| {
    Script::new(
        r#"
local kind, old = redis.call('TYPE', KEYS[1]).ok, redis.call('TYPE', KEYS[2]).ok
if kind ~= 'none' and kind ~= 'list' then return {'type', KEYS[1]} end
-- A list there is a conversation of another flow, and stays.
if old ~= 'none' and old ~= 'list' and old ~= 'string' then return {'type', KEYS[2]} end
redis.call('DEL', KEYS[1])
if old == 'string' then redis.call('DEL', KEYS[2]) end
return {'done'}
"#,
    )
});

#[cfg(test)]
#[path = "scripts_tests.rs"]
mod tests;
