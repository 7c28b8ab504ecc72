//! Matrix products by cuBLASLt. Its choice of algorithm is remembered for each shape.
#![expect(unsafe_code, reason = "cuBLASLt is a C library")]

use super::plan_key::{PlanKey, round_rows};
use super::product::{Operand, Product};
use super::program::Precision;
use crate::error::Error;
use cudarc::cublaslt::result::{self, CublasError};
use cudarc::cublaslt::sys::{
    self, cublasLtMatmulDescAttributes_t as Attribute,
    cublasLtMatmulPreferenceAttributes_t as Preference,
    cublasLtMatrixLayoutAttribute_t as LayoutAttribute, cublasStatus_t as Status,
};
use std::collections::HashMap;
use std::ffi::c_void;
use std::sync::{Mutex, PoisonError};

/// Bytes of GPU memory that an algorithm may use for partial sums.
const WORKSPACE_BYTES: usize = 32 << 20;
/// The number of plans that are kept. Batches of ever new lengths need ever new plans.
const MAX_PLANS: usize = 4_096;
/// An open cuBLASLt library.
pub(super) struct Blas {
    handle: sys::cublasLtHandle_t,
    workspace: u64,
    precision: Precision,
    plans: Mutex<Plans>,
}

/// The plans made so far.
#[derive(Default)]
struct Plans {
    /// The plan of each shape; `None` if cuBLASLt does not support it.
    exact: HashMap<PlanKey, Option<Plan>>,
    /// The algorithm chosen for a rounded shape.
    chosen: HashMap<PlanKey, sys::cublasLtMatmulAlgo_t>,
}

/// How to compute a product: its description and an algorithm.
struct Plan {
    operation: sys::cublasLtMatmulDesc_t,
    layouts: [sys::cublasLtMatrixLayout_t; 3],
    algorithm: sys::cublasLtMatmulAlgo_t,
}

impl Drop for Plan {
    fn drop(&mut self) {
        // SAFETY: made in `describe`, and used nowhere else.
        unsafe {
            let _ = result::destroy_matmul_desc(self.operation);
            for layout in self.layouts {
                let _ = result::destroy_matrix_layout(layout);
            }
        }
    }
}

fn blas_error(error: &CublasError) -> Error {
    Error::Cuda { what: "a product", reason: format!("{:?}", error.0) }
}

impl Blas {
    /// A context must be current.
    pub(super) fn open(precision: Precision) -> Result<Self, Error> {
        let handle = result::create_handle().map_err(|error| blas_error(&error))?;
        // SAFETY: a context is current; freed in `close`.
        let workspace = unsafe { cudarc::driver::result::malloc_sync(WORKSPACE_BYTES) }
            .map_err(|error| Error::Cuda { what: "memory", reason: error.to_string() })?;
        Ok(Self { handle, workspace, precision, plans: Mutex::default() })
    }

    /// Frees the library's memory.
    ///
    /// # Safety
    /// No product is under way, and no other method is called afterwards.
    pub(super) unsafe fn close(&self) {
        // SAFETY: made in `open`.
        unsafe {
            let _ = result::destroy_handle(self.handle);
            let _ = cudarc::driver::result::free_sync(self.workspace);
        }
    }

    /// Returns true if cuBLASLt supports a product.
    pub(super) fn has(&self, product: &Product) -> Result<bool, Error> {
        let mut plans = self.plans.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(self.find_plan(product, &mut plans)?.is_some())
    }

