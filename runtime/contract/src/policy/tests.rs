use super::{
    CallSubject, Decision, MAX_LIMIT, MAX_POLICY_ITEMS, MAX_POLICY_RULES, MAX_ROLES, Policy, PolicyProblem,
    PolicyRule, RoleMembers,
};
use crate::digest::Digest;
use crate::node::EffectClass;
use crate::tool::{
    FilePermission, MatchedCalls, NetworkPermission, ToolEntry, ToolOrigin, ToolPermissions, ToolRetry,
    ToolState, matches_tool,
};
use pretty_assertions::assert_eq;
use proptest::prelude::*;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::LazyLock;

type Roles = BTreeMap<String, RoleMembers>;

static PERMISSIONS: LazyLock<ToolPermissions> = LazyLock::new(|| ToolPermissions {
    network: NetworkPermission::Hosts,
    files: FilePermission::Write,
    process: false,
    secrets: vec!["WEATHER_KEY".to_owned()],
});

static NO_PERMISSIONS: LazyLock<ToolPermissions> = LazyLock::new(ToolPermissions::default);

fn weather() -> CallSubject<'static> {
    CallSubject {
        id: "weather.current.now",
        name: "get_weather",
        node: "n1",
        node_type: "registry-tool",
        server: Some("github"),
        agent: Some("a1"),
        agent_name: "Clerk",
        instance: "plant-7",
        session: Some("s1"),
        by: Some("token:alice"),
        effect: EffectClass::Read,
        permissions: &PERMISSIONS,
    }
}

fn roles() -> Roles {
    serde_json::from_value(json!({
        "office": {"tokens": ["alice"], "instances": ["plant-9"], "agents": ["a9"]},
        "plants": {"instances": ["plant-7"]},
        "clerks": {"agents": ["Clerk"]},
        "robots": {"agents": ["a1"]},
        "guests": {"tokens": ["bob"], "instances": ["plant-8"], "agents": ["a8"]},
        "unused": {},
        "home": {"instances": ["local"]},
    }))
    .unwrap()
}

fn rules(rules: Value) -> Vec<PolicyRule> {
    serde_json::from_value(rules).unwrap()
}

fn policy(written: Value) -> Policy {
    Policy::new(&rules(written), &roles()).unwrap()
}

fn problems(written: Value) -> Vec<PolicyProblem> {
    Policy::new(&rules(written), &roles()).unwrap_err()
}

#[test]
fn a_call_that_no_rule_names_is_allowed() {
    assert_eq!(Policy::default().decide(&weather()), Decision::Allow);
    assert_eq!(Policy::default().limits(&weather()).count(), 0);
    let other =
        policy(json!([{"deny": ["mail.*"]}, {"allow": ["mail.send"]}, {"limit": ["mail"], "rate": "1/s"}]));
    assert_eq!(other.decide(&weather()), Decision::Allow);
    assert_eq!(other.limits(&weather()).count(), 0);
}

#[test]
fn a_rule_names_tools_by_id_name_and_prefix() {
    let rows = [
        ("weather.current.now", true),
        ("get_weather", true),
        ("weather.*", true),
        ("weather.current.*", true),
        ("*", true),
        ("weather", false),
        ("weather.current", false),
        ("weather.current.now.*", false),
        ("current.*", false),
        ("get_weather.*", false),
        ("Weather.*", false),
    ];
    for (pattern, expected) in rows {
        let denied = policy(json!([{"deny": ["other.tool", pattern]}])).decide(&weather());
        assert_eq!(denied == Decision::Deny { rule: 1 }, expected, "{pattern}");
    }
}

