use barchan_testkit::{fuzz, inputs};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::any;

use super::*;
use crate::enter::Orders;
use crate::guest::Boot;
use crate::spec::{Limits, Network};

const NAMES: &[&str] = &[
    "seq",
    "answer",
    "request",
    "create",
    "hello",
    "sandbox",
    "sandboxes",
    "log",
    "failed",
    "id",
    "note",
    "phase",
    "exited",
    "kind",
    "not_found",
    "message",
    "layers",
    "binds",
    "boot",
    "limits",
];

fuzz! {
    fn a_spec_goes_over_the_line_unchanged(
        id in any::<String>(),
        note in any::<String>(),
        entrypoint in vec(any::<String>(), 0..4),
        memory_bytes in option::of(any::<u64>()),
        layer in "[a-z/é]{0,20}",
    ) {
        let spec = Spec {
            id: id.clone(),
            layers: vec![layer.into()],
            binds: Vec::new(),
            boot: Boot { id, entrypoint, memory_bytes, ..Boot::default() },
            volumes: Vec::new(),
            gpus: None,
            limits: Limits { memory_bytes, ..Limits::default() },
            network: Network::Own,
            upper: None,
            from: None,
            keepsake: Keepsake(note.clone()),
            note,
        };
        let request = Request::Create(Box::new(spec.clone()));
        let line = serde_json::to_string(&Call { seq: 7, request }).unwrap();
        assert!(!line.contains('\n'));
        let Call { seq: 7, request: Request::Create(read) } = serde_json::from_str(&line).unwrap()
        else { panic!("{line}") };
        assert_eq!(*read, spec);
    }

    fn any_json_is_a_message_or_none(value in inputs::json(NAMES)) {
        let text = value.to_string();
        let _ = serde_json::from_str::<Call>(&text);
        let _ = serde_json::from_str::<Orders>(&text);
        if let Ok(message) = serde_json::from_str::<Message>(&text) {
            let again = serde_json::to_string(&message).unwrap();
            assert_eq!(serde_json::from_str::<Message>(&again).unwrap().seq, message.seq);
        }
    }
}
