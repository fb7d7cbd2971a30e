#![no_main]
libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    fairway_fuzzing::targets::pipeline_add_path(input);
});