#[test]
fn each_list_narrows_a_rule() {
    let rows = [
        (json!({"agents": ["a1"]}), true),
        (json!({"agents": ["Clerk"]}), true),
        (json!({"agents": ["a2", "clerk"]}), false),
        (json!({"nodes": ["n1"]}), true),
        (json!({"nodes": ["registry-tool"]}), true),
        (json!({"nodes": ["n2"]}), false),
        (json!({"servers": ["jira", "github"]}), true),
        (json!({"servers": ["jira"]}), false),
        (json!({"effect": ["read"]}), true),
        (json!({"effect": ["idempotent", "at_most_once"]}), false),
        (json!({"permissions": ["network.hosts"]}), true),
        (json!({"permissions": ["network.public"]}), false),
        (json!({"permissions": ["files.write"]}), true),
        (json!({"permissions": ["files.read", "process"]}), false),
        (json!({"permissions": ["secrets.WEATHER_KEY"]}), true),
        (json!({"permissions": ["secrets.OTHER"]}), false),
        (json!({"roles": ["office"]}), true),
        (json!({"roles": ["plants"]}), true),
        (json!({"roles": ["clerks"]}), true),
        (json!({"roles": ["robots"]}), true),
        (json!({"roles": ["guests"]}), false),
        (json!({"roles": ["unused"]}), false),
        (json!({"roles": ["guests", "office"]}), true),
        (json!({"roles": ["office"], "agents": ["a2"]}), false),
        (json!({"roles": ["office"], "agents": ["a1"], "effect": ["read"], "nodes": ["n1"]}), true),
    ];
    for (lists, expected) in rows {
        let with = |action: &str| {
            let mut rule = lists.clone();
            rule[action] = json!(["weather.*"]);
            policy(json!([rule])).decide(&weather())
        };
        let (deny, allow) = (Decision::Deny { rule: 1 }, Decision::Allow);
        assert_eq!(with("deny"), if expected { deny } else { allow }, "{lists}");
        assert_eq!(with("ask"), if expected { Decision::Ask { rule: 1 } } else { allow }, "{lists}");
        // A tool with an `allow` rule is denied to every other call.
        assert_eq!(with("allow"), if expected { allow } else { deny }, "{lists}");
        let mut limit = lists.clone();
        limit["limit"] = json!(["weather.*"]);
        limit["concurrent"] = json!(1);
        assert_eq!(policy(json!([limit])).limits(&weather()).count(), usize::from(expected), "{lists}");
    }
}

#[test]
fn a_role_has_the_local_flow_only_if_it_names_it() {
    let decide =
        |role: &str, call: &CallSubject<'_>| policy(json!([{"deny": ["*"], "roles": [role]}])).decide(call);
    let local = CallSubject { instance: "local", by: None, agent: None, agent_name: "", ..weather() };
    assert_eq!(decide("home", &local), Decision::Deny { rule: 1 });
    for role in ["office", "plants", "clerks", "unused"] {
        assert_eq!(decide(role, &local), Decision::Allow, "{role}");
    }
    // Only a token is a token: other principals do not get its role by their text.
    for by in ["alice", "cli", "redflow-ui", "node-red:alice"] {
        assert_eq!(decide("office", &CallSubject { by: Some(by), ..local }), Decision::Allow, "{by}");
    }
    assert_eq!(
        decide("office", &CallSubject { by: Some("token:alice"), ..local }),
        Decision::Deny { rule: 1 }
    );
}

#[test]
fn deny_wins_over_ask_and_ask_over_allow() {
    let (allow, ask, deny) = (json!({"allow": ["*"]}), json!({"ask": ["*"]}), json!({"deny": ["*"]}));
    let rows = [
        (json!([allow, ask, deny]), Decision::Deny { rule: 3 }),
        (json!([ask, allow]), Decision::Ask { rule: 1 }),
        (json!([allow, allow, ask]), Decision::Ask { rule: 3 }),
        (json!([allow, deny, deny]), Decision::Deny { rule: 2 }),
        (json!([allow]), Decision::Allow),
        (json!([ask, {"allow": ["*"], "agents": ["a2"]}]), Decision::Deny { rule: 2 }),
        (json!([{"allow": ["*"], "agents": ["a2"]}, {"allow": ["weather.*"]}]), Decision::Allow),
    ];
    for (written, expected) in rows {
        assert_eq!(policy(written.clone()).decide(&weather()), expected, "{written}");
    }
}

