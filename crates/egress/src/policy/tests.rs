use super::*;

fn rule(text: &str) -> NetworkRule {
    let (action, target) = text.split_once(' ').unwrap();
    NetworkRule {
        action: action.to_owned(),
        target: target.to_owned(),
    }
}

fn rules(texts: &[&str]) -> Vec<NetworkRule> {
    texts.iter().map(|text| rule(text)).collect()
}

fn wire(default: Option<&str>, texts: &[&str]) -> NetworkPolicy {
    NetworkPolicy {
        default_action: default.map(str::to_owned),
        egress: rules(texts),
    }
}

fn policy(texts: &[&str]) -> Policy {
    Policy::read(&wire(Some("allow"), texts)).unwrap()
}

fn shown(policy: &Policy) -> Vec<String> {
    let wire = policy.to_wire().egress;
    wire.iter()
        .map(|it| format!("{} {}", it.action, it.target))
        .collect()
}

fn owned(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|&text| text.to_owned()).collect()
}

#[test]
fn a_policy_is_read_with_its_defaults() {
    for (word, action) in [
        (None, Action::Deny),
        (Some(""), Action::Deny),
        (Some("deny"), Action::Deny),
        (Some("allow"), Action::Allow),
        (Some("Allow "), Action::Allow),
        (Some("ask"), Action::Ask),
    ] {
        let read = Policy::read(&wire(word, &[])).unwrap();
        assert_eq!(read.default, action, "{word:?}");
    }
    let read = policy(&["allow a.com", " b.com", "DENY *.C.com", "ask 10.0.0.0/8"]);
    let expected = [
        "allow a.com",
        "deny b.com",
        "deny *.c.com",
        "ask 10.0.0.0/8",
    ];
    assert_eq!(shown(&read), expected);
}

#[test]
fn what_is_wrong_is_told_with_its_place() {
    for (default, text, code, words) in [
        (
            "perhaps",
            "deny a.com",
            "POLICY_ACTION_UNKNOWN",
            "\"perhaps\" of the default",
        ),
        (
            "deny",
            "drop\u{1b} a.com",
            "POLICY_ACTION_UNKNOWN",
            "\"drop\\u{1b}\" of rule 1",
        ),
        (
            "deny",
            "deny a..com",
            "POLICY_TARGET_INVALID",
            "rule 1 of the policy",
        ),
    ] {
        let refused = Policy::read(&wire(Some(default), &["allow ok.com", text])).unwrap_err();
        assert_eq!(refused.code(), code, "{text}");
        assert!(refused.to_string().contains(words), "{refused}");
    }
}

#[test]
fn rules_have_a_limit_everywhere() {
    let many: Vec<NetworkRule> = (0..RULES_MAX)
        .map(|at| rule(&format!("allow n{at}.com")))
        .collect();
    let most = NetworkPolicy {
        default_action: None,
        egress: many.clone(),
    };
    let full = Policy::read(&most).unwrap();
    let mut more = most;
    more.egress.push(rule("deny x.com"));
    assert_eq!(
        Policy::read(&more),
        Err(PolicyError::TooMany(RULES_MAX + 1))
    );
    let one_more = full.merged(&rules(&["deny x.com"])).unwrap_err();
    assert_eq!(one_more.code(), "POLICY_TOO_LARGE");
    // What takes the place of another makes it no longer.
    assert!(full.merged(&rules(&["deny n7.com"])).is_ok());
}

#[test]
fn incoming_rules_go_first_and_take_the_place_of_others() {
    let own = policy(&["allow a.com", "deny b.com", "deny a.com", "allow c.com"]);
    let incoming = rules(&["deny c.com", "allow A.com.", "deny a.com", "allow a.com:22"]);
    let merged = own.merged(&incoming).unwrap();
    let expected = ["deny c.com", "allow a.com", "allow a.com:22", "deny b.com"];
    assert_eq!(shown(&merged), expected);
    assert_eq!(merged.default, Action::Allow);
    assert_eq!(own.merged(&[]), Err(PolicyError::Empty));
}

#[test]
fn rules_go_by_their_target() {
    let own = policy(&[
        "allow a.com",
        "deny *.b.com",
        "deny a.com",
        "allow 10.0.0.0/8",
    ]);
    let (left, matched) = own
        .without(&owned(&[
            "A.com",
            "nowhere.com",
            "10.0.0.0/8",
            "not a target",
        ]))
        .unwrap();
    assert_eq!(shown(&left), ["deny *.b.com"]);
    assert_eq!(matched, ["A.com", "10.0.0.0/8"]);
    let (same, none) = own.without(&owned(&["b.com"])).unwrap();
    assert_eq!((same, none), (own.clone(), Vec::new()));
    assert_eq!(own.without(&[]), Err(PolicyError::Empty));
}

#[test]
fn the_mode_is_enforcing_once_there_is_a_rule() {
    assert_eq!(Policy::new(Action::Deny).mode(), Mode::DenyAll);
    assert_eq!(Policy::new(Action::Allow).mode(), Mode::AllowAll);
    assert_eq!(Policy::new(Action::Ask).mode(), Mode::Enforcing);
    assert_eq!(policy(&["allow a.com"]).mode(), Mode::Enforcing);
}
