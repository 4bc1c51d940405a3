#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| kafkaseg_core::fuzzing::legacy_set(data));