/// A tool as the registry has it.
fn entry(origin: ToolOrigin, effect: Option<EffectClass>) -> ToolEntry {
    ToolEntry {
        id: "weather.current.now".to_owned(),
        name: "get_weather".to_owned(),
        origin,
        provider: if origin == ToolOrigin::Manifest { "manifest" } else { "n1" }.to_owned(),
        title: String::new(),
        description: String::new(),
        input_schema: None,
        output_schema: None,
        effect,
        timeout_ms: 1,
        retry: ToolRetry::default(),
        permissions: PERMISSIONS.clone(),
        digest: Digest::of(b""),
        node_type: (origin != ToolOrigin::Manifest).then(|| "http-tool".to_owned()),
        state: ToolState::Ready,
        reason: None,
        instance: None,
        rules: Vec::new(),
    }
}

#[test]
fn a_rule_about_servers_names_the_tools_of_a_server() {
    let policy = policy(json!([{"deny": ["*"], "servers": ["n1"]}, {"deny": ["*"], "servers": ["n2"]}]));
    let of_server = policy.rules_of(&entry(ToolOrigin::Mcp, Some(EffectClass::Read)));
    let calls: Vec<_> = of_server.iter().map(|rule| rule.calls).collect();
    assert_eq!(calls, [MatchedCalls::Every, MatchedCalls::None]);
}

#[test]
fn a_tool_has_the_rules_that_name_it_and_which_of_its_calls_they_match() {
    let rows = [
        (json!({}), "every", "every"),
        (json!({"agents": ["a1"]}), "some", "some"),
        (json!({"roles": ["office"]}), "some", "some"),
        (json!({"nodes": ["registry-tool"]}), "every", "none"),
        (json!({"nodes": ["http-tool"]}), "some", "every"),
        (json!({"nodes": ["n1"]}), "some", "every"),
        (json!({"nodes": ["n2"]}), "some", "none"),
        (json!({"servers": ["github"]}), "none", "none"),
        (json!({"effect": ["read"]}), "every", "some"),
        (json!({"effect": ["idempotent"]}), "none", "some"),
        (json!({"permissions": ["secrets.WEATHER_KEY"]}), "every", "every"),
        (json!({"permissions": ["process"], "agents": ["a1"]}), "none", "none"),
    ];
    for (lists, of_manifest, of_node) in rows {
        for action in ["allow", "ask", "deny", "limit"] {
            let mut rule = lists.clone();
            rule[action] = json!(["weather.*"]);
            if action == "limit" {
                rule["rate"] = json!("1/s");
            }
            let policy = policy(json!([{"deny": ["mail.*"]}, rule]));
            assert_eq!(policy.written()[1], serde_json::from_value(rule).unwrap());
            for (tool, calls) in [
                (entry(ToolOrigin::Manifest, Some(EffectClass::Read)), of_manifest),
                (entry(ToolOrigin::Builtin, None), of_node),
            ] {
                let expected = json!([{"rule": 2, "action": action, "calls": calls}]);
                assert_eq!(json!(policy.rules_of(&tool)), expected, "{lists} {action} {:?}", tool.origin);
            }
        }
    }
    assert_eq!(Policy::default().rules_of(&entry(ToolOrigin::Builtin, None)), []);
    let all = policy(json!(vec![json!({"limit": ["*"], "rate": "1/s"}); MAX_POLICY_RULES]));
    assert_eq!(all.rules_of(&entry(ToolOrigin::Builtin, None)).len(), MAX_POLICY_RULES);
}

#[test]
fn a_limit_counts_by_its_scope() {
    let key = |per: &str, call: &CallSubject<'_>| {
        let limited = policy(json!([{"limit": ["*"], "per": per, "concurrent": 2}]));
        let keys: Vec<String> = limited.limits(call).map(|(_, key)| key).collect();
        keys.concat()
    };
    let alone = CallSubject { agent: None, session: None, by: None, ..weather() };
    let rows = [
        ("tool", weather(), "tool:weather.current.now"),
        ("agent", weather(), "agent:7:plant-7:a1"),
        ("session", weather(), "session:7:plant-7:s1"),
        ("principal", weather(), "principal:token:alice"),
        ("session", CallSubject { session: None, ..weather() }, "agent:7:plant-7:a1"),
        ("principal", CallSubject { by: None, ..weather() }, "instance:plant-7"),
        ("agent", CallSubject { agent: None, ..weather() }, "principal:token:alice"),
        ("session", CallSubject { agent: None, session: None, ..weather() }, "principal:token:alice"),
        ("agent", alone, "instance:plant-7"),
        ("session", alone, "instance:plant-7"),
    ];
    for (per, call, expected) in rows {
        assert_eq!(key(per, &call), expected, "{per}");
    }
    // Ids of two Node-REDs cannot be mixed up.
    let (one, other) = (CallSubject { instance: "a", agent: Some("b:c"), ..weather() }, weather());
    assert_ne!(key("agent", &one), key("agent", &CallSubject { instance: "a:b", agent: Some("c"), ..other }));
}

