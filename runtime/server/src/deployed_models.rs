//! The models of a deployed flow: who binds them, what they can do and what they cost.

use crate::model_test::ModelTester;
use redflow_contract::deployed_model::{
    DeployedModel, DeployedModelList, MAX_DEPLOYED_MODELS, MAX_MODEL_AGENTS,
};
use redflow_contract::edge::Role;
use redflow_contract::id::{InstanceId, NodeSummary};
use redflow_flow::{CheckedFlow, NodeIx, ProcessSecrets};
use redflow_ports::Adapters;
use std::collections::HashMap;

/// The models of the flow of an instance. Builds each one to see what it is.
pub(crate) fn deployed_models(
    checked: &CheckedFlow,
    instance: &InstanceId,
    adapters: &Adapters,
    env: &dyn Fn(&str) -> Option<String>,
) -> DeployedModelList {
    let flow = &checked.flow;
    let mut agents: HashMap<NodeIx, Vec<&NodeSummary>> = HashMap::new();
    for agent in &checked.agents {
        agent.models.iter().for_each(|model| agents.entry(*model).or_default().push(&agent.node));
    }
    let models = || (0..flow.nodes.len()).filter(|ix| flow.nodes[*ix].kind.role == Role::Model);
    let describe = |ix: NodeIx| {
        let node = flow.summary(ix);
        let mut props = flow.resolved_props(ix, env, ProcessSecrets::InSecretProperties);
        flow.add_shared_key(ix, &node.type_name, &mut props, env);
        let (model, problem) = match ModelTester::new(adapters, env, &node, &props) {
            Ok(tester) => (Some(tester.describe()), None),
            Err(problem) => (None, Some(problem)),
        };
        let bound = agents.get(&ix).map(Vec::as_slice).unwrap_or_default();
        DeployedModel {
            node,
            tab: flow.tab_of(ix).into(),
            instance: Some(instance.clone()).filter(|instance| *instance != InstanceId::local()),
            agents: bound.iter().take(MAX_MODEL_AGENTS).map(|agent| NodeSummary::clone(agent)).collect(),
            omitted_agents: omitted(bound.len(), MAX_MODEL_AGENTS),
            model,
            problem,
        }
    };
    DeployedModelList {
        omitted: omitted(models().count(), MAX_DEPLOYED_MODELS),
        models: models().take(MAX_DEPLOYED_MODELS).map(describe).collect(),
    }
}

/// Adds the models of another flow, as far as there is room.
pub(crate) fn add_models(list: &mut DeployedModelList, other: &DeployedModelList) {
    let room = MAX_DEPLOYED_MODELS.saturating_sub(list.models.len());
    list.models.extend(other.models.iter().take(room).cloned());
    list.omitted += other.omitted + omitted(other.models.len(), room);
}

fn omitted(all: usize, most: usize) -> u32 {
    u32::try_from(all.saturating_sub(most)).unwrap_or(u32::MAX)
}
