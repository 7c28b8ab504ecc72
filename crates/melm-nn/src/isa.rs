//! Which instruction set the loops use: found at run time, forceable for tests and for repeatable runs.

/// The instruction sets there are loops for, best first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IsaKind {
    /// 512-bit vectors.
    Avx512,
    /// 256-bit vectors with fused multiply-add.
    Avx2,
    /// Plain Rust, on every machine.
    Scalar,
}

/// An instruction set this processor is known to have.
///
/// Holding one is the proof that the `target_feature` functions behind it may be called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Isa(IsaKind);

impl Isa {
    /// The best one this processor has.
    pub fn detect() -> Self {
        [IsaKind::Avx512, IsaKind::Avx2]
            .into_iter()
            .find_map(Self::of)
            .unwrap_or(Self(IsaKind::Scalar))
    }

    /// `kind`, when this processor has it.
    pub fn of(kind: IsaKind) -> Option<Self> {
        let is_there = match kind {
            #[cfg(target_arch = "x86_64")]
            IsaKind::Avx512 => {
                is_x86_feature_detected!("avx512f")
                    && is_x86_feature_detected!("avx512dq")
                    && is_x86_feature_detected!("avx512bw")
                    && is_x86_feature_detected!("avx512vl")
                    && is_x86_feature_detected!("avx2")
                    && is_x86_feature_detected!("fma")
            }
            #[cfg(target_arch = "x86_64")]
            IsaKind::Avx2 => is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma"),
            #[cfg(not(target_arch = "x86_64"))]
            IsaKind::Avx512 | IsaKind::Avx2 => false,
            IsaKind::Scalar => true,
        };
        is_there.then_some(Self(kind))
    }

    /// What people call it.
    pub fn name(self) -> &'static str {
        match self.0 {
            IsaKind::Avx512 => "AVX-512",
            IsaKind::Avx2 => "AVX2",
            IsaKind::Scalar => "no vector instructions",
        }
    }

    /// Which one it is.
    pub fn kind(self) -> IsaKind {
        self.0
    }
}

/// Compiles one plain loop three times, once per instruction set, and picks by [`Isa`].
///
/// The loops are written so that the compiler vectorises them (fixed lanes, no early exit); only the matrix
/// product needs intrinsics.
macro_rules! per_isa {
    ($(#[$meta:meta])* $vis:vis fn $name:ident($($arg:ident: $type:ty),* $(,)?) $(-> $out:ty)? $body:block) => {
        $(#[$meta])*
        $vis fn $name(isa: $crate::isa::Isa, $($arg: $type),*) $(-> $out)? {
            #[inline(always)]
            fn plain($($arg: $type),*) $(-> $out)? $body

            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx512f,avx512dq,avx512bw,avx512vl,avx2,fma")]
            fn avx512($($arg: $type),*) $(-> $out)? { plain($($arg),*) }

            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx2,fma")]
            fn avx2($($arg: $type),*) $(-> $out)? { plain($($arg),*) }

            #[cfg(target_arch = "x86_64")]
            #[expect(unsafe_code, reason = "calls the copy compiled for the detected features")]
            match isa.kind() {
                // SAFETY: an `Isa` of this kind exists only where the features were detected.
                $crate::isa::IsaKind::Avx512 => unsafe { avx512($($arg),*) },
                // SAFETY: as above.
                $crate::isa::IsaKind::Avx2 => unsafe { avx2($($arg),*) },
                $crate::isa::IsaKind::Scalar => plain($($arg),*),
            }
            #[cfg(not(target_arch = "x86_64"))]
            { let _ = isa; plain($($arg),*) }
        }
    };
}
pub(crate) use per_isa;

#[cfg(test)]
mod tests {
    use super::{Isa, IsaKind};

    #[test]
    fn scalar_is_always_there_and_detect_gives_what_exists() {
        assert!(Isa::of(IsaKind::Scalar).is_some());
        assert_eq!(Isa::of(Isa::detect().kind()), Some(Isa::detect()));
    }
}
