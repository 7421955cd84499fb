//! Tools that agents can call, one file or folder each; and the download of the images of messages.
//!
//! Images: the effect `fetch_images` names https addresses, which this crate downloads through egress. The fact
//! has the bytes, so a replay needs no network. The provider never fetches an address: then the journal would not
//! have what the model saw, and the provider could reach what egress forbids.

pub mod calculator;
pub mod http;
mod image_fetcher;
pub mod knowledge;
pub mod memory;

pub use image_fetcher::{IMAGE_TIMEOUT, MAX_IMAGE_REDIRECTS};

use http::{HttpRequestTool, ManifestHttpTool};
use image_fetcher::GuardedImages;
use knowledge::{KnowledgeBaseTool, KnowledgeSettings};
use memory::MemoryTools;
use redflow_egress::{Egress, EgressPolicy};
use redflow_ports::{Adapters, ManifestToolConfig, Meter, NoMeter, NodeConfig};
use std::sync::Arc;

/// What tools share.
#[derive(Clone)]
pub struct ToolSettings {
    /// The way to addresses that a model chooses.
    pub egress: Egress,
    /// Counts the requests.
    pub meter: Arc<dyn Meter>,
    /// The knowledge bases; none if this process has no data directory.
    pub knowledge: Option<KnowledgeSettings>,
}

impl Default for ToolSettings {
    fn default() -> Self {
        Self { egress: Egress::new(EgressPolicy::default()), meter: Arc::new(NoMeter), knowledge: None }
    }
}

/// Registers the builders of all tools of this crate by their node type, and what downloads images.
pub fn register(adapters: &mut Adapters, settings: ToolSettings) {
    adapters.images = Some(Arc::new(GuardedImages::new(settings.clone())));
    adapters.tools.insert("calculator-tool", Arc::new(calculator::Calculator::build));
    let (own, manifest) = (settings.clone(), settings);
    let http_request = move |config: NodeConfig<'_>| HttpRequestTool::build(config, &own);
    adapters.tools.insert("http-request-tool", Arc::new(http_request));
    adapters.tool_providers.insert("memory-tool", Arc::new(MemoryTools::build));
    if let Some(knowledge) = manifest.knowledge.clone() {
        let knowledge_base = move |config: NodeConfig<'_>| KnowledgeBaseTool::build(config, &knowledge);
        adapters.tools.insert("knowledge-base-tool", Arc::new(knowledge_base));
    }
    let manifest_tool = move |config: ManifestToolConfig<'_>| ManifestHttpTool::build(config, &manifest);
    adapters.manifest_tool = Some(Arc::new(manifest_tool));
}

#[cfg(test)]
mod tests {
    use redflow_contract::Message;
    use redflow_contract::id::NodeSummary;
    use redflow_contract::node::{EffectClass, find};
    use redflow_ports::{Adapters, NodeConfig};

    /// The editor shows what the declaration says, and the engine does what the tool says.
    #[test]
    fn a_tool_does_what_its_declaration_says() {
        let mut adapters = Adapters::default();
        super::register(&mut adapters, super::ToolSettings::default());
        for (type_name, build) in &adapters.tools {
            let node =
                NodeSummary { id: "t".into(), type_name: (*type_name).to_owned(), name: String::new() };
            let (props, env, on_secret) = (Message::new(), |_: &str| None, |_: &str| ());
            let tool = build(NodeConfig::new(&node, &props, &env, &on_secret)).unwrap();
            let declared = find(type_name).effect.unwrap_or(EffectClass::AtMostOnce);
            assert_eq!(tool.effect(&Message::new()), declared, "{type_name}");
        }
    }
}
