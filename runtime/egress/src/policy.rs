//! The operator's policy: the rules `scheme`, `port`, `name` and `address`.

use crate::address_text::AddressText;
use crate::host::{Host, PrivateHost};
use crate::proxy::Proxy;
use crate::special_addresses::{SpecialAddress, special_address};
use crate::special_names::local_suffix;
use crate::{EgressSettings, HostPattern, Refusal, Rule, SettingProblem};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use std::net::{IpAddr, SocketAddr};

/// The most entries of a list in `[egress]`.
pub const MAX_SETTING_ENTRIES: usize = 1000;

/// The most addresses that the lookup of a name may answer with.
pub const MAX_ANSWERS: usize = 16;

/// The operator's settings, checked.
#[derive(Clone)]
pub struct EgressPolicy {
    schemes: Vec<String>,
    ports: Vec<u16>,
    allow: Vec<HostPattern>,
    deny: Vec<HostPattern>,
    private: Vec<PrivateHost>,
    pub(crate) proxy: Option<Proxy>,
    pub(crate) max_body_bytes: u64,
    pub(crate) extra_ca: Vec<CertificateDer<'static>>,
}

/// Shows only how many entries there are: the proxy may hold a password.
impl std::fmt::Debug for EgressPolicy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("EgressPolicy")
            .field("schemes", &self.schemes)
            .field("ports", &self.ports)
            .field("allow", &self.allow.len())
            .field("deny", &self.deny.len())
            .field("private", &self.private.len())
            .field("has_proxy", &self.proxy.is_some())
            .field("max_body_bytes", &self.max_body_bytes)
            .finish_non_exhaustive()
    }
}

/// The policy of an operator who has set nothing.
impl Default for EgressPolicy {
    fn default() -> Self {
        let EgressSettings { schemes, ports, max_body_bytes, .. } = EgressSettings::default();
        let (allow, deny, private, extra_ca) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        Self { schemes, ports, allow, deny, private, proxy: None, max_body_bytes, extra_ca }
    }
}

/// An address that the rules allow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JudgedUrl {
    /// `http` or `https`.
    pub scheme: &'static str,
    /// The name as A-labels in lower case, or the address without brackets.
    pub host: String,
    /// The port.
    pub port: u16,
    /// Whether `[egress] private` names host and port.
    pub is_private: bool,
    /// The addresses of the host. Empty if none was looked up.
    pub addresses: Vec<IpAddr>,
}

impl EgressPolicy {
    /// Checks the operator's settings.
    ///
    /// # Errors
    /// All problems at once.
    pub fn new(settings: &EgressSettings) -> Result<Self, Vec<SettingProblem>> {
        let mut problems = Vec::new();
        check_schemes(&settings.schemes, &mut problems);
        check_ports(&settings.ports, &mut problems);
        let policy = Self {
            schemes: settings.schemes.clone(),
            ports: settings.ports.clone(),
            allow: read_list("allow", &settings.allow, &mut problems, HostPattern::parse),
            deny: read_list("deny", &settings.deny, &mut problems, HostPattern::parse),
            private: read_list("private", &settings.private, &mut problems, |text| {
                let example = "`nas.lan:8123`, `192.168.1.5:80`, `192.168.0.0/16:443` or `[fd00::1]:80`";
                PrivateHost::parse(text)
                    .map_err(|problem| format!("{problem}; write HOST:PORT, such as {example}"))
            }),
            proxy: Proxy::parse(&settings.proxy).unwrap_or_else(|problem| {
                problems.push(SettingProblem {
                    key: "proxy",
                    problem: problem.to_owned(),
                    fix: "write an address such as `http://proxy.example.org:3128`, or leave it empty"
                        .to_owned(),
                });
                None
            }),
            max_body_bytes: settings.max_body_bytes,
            extra_ca: Vec::new(),
        };
        if settings.max_body_bytes == 0 {
            problems.push(SettingProblem {
                key: "max_body_bytes",
                problem: "0 leaves no room for an answer".to_owned(),
                fix: "write a number of bytes, such as 10485760".to_owned(),
            });
        }
        if problems.is_empty() { Ok(policy) } else { Err(problems) }
    }

    /// Trusts more certificates than the system's, as PEM.
    ///
    /// # Errors
    /// A sentence, when there is no certificate in it.
    pub fn with_extra_ca(mut self, pem: &[u8]) -> Result<Self, String> {
        self.extra_ca = CertificateDer::pem_slice_iter(pem).filter_map(Result::ok).collect();
        if self.extra_ca.is_empty() {
            return Err("the file of extra certificates holds no certificate in PEM form".to_owned());
        }
        Ok(self)
    }

    /// The largest body of an answer.
    #[must_use]
    pub const fn max_body_bytes(&self) -> u64 {
        self.max_body_bytes
    }

    /// Applies the rules `text` to `name`, and `address` to an address in the text.
    pub(crate) fn judge(&self, text: &str) -> Result<AddressText, Refusal> {
        let address = AddressText::read(text)?;
        if !self.is_private(&address.host, address.port) {
            self.check_scheme(&address)?;
            self.check_port(&address)?;
            self.check_name(&address.host, address.port)?;
        }
        if let Host::Address(literal) = address.host {
            self.judge_answers(&address.host, address.port, &[literal])?;
        }
        Ok(address)
    }

    /// Whether `[egress] private` names host and port.
    pub(crate) fn is_private(&self, host: &Host, port: u16) -> bool {
        self.private.iter().any(|private| private.names(host, port))
    }

