//! Where Azure's resources are: what is sent there is sent to Azure, and what comes from there was said by it.

/// The domains below which they are, in every cloud.
const HOSTS: [&str; 7] = [
    "openai.azure.com",
    "cognitiveservices.azure.com",
    "services.ai.azure.com",
    "openai.azure.us",
    "cognitiveservices.azure.us",
    "openai.azure.cn",
    "cognitiveservices.azure.cn",
];

/// Whether a host, in small letters as addresses are parsed, is one of Azure's own. Only https shows that it is.
#[must_use]
pub fn is_azure_host(host: &str) -> bool {
    let rest = |domain: &&str| host.strip_suffix(*domain);
    HOSTS.iter().filter_map(rest).any(|rest| rest.is_empty() || rest.ends_with('.'))
}

#[cfg(test)]
mod tests {
    use super::is_azure_host;

    #[test]
    fn only_its_own_hosts_are_azures() {
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
