use super::*;

#[test]
fn whole_numbers_come_in_many_types() {
    for (value, expected) in [
        (json!(600), Ok(600)),
        (json!("600"), Ok(600)),
        (json!(" 600 "), Ok(600)),
        (json!("+60.000"), Ok(60)),
        (json!(60.0), Ok(60)),
        (json!(true), Ok(1)),
        (json!(1e18), Ok(1_000_000_000_000_000_000)),
        (json!(60.5), Err("int_from_float")),
        (json!("60.5"), Err("int_parsing")),
        (json!("nan"), Err("int_parsing")),
        (json!("1_0"), Err("int_parsing")),
        (json!("١"), Err("int_parsing")),
        (json!(""), Err("int_parsing")),
        (json!(1e20), Err("int_parsing_size")),
        (json!(u64::MAX), Err("int_parsing_size")),
        (json!("99999999999999999999"), Err("int_parsing_size")),
        (json!(null), Err("int_type")),
        (json!([1]), Err("int_type")),
    ] {
        assert_eq!(
            integer(&value).map_err(|(kind, _)| kind),
            expected,
            "{value}"
        );
    }
}

#[test]
fn truth_comes_in_many_types() {
    for (value, expected) in [
        (json!(true), Ok(true)),
        (json!("No"), Ok(false)),
        (json!("ON"), Ok(true)),
        (json!(0), Ok(false)),
        (json!(1.0), Ok(true)),
        (json!(2), Err("bool_parsing")),
        (json!("maybe"), Err("bool_parsing")),
        (json!(""), Err("bool_parsing")),
        (json!({}), Err("bool_type")),
    ] {
        assert_eq!(
            boolean(&value).map_err(|(kind, _)| kind),
            expected,
            "{value}"
        );
    }
}

#[test]
fn both_spellings_of_a_name_are_read_and_camel_wins() {
    let both = json!({"expires_at": "2030-01-01", "expiresAt": "2031-01-01"});
    let snake = json!({"expires_at": "2030-01-01"});
    for (body, expected) in [
        (both, "2031-01-01T00:00:00Z"),
        (snake, "2030-01-01T00:00:00Z"),
    ] {
        let mut faults = Faults::default();
        let mut reader = Reader::body(Some(&body), &mut faults).unwrap();
        assert_eq!(reader.time("expiresAt").unwrap().to_string(), expected);
    }
}

#[test]
fn a_body_must_be_an_object() {
    for (body, kind) in [
        (None, "missing"),
        (Some(json!([1])), "model_attributes_type"),
        (Some(json!("x")), "model_attributes_type"),
        (Some(json!(null)), "model_attributes_type"),
    ] {
        let mut faults = Faults::default();
        assert!(Reader::body(body.as_ref(), &mut faults).is_none());
        let refusal = faults.refusal();
        assert_eq!(refusal.detail[0].kind, kind);
        assert_eq!(refusal.detail[0].loc, [json!("body")]);
    }
}
