//! Matrix products by cuBLASLt. The algorithm that cuBLASLt chooses for a shape is cached.
#![expect(unsafe_code, reason = "cuBLASLt is a C library")]

use super::plan_key::{PlanKey, round_rows};
use super::product::{MIN_TF32_TERMS, Operand, Product};
use super::settings::Precision;
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

/// The number of bytes of GPU memory that an algorithm may use for partial sums.
const WORKSPACE_BYTES: usize = 32 << 20;
/// The maximum number of cached plans. Batches of new lengths need new plans.
const MAX_PLANS: usize = 4_096;
/// An open cuBLASLt handle with its workspace and its cached plans.
pub(super) struct Blas {
    handle: sys::cublasLtHandle_t,
    workspace: u64,
    precision: Precision,
    plans: Mutex<Plans>,
}

/// The cached plans and algorithms.
#[derive(Default)]
struct Plans {
    /// The plan for each product shape; `None` if cuBLASLt does not support the shape.
    exact: HashMap<PlanKey, Option<Plan>>,
    /// The algorithm chosen for each rounded shape; see [`round_rows`].
    chosen: HashMap<PlanKey, sys::cublasLtMatmulAlgo_t>,
}

/// The cuBLASLt descriptors of a product, and the algorithm that computes it.
struct Plan {
    operation: sys::cublasLtMatmulDesc_t,
    layouts: [sys::cublasLtMatrixLayout_t; 3],
    algorithm: sys::cublasLtMatmulAlgo_t,
}

impl Drop for Plan {
    fn drop(&mut self) {
        // SAFETY: the descriptors were created in `describe`, and only this plan uses them.
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
    /// Opens cuBLASLt. A CUDA context must be current.
    pub(super) fn open(precision: Precision) -> Result<Self, Error> {
        let handle = result::create_handle().map_err(|error| blas_error(&error))?;
        // SAFETY: a context is current. `close` frees the memory.
        let workspace = unsafe { cudarc::driver::result::malloc_sync(WORKSPACE_BYTES) }
            .map_err(|error| Error::Cuda { what: "memory", reason: error.to_string() })?;
        Ok(Self { handle, workspace, precision, plans: Mutex::default() })
    }

    /// Frees the handle and the workspace.
    ///
    /// # Safety
    /// No product is running, and no other method is called afterwards.
    pub(super) unsafe fn close(&self) {
        // SAFETY: handle and workspace were created in `open`.
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

    /// Returns the plan for a product, created on first use; `None` if cuBLASLt does not support the product.
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

    /// Enqueues a product on `stream`. Fails if [`Self::has`] returns false for the product.
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
        // cuBLASLt stores matrices by columns, we store them by rows. cuBLASLt therefore computes the transposed
        // product, with the operands exchanged.
        // SAFETY: the plan was made for this shape, and `Product::check` ensures that the product stays within its
        // spans.
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

    /// Creates the plan for a product; `None` if cuBLASLt does not support the product.
    fn make_plan(
        &self,
        product: &Product,
        key: PlanKey,
        chosen: &mut HashMap<PlanKey, sys::cublasLtMatmulAlgo_t>,
    ) -> Result<Option<Plan>, CublasError> {
        let mut plan = self.describe(product)?;
        // The algorithm depends only on the rounded shape, not on earlier products. The same product therefore always
        // gives the same bits.
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
            // SAFETY: the handle, the descriptors and the algorithm are valid, and `report` has room for the result.
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
            // SAFETY: cuBLASLt has initialised the report if the call succeeded.
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

    /// Creates the cuBLASLt descriptors of a product. The algorithm is set later.
    fn describe(&self, product: &Product) -> Result<Plan, CublasError> {
        use sys::cublasComputeType_t::{CUBLAS_COMPUTE_32F, CUBLAS_COMPUTE_32F_FAST_TF32};
        use sys::cudaDataType_t::{CUDA_R_16BF, CUDA_R_32F};
        let is_f32 = product.a.values.is_f32();
        let (kind, compute) = match self.precision {
            Precision::F32 => (CUDA_R_32F, CUBLAS_COMPUTE_32F),
            Precision::Bf16 if is_f32 && product.k < MIN_TF32_TERMS => {
                (CUDA_R_32F, CUBLAS_COMPUTE_32F)
            }
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
        // SAFETY: an algorithm is a plain C struct, for which zero bytes are valid. The caller replaces it before use.
        let algorithm = unsafe { std::mem::zeroed() };
        let plan = Plan { operation, layouts, algorithm };
        // CUBLAS_OP_N is 0 and CUBLAS_OP_T is 1. The header of cuBLASLt does not define these names.
        let transposition = |operand: &Operand| i32::from(operand.is_transposed);
        // SAFETY: the descriptor was created above, and each value has the type that cuBLASLt documents for its
        // attribute.
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

    /// Returns the algorithm that cuBLASLt recommends for the descriptors of a plan.
    fn choose(
        &self,
        plan: &Plan,
        alignment: u32,
    ) -> Result<sys::cublasLtMatmulAlgo_t, CublasError> {
        let preferences = result::create_matmul_pref()?;
        let prefer = |what, value: *const c_void, size| {
            // SAFETY: the preferences were created above, and the value has `size` bytes.
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
        // SAFETY: the handle, the plan's descriptors and the preferences were created before and are not destroyed yet.
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
        // SAFETY: the preferences were created above and are not used again.
        unsafe { result::destroy_matmul_pref(preferences)? };
        Ok(found?.algo)
    }
}

/// Sets an attribute of a product descriptor.
///
/// # Safety
/// `T` is the type that cuBLASLt documents for the attribute.
unsafe fn set<T>(
    operation: sys::cublasLtMatmulDesc_t,
    attribute: Attribute,
    value: &T,
) -> Result<(), CublasError> {
    let value = std::ptr::from_ref(value).cast();
    // SAFETY: the caller guarantees the type of the value.
    unsafe { result::set_matmul_desc_attribute(operation, attribute, value, size_of::<T>()) }
}

/// The shape and strides of a row-major matrix.
struct Layout {
    kind: sys::cudaDataType_t,
    rows: usize,
    columns: usize,
    row_stride: usize,
    n_batches: usize,
    batch_stride: usize,
}

impl Layout {
    /// Creates the cuBLASLt layout of the transposed matrix, because cuBLASLt stores matrices column by column.
    fn create(&self) -> Result<sys::cublasLtMatrixLayout_t, CublasError> {
        let signed = |n: usize| i64::try_from(n).unwrap_or(i64::MAX);
        let (rows, columns) = (self.columns as u64, self.rows as u64);
        let layout =
            result::create_matrix_layout(self.kind, rows, columns, signed(self.row_stride))?;
        if self.n_batches > 1 {
            let count = i32::try_from(self.n_batches).unwrap_or(i32::MAX);
            let stride = signed(self.batch_stride);
            // SAFETY: the layout was created above, and the values have the types that cuBLASLt documents for the
            // attributes.
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
