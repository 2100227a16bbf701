use super::*;

#[test]
fn the_table_lists_every_limit_once_and_in_order() {
    for (index, name) in LimitName::ALL.into_iter().enumerate() {
        assert_eq!(LIMIT_SPECS[index].name, name);
        assert_eq!(name.spec().name, name);
        assert_eq!(name.as_str().parse(), Ok(name));
    }
}

#[test]
fn every_limit_has_a_default_below_its_ceiling_a_unit_and_a_description() {
    for name in LimitName::ALL {
        assert!(name.as_str().ends_with("_max"), "{name}");
        assert!(
            0 < name.default_value() && name.default_value() <= name.ceiling(),
            "{name}"
        );
        assert!(!name.unit().is_empty(), "{name}");
        assert!(name.description().ends_with('.'), "{name}");
        assert_eq!(Limits::default().get(name), name.default_value(), "{name}");
    }
}

#[test]
fn the_unit_is_in_the_name_where_it_is_not_a_count() {
    for name in LimitName::ALL {
        assert_eq!(
            name.unit() == "bytes",
            name.as_str().contains("_bytes_"),
            "{name}"
        );
        assert_eq!(
            name.unit() == "milliseconds",
            name.as_str().contains("_ms_"),
            "{name}"
        );
    }
}

#[test]
fn a_default_is_not_changed_by_accident() {
    let expected = Limits {
        fuel_max: 10_000_000_000,
        cpu_ms_max: 1_000,
        startup_fuel_max: 4_000_000_000,
        wall_ms_max: 30_000,
        memory_bytes_max: 64 << 20,
        subrequests_max: 256,
        subrequests_in_flight_max: 32,
        subrequest_ms_max: 25_000,
        code_bytes_max: 10 << 20,
        env_bytes_max: 1 << 20,
        args_bytes_max: 32 << 20,
        result_bytes_max: 32 << 20,
        log_bytes_max: 256 << 10,
        value_depth_max: 512,
        exports_max: 10_000,
    };
    assert_eq!(Limits::default(), expected);
}

#[test]
fn a_request_without_wishes_changes_nothing() {
    let limits = Limits::default();
    assert_eq!(limits.lowered_by(&LimitsRequest::default()), limits);
}

#[test]
fn a_request_lowers_a_limit_and_never_raises_it_and_zero_means_not_asked() {
    for name in LimitName::ALL {
        let limits = Limits::default();
        let mut request = LimitsRequest::default();
        let askable = request.set(name, name.default_value() - 1);
        assert_eq!(askable, request.get(name).is_some(), "{name}");
        if !askable {
            continue;
        }
        let lowered = limits.lowered_by(&request);
        assert_eq!(lowered.get(name), name.default_value() - 1, "{name}");
        for other in LimitName::ALL.into_iter().filter(|other| *other != name) {
            assert_eq!(
                lowered.get(other),
                limits.get(other),
                "{name} changed {other}"
            );
        }
        for unchanged in [name.default_value() + 1, u64::MAX, 0] {
            assert!(request.set(name, unchanged));
            assert_eq!(limits.lowered_by(&request), limits, "{name} {unchanged}");
        }
    }
}

#[test]
fn only_the_server_sets_the_limits_of_the_code_itself() {
    let mut request = LimitsRequest::default();
    assert!(!request.set(LimitName::CodeBytesMax, 1));
    assert!(!request.set(LimitName::EnvBytesMax, 1));
    assert_eq!(request, LimitsRequest::default());
}

/// Case L21.
#[test]
fn of_the_workers_and_the_entrypoints_limit_the_lower_one_wins() {
    let ms = |cpu_ms_max| LimitsRequest {
        cpu_ms_max: Some(cpu_ms_max),
        ..Default::default()
    };
    let limits = Limits::default();
    assert_eq!(
        limits.lowered_by(&ms(50)).lowered_by(&ms(10)).cpu_ms_max,
        10
    );
    assert_eq!(
        limits.lowered_by(&ms(10)).lowered_by(&ms(50)).cpu_ms_max,
        10
    );
}

/// Case L22.
#[test]
fn a_value_that_is_no_whole_number_is_refused_with_a_text_that_says_what_to_write() {
    for text in [
        "-1", "NaN", "abc", "", " ", "1e12", "1.5", "+1", "0x10", "1 000", "1kb", "_1", "1_",
        "1__0", "١",
    ] {
        let refused = LimitName::WallMsMax.parse_value(text).unwrap_err();
        assert_eq!(
            refused.to_string(),
            format!(
                "wall_ms_max: {text:?} is not a whole number; write milliseconds in digits, such as 30000"
            )
        );
    }
}

/// Case L22.
#[test]
fn a_value_beyond_the_ceiling_is_refused_however_long_it_is() {
    let refused = LimitName::WallMsMax
        .parse_value("1000000000000")
        .unwrap_err();
    assert_eq!(
        refused.to_string(),
        "wall_ms_max: 1000000000000 is more than the ceiling of 86400000 milliseconds"
    );
    let endless = LimitName::WallMsMax
        .parse_value(&"9".repeat(1 << 20))
        .unwrap_err();
    assert!(matches!(endless, LimitValueInvalid::AboveCeiling { .. }));
    assert!(endless.to_string().len() < 200);
}

#[test]
fn zero_is_refused_because_it_means_the_default_elsewhere() {
    let refused = LimitName::CpuMsMax.parse_value("0").unwrap_err();
    assert_eq!(
        refused.to_string(),
        "cpu_ms_max: the value must be at least 1; leave it out to get the default of 1000"
    );
}

#[test]
fn defaults_and_ceilings_read_back_with_or_without_underscores() {
    for name in LimitName::ALL {
        for value in [1, name.default_value(), name.ceiling()] {
            assert_eq!(name.parse_value(&value.to_string()), Ok(value), "{name}");
        }
        let above = (name.ceiling() + 1).to_string();
        assert!(name.parse_value(&above).is_err(), "{name}");
    }
    assert_eq!(LimitName::CpuMsMax.parse_value("1_500"), Ok(1_500));
}

#[test]
fn an_unknown_name_is_answered_with_the_known_ones() {
    let unknown = "memory_max".parse::<LimitName>().unwrap_err();
    let text = unknown.to_string();
    assert!(
        text.starts_with("no limit is called \"memory_max\"; the limits are fuel_max, "),
        "{text}"
    );
    assert!(text.ends_with("exports_max"), "{text}");
}

#[test]
fn numbers_are_grouped_by_three_digits() {
    for (number, text) in [
        (0, "0"),
        (999, "999"),
        (1_000, "1,000"),
        (3_000_000_000, "3,000,000,000"),
    ] {
        assert_eq!(grouped(number), text);
    }
}