#[test]
fn a_limit_has_the_numbers_of_its_rule() {
    let limited = policy(json!([
        {"deny": ["mail.*"]},
        {"limit": ["*"], "rate": "30/m"},
        {"limit": ["weather.*"], "per": "agent", "rate": "5/s", "burst": 9, "concurrent": 2},
    ]));
    let limits: Vec<_> = limited.limits(&weather()).collect();
    let numbers = |at: usize| {
        let limit = limits[at].0;
        (limit.rule, limit.rate.map(|rate| rate.to_string()), limit.burst, limit.concurrent)
    };
    assert_eq!(numbers(0), (2, Some("30/m".to_owned()), 30, None));
    assert_eq!(numbers(1), (3, Some("5/s".to_owned()), 9, Some(2)));
    assert_eq!(limits.len(), 2);
}

#[test]
fn a_wrong_rule_is_a_problem_with_its_place() {
    let tool = "the id or the name of a tool, `prefix.*` or `*`";
    let one = "exactly one of `allow`, `ask`, `deny` and `limit`";
    let number = format!("a number from 1 to {MAX_LIMIT}");
    let without = ("a rule with `limit`", "a rule without `limit`");
    let rows: &[(Value, &str, &str, &str)] = &[
        (json!({}), "/policy/0", one, "none of them"),
        (json!({"allow": ["*"], "deny": ["*"]}), "/policy/0", one, "allow and deny"),
        (json!({"deny": []}), "/policy/0/deny", "at least one entry", "an empty list"),
        (json!({"deny": ["*"], "agents": []}), "/policy/0/agents", "at least one entry", "an empty list"),
        (
            json!({"deny": ["*"], "effect": []}),
            "/policy/0/effect",
            "at least one effect class",
            "an empty list",
        ),
        (json!({"deny": ["a", "a*"]}), "/policy/0/deny/1", tool, "`a*`"),
        (json!({"deny": ["*"], "nodes": [""]}), "/policy/0/nodes/0", "a text that is not empty", "``"),
        (json!({"deny": ["*"], "roles": ["x"]}), "/policy/0/roles/0", "a role that `roles` defines", "`x`"),
        (json!({"deny": ["*"], "rate": "1/s"}), "/policy/0/rate", without.0, without.1),
        (json!({"deny": ["*"], "burst": 1}), "/policy/0/burst", without.0, without.1),
        (json!({"ask": ["*"], "per": "tool"}), "/policy/0/per", without.0, without.1),
        (json!({"ask": ["*"], "concurrent": 1}), "/policy/0/concurrent", without.0, without.1),
        (json!({"limit": ["*"]}), "/policy/0", "`rate`, `concurrent` or both", "a limit without them"),
        (json!({"limit": ["*"], "concurrent": 0}), "/policy/0/concurrent", &number, "0"),
        (
            json!({"limit": ["*"], "rate": "1/s", "burst": MAX_LIMIT + 1}),
            "/policy/0/burst",
            &number,
            "1000001",
        ),
        (
            json!({"limit": ["*"], "concurrent": 1, "burst": 2}),
            "/policy/0/burst",
            "a limit with `rate`",
            "a limit without `rate`",
        ),
    ];
    for (rule, pointer, expected, found) in rows {
        let problem = PolicyProblem {
            pointer: (*pointer).into(),
            expected: (*expected).into(),
            found: (*found).into(),
        };
        assert_eq!(problems(json!([rule])), [problem], "{rule}");
    }
    for permission in ["network", "network.none", "files", "secrets.", "secrets", "Process", ""] {
        let found = problems(json!([{"deny": ["*"], "permissions": [permission]}]));
        assert_eq!(found[0].pointer, "/policy/0/permissions/0", "{permission}");
        assert!(
            found[0].expected.contains("`network.hosts`") && found[0].expected.contains("`secrets.NAME`")
        );
    }
    let rate = problems(json!([{"limit": ["*"], "rate": "30 per minute"}]));
    assert!(rate[0].expected.contains("such as `30/m`") && rate[0].found == "`30 per minute`", "{rate:?}");
}

