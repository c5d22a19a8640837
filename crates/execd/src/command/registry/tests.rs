use super::*;
use crate::command::Birth;
use crate::command::audience::Leave;

fn command(id: &str, is_keyed: bool) -> Rc<Command> {
    Rc::new(Command::new(Birth {
        id: id.to_owned(),
        content: String::new(),
        pid: None,
        input: None,
        leave: Leave::Stay,
        is_hook: false,
        is_keyed,
        scope: None,
    }))
}

fn kept(command: &Rc<Command>) -> usize {
    command.record.borrow().weight()
}

#[test]
fn ended_commands_are_forgotten_oldest_first_and_running_ones_never() {
    let commands = Commands::new(None);
    commands.add(&command("running", false));
    for number in 0..ENDED_COMMANDS_MAX + 10 {
        let command = command(&format!("c{number}"), false);
        commands.add(&command);
        commands.record(&command, Source::Stdout, b"x");
        command.finish_unbegun(0, String::new());
    }
    let last = format!("c{}", ENDED_COMMANDS_MAX + 9);
    for (id, known) in [("running", true), ("c0", false), (&last, true)] {
        assert_eq!(commands.get(id).is_some(), known, "{id}");
    }
    let known = commands.by_id.borrow().len();
    let least = ENDED_COMMANDS_MAX - FORGOTTEN_AT_ONCE;
    assert!((least..=ENDED_COMMANDS_MAX).contains(&known), "{known}");
    let all: usize = commands.by_id.borrow().values().map(kept).sum();
    assert_eq!(commands.recorded.get(), all);
}

#[test]
fn forgotten_ids_that_carry_a_key_stay_spent() {
    let commands = Commands::new(None);
    let id = |number: usize| format!("{number:032x}");
    for number in 0..SPENT_KEYS_MAX + ENDED_COMMANDS_MAX + 5 {
        let command = command(&id(number), number != 7);
        commands.add(&command);
        command.finish_unbegun(0, String::new());
    }
    let forgotten = SPENT_KEYS_MAX + ENDED_COMMANDS_MAX + 5 - commands.by_id.borrow().len();
    let oldest = forgotten - SPENT_KEYS_MAX;
    assert!(oldest > 7, "{oldest}");
    for (number, spent) in [
        (7, false),
        (oldest - 1, false),
        (oldest, true),
        (forgotten - 1, true),
        (forgotten, false),
    ] {
        assert_eq!(
            commands.is_spent(&id(number)),
            spent,
            "{number} of {oldest}"
        );
    }
    assert_eq!(commands.spent.borrow().known.len(), SPENT_KEYS_MAX);
}

#[test]
fn all_records_together_stay_bounded() {
    for (memory_bytes, one_max, all_max) in [
        (None, RECORD_BYTES_MAX, RECORDS_BYTES_MAX),
        (Some(128 << 20), 8 << 20, 16 << 20),
        (Some(1 << 20), 2 << 20, RECORDS_BYTES_MIN),
    ] {
        let commands = Commands::new(memory_bytes);
        let block = vec![b'x'; 1024 * 1024];
        let all: Vec<_> = (0..6)
            .map(|number| {
                let command = command(&format!("c{number}"), false);
                commands.add(&command);
                for _ in 0..40 {
                    commands.record(&command, Source::Stderr, &block);
                }
                command
            })
            .collect();
        let total: usize = all.iter().map(kept).sum();
        assert_eq!(total, commands.recorded.get());
        assert!(total <= all_max, "{total} of {all_max}");
        let last = all[5].record.borrow();
        assert_eq!(last.end() - last.start(), one_max as u64);
    }
}
