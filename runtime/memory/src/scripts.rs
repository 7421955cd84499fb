//! What Redis does in one step. Each script takes the conversation's list and the key of the form before it.
//!
//! An element of the list is one turn and begins with `{"v":1,"n":MESSAGES,"run":RUN,`: a script reads that and
//! nothing more. Every reply is a list of texts, of which the first says what the rest is.

use redis::Script;
use std::sync::LazyLock;

/// `turns` and the newest turns that fit, newest first; or `legacy` and its bytes; or what is wrong: `type KEY`,
/// `junk`, `large KEY BYTES LIMIT`. Never gives more than the limits say.
///
/// Arguments: messages, bytes, bytes of the legacy form.
pub(crate) static RECALL: LazyLock<Script> = LazyLock::new(|| {
    Script::new(
        r#"
local most, room = tonumber(ARGV[1]), tonumber(ARGV[2])
local kind = redis.call('TYPE', KEYS[1]).ok
if kind == 'none' then
  local old = redis.call('TYPE', KEYS[2]).ok
  -- A list there is a conversation of another flow whose name happens to be this one's.
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

/// Adds a turn unless a turn of the same run is kept, drops the oldest that have no room, and sets the time to
/// live. `done`; or `legacy`, when that has to be brought over first; or what is wrong: `type KEY`, `junk`.
///
/// Arguments: messages, bytes, time to live, messages of the turn, its `"run":RUN,`, the turn.
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
  -- The run's own turn would have been seen before this: there is room for it, since it is there.
  if messages + count > most or bytes + #turn > room then break end
  keep = back
end
-- The push first: if Redis has no memory for it, nothing has changed.
redis.call('RPUSH', KEYS[1], turn)
redis.call('LTRIM', KEYS[1], -(keep + 1), -1)
if ttl > 0 then redis.call('EXPIRE', KEYS[1], ttl) else redis.call('PERSIST', KEYS[1]) end
return {'done'}
"#,
    )
});

/// Brings the legacy form over, if it still is what was read and there is no list yet: `done`, else `changed`.
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

/// Forgets the conversation in both forms: `done`; or what is wrong, and then nothing is forgotten: `type KEY`.
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
