//! Reads arbitrary text as a plan, and as one setting of `--set`. An accepted plan must be the same after it was written
//! and read again.
#![no_main]

use libfuzzer_sys::fuzz_target;
use melm::plan::{ModelClass, ModelClasses, PlanTable, Preset};

fuzz_target!(|text: &str| {
    let table = PlanTable::new(Preset::Best, ModelClasses::both(ModelClass::MINI));
    let mut set = table.clone();
    let _ = set.set(text).and_then(|()| set.plan());
    let mut merged = table.clone();
    if merged.merge_toml("fuzz.toml", text).is_err() {
        return;
    }
    let mut again = table;
    let plan = merged.plan().expect("the merged plan is valid");
    again.merge_toml("again.toml", &plan.to_toml()).expect("our own plan can be read");
    assert_eq!(again.plan().unwrap(), plan);
});