#[test]
fn all_problems_come_at_once() {
    let found =
        problems(json!([{"deny": ["a b"], "rate": "x"}, {"allow": ["*"]}, {"limit": ["*"], "rate": "x"}]));
    let pointers: Vec<&str> = found.iter().map(|problem| problem.pointer.as_str()).collect();
    assert_eq!(pointers, ["/policy/0/deny/0", "/policy/0/rate", "/policy/2/rate"]);
}

#[test]
fn rules_lists_and_roles_are_bounded() {
    let deny = PolicyRule { deny: Some(vec!["*".to_owned()]), ..PolicyRule::default() };
    let count = |rules: usize, items: usize, roles: usize| {
        let mut rules = vec![deny.clone(); rules];
        rules[0].agents = Some(vec!["a".to_owned(); items]);
        let role = RoleMembers { tokens: vec!["a".to_owned(); items], ..RoleMembers::default() };
        let roles = (0..roles).map(|n| (format!("r{n}"), role.clone())).collect();
        Policy::new(&rules, &roles).err().unwrap_or_default()
    };
    assert_eq!(count(MAX_POLICY_RULES, MAX_POLICY_ITEMS, MAX_ROLES), []);
    let pointers = |problems: Vec<PolicyProblem>| problems.into_iter().map(|p| p.pointer).collect::<Vec<_>>();
    assert_eq!(pointers(count(MAX_POLICY_RULES + 1, 1, 1)), ["/policy"]);
    assert_eq!(pointers(count(1, MAX_POLICY_ITEMS + 1, 1)), ["/roles/r0/tokens", "/policy/0/agents"]);
    assert_eq!(pointers(count(1, 1, MAX_ROLES + 1)), ["/roles"]);
    let roles = Roles::from([(String::new(), RoleMembers::default())]);
    assert_eq!(Policy::new(&[], &roles).unwrap_err()[0].pointer, "/roles/");
}

#[test]
fn the_last_rule_counts_too() {
    let mut written = vec![rules(json!([{"deny": ["mail.*"]}])).remove(0); MAX_POLICY_RULES - 1];
    written.push(rules(json!([{"deny": ["weather.*"]}])).remove(0));
    let full = Policy::new(&written, &roles()).unwrap();
    assert_eq!(full.decide(&weather()), Decision::Deny { rule: MAX_POLICY_RULES });
}

fn texts(from: &'static [&'static str]) -> impl Strategy<Value = Vec<String>> {
    proptest::collection::vec(proptest::sample::select(from).prop_map(str::to_owned), 1..4)
}

fn any_rule() -> impl Strategy<Value = PolicyRule> {
    let lists = (
        proptest::option::of(texts(&["a1", "a2", "Clerk"])),
        proptest::option::of(texts(&["n1", "n2", "registry-tool"])),
        proptest::option::of(texts(&["office", "guests", "plants"])),
        proptest::option::of(texts(&["network.hosts", "process", "secrets.WEATHER_KEY"])),
    );
    (0..3_usize, texts(&["*", "a.*", "a.b.*", "a.b.c", "b.c", "name"]), lists).prop_map(
        |(action, tools, lists)| {
            let mut rule = PolicyRule { agents: lists.0, nodes: lists.1, ..PolicyRule::default() };
            (rule.roles, rule.permissions) = (lists.2, lists.3);
            *[&mut rule.allow, &mut rule.ask, &mut rule.deny].into_iter().nth(action).unwrap() = Some(tools);
            rule
        },
    )
}

