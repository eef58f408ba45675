pub const ALL: &[crate::Model] = &[];