    /// Applies the rule `address` to all addresses of a host. One bad address refuses all.
    pub(crate) fn judge_answers(&self, host: &Host, port: u16, answers: &[IpAddr]) -> Result<(), Refusal> {
        if answers.is_empty() {
            return Err(Refusal::new(Rule::Address, format!("{host} has no address")));
        }
        if answers.len() > MAX_ANSWERS {
            return Err(Refusal::new(Rule::Address, format!("{host} has more than {MAX_ANSWERS} addresses")));
        }
        let is_named = self.is_private(host, port);
        answers.iter().try_for_each(|answer| match special_address(*answer) {
            Some(special) if !self.is_exempt(*answer, port, special, is_named) => {
                Err(refused_address(host, port, *answer, special))
            }
            _ => Ok(()),
        })
    }

    /// Whether `[egress] private` allows a special address. `is_named` says whether it names the host.
    fn is_exempt(&self, address: IpAddr, port: u16, special: SpecialAddress, is_named: bool) -> bool {
        if special.exact_only {
            return self.private.iter().any(|private| private.names_exactly(address, port));
        }
        is_named || self.is_private(&Host::Address(address), port)
    }

    fn check_scheme(&self, address: &AddressText) -> Result<(), Refusal> {
        if self.schemes.iter().any(|scheme| scheme == address.scheme) {
            return Ok(());
        }
        let reason = format!("the scheme {} is not allowed", address.scheme);
        Err(Refusal::new(Rule::Scheme, reason).allowed_by("schemes", address.scheme))
    }

    fn check_port(&self, address: &AddressText) -> Result<(), Refusal> {
        if self.ports.contains(&address.port) {
            return Ok(());
        }
        let refusal = Refusal::new(Rule::Port, format!("the port {} is not allowed", address.port));
        // The rules below would refuse a local host after its port is allowed.
        if is_local(&address.host) {
            return Err(refusal.allowed_as_private(address.host.with_port(address.port)));
        }
        Err(refusal.allowed_by("ports", &address.port.to_string()))
    }

    fn check_name(&self, host: &Host, port: u16) -> Result<(), Refusal> {
        let refusal = |reason| Refusal::new(Rule::Name, reason);
        if let Host::Name(name) = host {
            let as_private = |reason| Err(refusal(reason).allowed_as_private(host.with_port(port)));
            if !name.contains('.') {
                return as_private(format!("{name} is a name without a domain, so it is a local machine"));
            }
            if let Some(suffix) = local_suffix(name) {
                return as_private(format!("{name} ends with the local or reserved name {suffix}"));
            }
        }
        if self.deny.iter().any(|pattern| pattern.matches(host, port)) {
            return Err(refusal(format!("the operator denies {host} in `[egress] deny`")));
        }
        if !self.allow.is_empty() && !self.allow.iter().any(|pattern| pattern.matches(host, port)) {
            return Err(refusal(format!("{host} is not in the operator's list `[egress] allow`"))
                .allowed_by("allow", &host.with_port(port)));
        }
        Ok(())
    }
}

fn refused_address(host: &Host, port: u16, address: IpAddr, special: SpecialAddress) -> Refusal {
    let entry = host.with_port(port);
    let Host::Name(name) = host else {
        return Refusal::new(Rule::Address, format!("{address} is {}", special.kind))
            .allowed_as_private(entry);
    };
    let reason = format!("the address of {name} is {}", special.kind);
    let refusal = Refusal::new(Rule::Address, reason).of_address(SocketAddr::new(address, port));
    // Its name does not allow an address that only counts by itself.
    if special.exact_only { refusal } else { refusal.allowed_as_private(entry) }
}

fn is_local(host: &Host) -> bool {
    match host {
        Host::Name(name) => !name.contains('.') || local_suffix(name).is_some(),
        Host::Address(address) => special_address(*address).is_some(),
    }
}

fn check_schemes(schemes: &[String], problems: &mut Vec<SettingProblem>) {
    if schemes.is_empty() || schemes.iter().any(|scheme| !matches!(scheme.as_str(), "https" | "http")) {
        problems.push(SettingProblem {
            key: "schemes",
            problem: "only `https` and `http` are known, and one is needed".to_owned(),
            fix: "write `schemes = [\"https\"]` or `schemes = [\"https\", \"http\"]`".to_owned(),
        });
    }
}

fn check_ports(ports: &[u16], problems: &mut Vec<SettingProblem>) {
    if ports.is_empty() || ports.contains(&0) || ports.len() > MAX_SETTING_ENTRIES {
        problems.push(SettingProblem {
            key: "ports",
            problem: format!(
                "the list is empty, has the port 0 or has more than {MAX_SETTING_ENTRIES} entries"
            ),
            fix: "write a list such as `ports = [80, 443]`".to_owned(),
        });
    }
}

/// Reads a list of texts, and reports each entry that cannot be read.
fn read_list<T>(
    key: &'static str,
    texts: &[String],
    problems: &mut Vec<SettingProblem>,
    read: impl Fn(&str) -> Result<T, String>,
) -> Vec<T> {
    if texts.len() > MAX_SETTING_ENTRIES {
        problems.push(SettingProblem {
            key,
            problem: format!("the list has more than {MAX_SETTING_ENTRIES} entries"),
            fix: "use patterns such as `*.example.org` or blocks such as `10.0.0.0/8:443`".to_owned(),
        });
        return Vec::new();
    }
    let mut entries = Vec::with_capacity(texts.len());
    for (at, text) in texts.iter().enumerate() {
        match read(text) {
            Ok(entry) => entries.push(entry),
            Err(reason) => {
                let (problem, fix) = reason.split_once("; ").unwrap_or((&reason, "correct the entry"));
                // The entry is not quoted: a password may be in it by accident.
                let problem = format!("entry {}: {problem}", at + 1);
                problems.push(SettingProblem { key, problem, fix: fix.to_owned() });
            }
        }
    }
    entries
}

#[cfg(test)]
#[path = "policy_tests.rs"]
mod tests;
