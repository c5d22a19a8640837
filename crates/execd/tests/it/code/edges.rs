//! What comes after the end of a cell, and one context too many.

use barchan_wire::execd::event::EventKind;
use serde_json::json;

use super::{context, rest, start};
use crate::kernel::offer;
use crate::world::{World, until};

#[test]
fn what_a_kernel_publishes_after_its_end_is_heard_and_no_cell_waits_for_ever() {
    let world = World::new();
    let (id, stream, mut kernel) = context(&world, "401.9");
    kernel.finish();
    kernel.publish("execute_result", &json!({"data": {"text/plain": "4"}}));
    let told = [(
        EventKind::Result,
        r#"{"text":"4","text/plain":"4"}"#.to_owned(),
    )];
    assert_eq!(rest(stream)[..1], told);

    let stream = start(&world, &id, "setInterval");
    assert_eq!(kernel.cell(), "setInterval");
    kernel.finish();
    let ended = std::thread::spawn(move || rest(stream));
    until("the cell ends", || {
        kernel.print("tick");
        ended.is_finished()
    });
    let last = ended.join().unwrap().pop();
    assert_eq!(last.unwrap().0, EventKind::ExecutionComplete);
}

#[test]
fn there_are_not_too_many_contexts() {
    let world = World::new();
    offer(&world, "401.10");
    let new = || world.post("/code/context", &json!({"language": "fake"}));
    for _ in 0..64 {
        assert_eq!(new().status, 200);
    }
    assert_eq!(new().error(), (409, "RUNTIME_ERROR".to_owned()));
}