fn any_call() -> impl Strategy<Value = CallSubject<'static>> {
    let id = proptest::sample::select(&["a.b", "a.b.c", "b.c", "a.bc"][..]);
    let agent = proptest::sample::select(&[Some("a1"), Some("a2"), None][..]);
    let by = proptest::sample::select(&[Some("token:alice"), Some("token:bob"), Some("cli"), None][..]);
    let rest = (proptest::sample::select(&["plant-7", "plant-8", "local"][..]), any::<bool>());
    (id, agent, by, rest).prop_map(|(id, agent, by, (instance, needs))| CallSubject {
        id,
        name: "name",
        agent,
        by,
        instance,
        permissions: if needs { &PERMISSIONS } else { &NO_PERMISSIONS },
        ..weather()
    })
}

/// Whether a rule is about a call, read list by list.
fn is_about(rule: &PolicyRule, call: &CallSubject<'_>, tools: &[String]) -> bool {
    let has = |list: &Option<Vec<String>>, is_match: &dyn Fn(&String) -> bool| {
        list.as_ref().is_none_or(|list| list.iter().any(is_match))
    };
    let is_agent = |text: &String| Some(text.as_str()) == call.agent || text == call.agent_name;
    let is_member = |name: &String| {
        let role = &roles()[name];
        role.tokens.iter().any(|token| call.by == Some(&format!("token:{token}")))
            || role.instances.iter().any(|instance| instance == call.instance)
            || role.agents.iter().any(is_agent)
    };
    let needs = |name: &String| match name.as_str() {
        "network.hosts" => call.permissions.network == NetworkPermission::Hosts,
        "process" => call.permissions.process,
        secret => call.permissions.secrets.iter().any(|name| secret == format!("secrets.{name}")),
    };
    tools.iter().any(|pattern| matches_tool(pattern, call.id, call.name))
        && has(&rule.agents, &is_agent)
        && has(&rule.nodes, &|text| text == call.node || text == call.node_type)
        && has(&rule.roles, &is_member)
        && has(&rule.permissions, &needs)
}

fn is_allowed(rules: &[PolicyRule], call: &CallSubject<'_>) -> bool {
    !matches!(Policy::new(rules, &roles()).unwrap().decide(call), Decision::Deny { .. })
}

proptest! {
    #[test]
    fn the_index_decides_as_the_rules_read(rules in proptest::collection::vec(any_rule(), 0..8), call in any_call()) {
        let matching = |list: fn(&PolicyRule) -> &Option<Vec<String>>| {
            rules.iter().position(|rule| list(rule).as_ref().is_some_and(|tools| is_about(rule, &call, tools)))
        };
        let names = |tools: &Vec<String>| tools.iter().any(|tool| matches_tool(tool, call.id, call.name));
        let guarded = rules.iter().position(|rule| rule.allow.as_ref().is_some_and(names));
        let expected = match (matching(|rule| &rule.deny), guarded, matching(|rule| &rule.allow)) {
            (Some(at), _, _) | (None, Some(at), None) => Decision::Deny { rule: at + 1 },
            _ => matching(|rule| &rule.ask).map_or(Decision::Allow, |at| Decision::Ask { rule: at + 1 }),
        };
        prop_assert_eq!(Policy::new(&rules, &roles()).unwrap().decide(&call), expected);
    }

    #[test]
    fn a_further_deny_never_allows_more(
        rules in proptest::collection::vec(any_rule(), 0..8),
        mut further in any_rule(),
        call in any_call(),
    ) {
        further.deny = further.allow.take().or(further.ask.take()).or(further.deny);
        let mut more = rules.clone();
        more.push(further);
        prop_assert!(is_allowed(&rules, &call) || !is_allowed(&more, &call));
    }

    #[test]
    fn the_order_of_rules_does_not_matter(
        (rules, mixed) in proptest::collection::vec(any_rule(), 0..8)
            .prop_flat_map(|rules| (Just(rules.clone()), Just(rules).prop_shuffle())),
        call in any_call(),
    ) {
        let kind = |rules: &[PolicyRule]| {
            std::mem::discriminant(&Policy::new(rules, &roles()).unwrap().decide(&call))
        };
        prop_assert_eq!(kind(&rules), kind(&mixed));
    }
}
