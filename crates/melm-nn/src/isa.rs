//! The instruction set of the vectorised loops: detected at run time, or chosen for tests and reproducible runs.

/// The supported instruction sets, best first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IsaKind {
    /// 512-bit vectors.
    Avx512,
    /// 256-bit vectors with fused multiply-add.
    Avx2,
    /// Matrix products by the crate `gemm`, everything else in plain Rust. The best choice on machines other than
    /// x86-64. On x86-64 it exists only with the feature `gemm_products`, for tests.
    Gemm,
    /// Plain Rust, on every machine.
    Scalar,
}

/// An instruction set that this CPU supports.
///
/// A value of this type proves that the `target_feature` functions for its kind may be called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Isa(IsaKind);

impl Isa {
    /// Returns the best instruction set that this CPU has.
    pub fn detect() -> Self {
        if !cfg!(target_arch = "x86_64") {
            return Self(IsaKind::Gemm);
        }
        [IsaKind::Avx512, IsaKind::Avx2]
            .into_iter()
            .find_map(Self::from_kind)
            .unwrap_or(Self(IsaKind::Scalar))
    }

    /// Returns the instruction set of `kind`, or `None` if this CPU does not have it.
    pub fn from_kind(kind: IsaKind) -> Option<Self> {
        let is_supported = match kind {
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
            IsaKind::Gemm => cfg!(any(feature = "gemm_products", not(target_arch = "x86_64"))),
            IsaKind::Scalar => true,
        };
        is_supported.then_some(Self(kind))
    }

    /// Returns the name for messages, such as `AVX2`.
    pub fn name(self) -> &'static str {
        match self.0 {
            IsaKind::Avx512 => "AVX-512",
            IsaKind::Avx2 => "AVX2",
            IsaKind::Gemm => "gemm",
            IsaKind::Scalar => "no vector instructions",
        }
    }

    /// Returns the kind of the instruction set.
    pub fn kind(self) -> IsaKind {
        self.0
    }
}

/// Compiles one loop three times, once for each instruction set, and calls the version for the given [`Isa`].
///
/// The loops are written so that the compiler can vectorise them: with a fixed number of lanes and without early exit.
/// Only the matrix product needs intrinsics.
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
                $crate::isa::IsaKind::Gemm | $crate::isa::IsaKind::Scalar => plain($($arg),*),
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
    fn scalar_is_always_supported_and_detect_returns_a_supported_set() {
        assert!(Isa::from_kind(IsaKind::Scalar).is_some());
        assert_eq!(Isa::from_kind(Isa::detect().kind()), Some(Isa::detect()));
    }
}
