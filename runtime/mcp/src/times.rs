//! The times of servers.

use std::time::Duration;

/// The times of servers. Tests have shorter ones.
#[derive(Debug, Clone, Copy)]
pub struct ServerTimes {
    /// The longest time of a try to connect. A server of the older protocol may leave the first question unanswered, and
    /// the first start of a program may download it.
    pub connect: Duration,
    /// The time before the second try. It doubles with each failure.
    pub first_delay: Duration,
    /// The longest time between two tries.
    pub longest_delay: Duration,
    /// A connection that lasted so long ends the counting of failures.
    pub stable: Duration,
    /// The shortest time between two readings of the lists, if the server says that they change.
    pub shortest_refresh: Duration,
    /// The shortest time that a list is valid, whatever the server says.
    pub shortest_validity: Duration,
    /// The longest time that a list is valid, if the server limits it.
    pub longest_validity: Duration,
    /// The time before a subscription that ended is made again.
    pub subscribe_delay: Duration,
    /// The longest time for one page of a list, and for anything else that has no effect.
    pub page: Duration,
    /// The longest time for all pages of a list.
    pub list: Duration,
}

impl Default for ServerTimes {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(60),
            first_delay: Duration::from_secs(1),
            longest_delay: Duration::from_secs(60),
            stable: Duration::from_secs(30),
            shortest_refresh: Duration::from_secs(1),
            shortest_validity: Duration::from_secs(60),
            longest_validity: Duration::from_secs(24 * 3_600),
            subscribe_delay: Duration::from_secs(60),
            page: Duration::from_secs(20),
            list: Duration::from_secs(60),
        }
    }
}
