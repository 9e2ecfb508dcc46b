//! Programs.
pub mod measure;

/// Whether a path stays in the folder that it begins in, as far as its words say.
pub fn is_inside(path: &str) -> bool {
    use std::path::{Component, Path};
    let mut parts = Path::new(path).components();
    !path.is_empty()
        && !path.contains('\0')
        && parts.all(|part| matches!(part, Component::Normal(_)))
}
