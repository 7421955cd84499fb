//! The host names of Azure. A key for Azure may go to these hosts only.

/// The domains of Azure's resources, in every cloud.
const HOSTS: [&str; 7] = [
    "openai.azure.com",
    "cognitiveservices.azure.com",
    "services.ai.azure.com",
    "openai.azure.us",
    "cognitiveservices.azure.us",
    "openai.azure.cn",
    "cognitiveservices.azure.cn",
];

/// Whether a host is one of Azure's own. The host must be in small letters, as URL parsers give it. Only
/// https proves that the host is genuine.
#[must_use]
pub fn is_azure_host(host: &str) -> bool {
    let rest = |domain: &&str| host.strip_suffix(*domain);
    HOSTS.iter().filter_map(rest).any(|rest| rest.is_empty() || rest.ends_with('.'))
}

#[cfg(test)]
mod tests {
    use super::is_azure_host;

    #[test]
    fn knows_the_hosts_of_azure() {
        for host in
            ["openai.azure.com", "name.openai.azure.com", "a.b.services.ai.azure.com", "x.openai.azure.cn"]
        {
            assert!(is_azure_host(host), "{host}");
        }
        for host in
            ["", "azure.com", "evilopenai.azure.com", "openai.azure.com.example", "127.0.0.1", "localhost"]
        {
            assert!(!is_azure_host(host), "{host}");
        }
    }
}