    /// Returns the plan of a product, made on first use; `None` if cuBLASLt does not support it.
    fn find_plan<'a>(
        &self,
        product: &Product,
        plans: &'a mut Plans,
    ) -> Result<Option<&'a Plan>, Error> {
        let key = PlanKey::new(product);
        if !plans.exact.contains_key(&key) {
            if plans.exact.len() >= MAX_PLANS {
                plans.exact.clear();
            }
            let plan =
                self.make_plan(product, key, &mut plans.chosen).map_err(|e| blas_error(&e))?;
            plans.exact.insert(key, plan);
        }
        Ok(plans.exact[&key].as_ref())
    }

    /// Enqueues a product. Fails if [`Self::has`] is false for it.
    pub(super) fn product(
        &self,
        product: &Product,
        stream: cudarc::driver::sys::CUstream,
    ) -> Result<(), Error> {
        let mut plans = self.plans.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(plan) = self.find_plan(product, &mut plans)? else {
            let reason = format!("cuBLASLt does not support {product:?}");
            return Err(Error::Cuda { what: "a product", reason });
        };
        let (alpha, beta) = (1.0_f32, if product.accumulates { 1.0_f32 } else { 0.0 });
        let at = |address: u64| address as *mut c_void;
        // Our matrices are stored by rows, those of cuBLASLt by columns. It therefore computes the transposed product, with
        // the operands exchanged.
        // SAFETY: the plan is of this shape, and `Product::check` has shown that the product stays within its spans.
        unsafe {
            if product.bias.len > 0 {
                set(
                    plan.operation,
                    Attribute::CUBLASLT_MATMUL_DESC_BIAS_POINTER,
                    &product.bias.address,
                )
                .map_err(|error| blas_error(&error))?;
            }
            result::matmul(
                self.handle,
                plan.operation,
                (&raw const alpha).cast(),
                (&raw const beta).cast(),
                at(product.b.values.address),
                plan.layouts[0],
                at(product.a.values.address),
                plan.layouts[1],
                at(product.out.address),
                plan.layouts[2],
                at(product.out.address),
                plan.layouts[2],
                &raw const plan.algorithm,
                at(self.workspace),
                WORKSPACE_BYTES,
                stream.cast(),
            )
            .map_err(|error| blas_error(&error))
        }
    }

    /// Makes the plan of a product; `None` if cuBLASLt does not support it.
    fn make_plan(
        &self,
        product: &Product,
        key: PlanKey,
        chosen: &mut HashMap<PlanKey, sys::cublasLtMatmulAlgo_t>,
    ) -> Result<Option<Plan>, CublasError> {
        let mut plan = self.describe(product)?;
        // The algorithm of the rounded shape, whatever was computed before: the same product always gives the same bits.
        let rounded = round_rows(product);
        let rounded_key = PlanKey::new(&rounded);
        if let std::collections::hash_map::Entry::Vacant(entry) = chosen.entry(rounded_key) {
            match self.choose(&self.describe(&rounded)?, key.alignment) {
                Ok(algorithm) => drop(entry.insert(algorithm)),
                Err(CublasError(Status::CUBLAS_STATUS_NOT_SUPPORTED)) => {}
                Err(error) => return Err(error),
            }
        }
        if let Some(algorithm) = chosen.get(&rounded_key) {
            let mut report = std::mem::MaybeUninit::uninit();
            // SAFETY: descriptions and algorithm are valid, and the answer has its variable.
            let answer = unsafe {
                sys::cublasLtMatmulAlgoCheck(
                    self.handle,
                    plan.operation,
                    plan.layouts[0],
                    plan.layouts[1],
                    plan.layouts[2],
                    plan.layouts[2],
                    algorithm,
                    report.as_mut_ptr(),
                )
            };
            // SAFETY: the report is written if the call succeeds.
            if answer == Status::CUBLAS_STATUS_SUCCESS
                && unsafe { report.assume_init() }.workspaceSize <= WORKSPACE_BYTES
            {
                plan.algorithm = *algorithm;
                return Ok(Some(plan));
            }
        }
        match self.choose(&plan, key.alignment) {
            Ok(algorithm) => {
                plan.algorithm = algorithm;
                Ok(Some(plan))
            }
            Err(CublasError(Status::CUBLAS_STATUS_NOT_SUPPORTED)) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Describes a product to cuBLASLt. The algorithm is still to be chosen.
    fn describe(&self, product: &Product) -> Result<Plan, CublasError> {
        use sys::cublasComputeType_t::{CUBLAS_COMPUTE_32F, CUBLAS_COMPUTE_32F_FAST_TF32};
        use sys::cudaDataType_t::{CUDA_R_16BF, CUDA_R_32F};
        let is_f32 = product.a.values.is_f32();
        let (kind, compute) = match self.precision {
            Precision::F32 => (CUDA_R_32F, CUBLAS_COMPUTE_32F),
            Precision::Bf16 if is_f32 => (CUDA_R_32F, CUBLAS_COMPUTE_32F_FAST_TF32),
            Precision::Bf16 => (CUDA_R_16BF, CUBLAS_COMPUTE_32F),
        };
        let operation = result::create_matmul_desc(compute, CUDA_R_32F)?;
        let operand = |operand: &Operand, rows: usize, columns: usize| {
            let (rows, columns) =
                if operand.is_transposed { (columns, rows) } else { (rows, columns) };
            let (row_stride, batch_stride) = (operand.row_stride, operand.batch_stride);
            let n_batches = product.n_batches;
            Layout { kind, rows, columns, row_stride, n_batches, batch_stride }.create()
        };
        let out = Layout {
            kind: CUDA_R_32F,
            rows: product.m,
            columns: product.n,
            row_stride: product.out_row_stride,
            n_batches: product.n_batches,
            batch_stride: product.out_batch_stride,
        };
        let layouts = [
            operand(&product.b, product.k, product.n)?,
            operand(&product.a, product.m, product.k)?,
            out.create()?,
        ];
        // SAFETY: an algorithm is plain bytes, and this one is replaced before it is used.
        let algorithm = unsafe { std::mem::zeroed() };
        let plan = Plan { operation, layouts, algorithm };
        // CUBLAS_OP_N is 0 and CUBLAS_OP_T is 1; cuBLASLt's own header does not name them.
        let transposition = |operand: &Operand| i32::from(operand.is_transposed);
        // SAFETY: the operation was just made, and each attribute has its type.
        unsafe {
            set(operation, Attribute::CUBLASLT_MATMUL_DESC_TRANSA, &transposition(&product.b))?;
            set(operation, Attribute::CUBLASLT_MATMUL_DESC_TRANSB, &transposition(&product.a))?;
            if product.bias.len > 0 {
                let epilogue = sys::cublasLtEpilogue_t::CUBLASLT_EPILOGUE_BIAS;
                set(operation, Attribute::CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue)?;
                let address = product.bias.address;
                set(operation, Attribute::CUBLASLT_MATMUL_DESC_BIAS_POINTER, &address)?;
            }
        }
        Ok(plan)
    }

    /// Asks cuBLASLt for the best algorithm for a description.
    fn choose(
        &self,
        plan: &Plan,
        alignment: u32,
    ) -> Result<sys::cublasLtMatmulAlgo_t, CublasError> {
        let preferences = result::create_matmul_pref()?;
        let prefer = |what, value: *const c_void, size| {
            // SAFETY: the preferences were just made, and the value has `size` bytes.
            unsafe { result::set_matmul_pref_attribute(preferences, what, value, size) }
        };
        let set = || {
            let max_bytes = WORKSPACE_BYTES;
            let value = (&raw const max_bytes).cast();
            prefer(
                Preference::CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                value,
                size_of::<usize>(),
            )?;
            for what in [
                Preference::CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES,
                Preference::CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
                Preference::CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES,
                Preference::CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES,
            ] {
                prefer(what, (&raw const alignment).cast(), size_of::<u32>())?;
            }
            Ok(())
        };
        // SAFETY: all descriptions are valid.
        let found = set().and_then(|()| unsafe {
            result::get_matmul_algo_heuristic(
                self.handle,
                plan.operation,
                plan.layouts[0],
                plan.layouts[1],
                plan.layouts[2],
                plan.layouts[2],
                preferences,
            )
        });
        // SAFETY: made above.
        unsafe { result::destroy_matmul_pref(preferences)? };
        Ok(found?.algo)
    }
}

/// Sets an attribute of a description.
///
/// # Safety
/// The attribute's value has the type `T`.
unsafe fn set<T>(
    operation: sys::cublasLtMatmulDesc_t,
    attribute: Attribute,
    value: &T,
) -> Result<(), CublasError> {
    let value = std::ptr::from_ref(value).cast();
    // SAFETY: the caller's promise.
    unsafe { result::set_matmul_desc_attribute(operation, attribute, value, size_of::<T>()) }
}

/// A matrix stored by rows.
struct Layout {
    kind: sys::cudaDataType_t,
    rows: usize,
    columns: usize,
    row_stride: usize,
    n_batches: usize,
    batch_stride: usize,
}

impl Layout {
    /// Describes the matrix to cuBLASLt: as its transpose, since cuBLASLt stores matrices by columns.
    fn create(&self) -> Result<sys::cublasLtMatrixLayout_t, CublasError> {
        let signed = |n: usize| i64::try_from(n).unwrap_or(i64::MAX);
        let (rows, columns) = (self.columns as u64, self.rows as u64);
        let layout =
            result::create_matrix_layout(self.kind, rows, columns, signed(self.row_stride))?;
        if self.n_batches > 1 {
            let count = i32::try_from(self.n_batches).unwrap_or(i32::MAX);
            let stride = signed(self.batch_stride);
            // SAFETY: the layout was just made, and the values have the types of the attributes.
            unsafe {
                result::set_matrix_layout_attribute(
                    layout,
                    LayoutAttribute::CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT,
                    (&raw const count).cast(),
                    size_of::<i32>(),
                )?;
                result::set_matrix_layout_attribute(
                    layout,
                    LayoutAttribute::CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET,
                    (&raw const stride).cast(),
                    size_of::<i64>(),
                )?;
            }
        }
        Ok(layout)
    }
}
