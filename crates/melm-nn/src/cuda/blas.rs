//! Products by cuBLASLt, with its choice of kernel remembered.
#![expect(unsafe_code, reason = "cuBLASLt is a C library")]

use super::machine::{Factor, Product};
use super::program::Precision;
use crate::error::Error;
use cudarc::cublaslt::result::{self, CublasError};
use cudarc::cublaslt::sys::{
    self, cublasLtMatmulDescAttributes_t as Attribute,
    cublasLtMatmulPreferenceAttributes_t as Wish,
    cublasLtMatrixLayoutAttribute_t as LayoutAttribute, cublasStatus_t as Status,
};
use std::collections::HashMap;
use std::ffi::c_void;
use std::sync::{Mutex, PoisonError};

/// Memory that a kernel may use for parts of its sums.
const WORKSPACE: usize = 32 << 20;
/// Numbers of rows this close to each other share a kernel.
const BUCKET: usize = 64;
/// Plans that are kept; batches of all lengths make ever new ones.
const MOST_PLANS: usize = 4_096;
/// Bytes that addresses are multiples of, as kernels like them.
const ALIGNMENT: u32 = 16;

pub(super) struct Blas {
    handle: sys::cublasLtHandle_t,
    workspace: u64,
    precision: Precision,
    plans: Mutex<Plans>,
}

#[derive(Default)]
struct Plans {
    exact: HashMap<Key, Option<Plan>>,
    /// The kernel chosen for a rounded shape.
    chosen: HashMap<Key, sys::cublasLtMatmulAlgo_t>,
}

/// All that a choice depends on.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Key {
    sizes: [usize; 3],
    rows: [usize; 3],
    batches: [usize; 4],
    is_transposed: [bool; 2],
    size: usize,
    accumulates: bool,
    has_bias: bool,
    alignment: u32,
}

struct Plan {
    operation: sys::cublasLtMatmulDesc_t,
    layouts: [sys::cublasLtMatrixLayout_t; 3],
    kernel: sys::cublasLtMatmulAlgo_t,
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

fn failure(error: &CublasError) -> Error {
    Error::Cuda { what: "a product", reason: format!("{:?}", error.0) }
}

impl Blas {
    /// A context is current.
    pub(super) fn open(precision: Precision) -> Result<Self, Error> {
        let handle = result::create_handle().map_err(|error| failure(&error))?;
        // SAFETY: a context is current; freed in `close`.
        let workspace = unsafe { cudarc::driver::result::malloc_sync(WORKSPACE) }
            .map_err(|error| Error::Cuda { what: "memory", reason: error.to_string() })?;
        Ok(Self { handle, workspace, precision, plans: Mutex::default() })
    }

    /// # Safety
    /// No product is under way, and none comes after.
    pub(super) unsafe fn close(&self) {
        // SAFETY: made in `open`.
        unsafe {
            let _ = result::destroy_handle(self.handle);
            let _ = cudarc::driver::result::free_sync(self.workspace);
        }
    }

    /// Whether there is a kernel for a shape.
    pub(super) fn has(&self, product: &Product) -> Result<bool, Error> {
        let mut plans = self.plans.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(self.planned(product, &mut plans)?.is_some())
    }

    /// The kernel for a shape, chosen on first use.
    fn planned<'a>(
        &self,
        product: &Product,
        plans: &'a mut Plans,
    ) -> Result<Option<&'a Plan>, Error> {
        let key = Key::of(product);
        if !plans.exact.contains_key(&key) {
            if plans.exact.len() >= MOST_PLANS {
                plans.exact.clear();
            }
            let plan = self.plan(product, key, &mut plans.chosen).map_err(|e| failure(&e))?;
            plans.exact.insert(key, plan);
        }
        Ok(plans.exact[&key].as_ref())
    }

    /// Asks a stream for a product that there is a kernel for.
    pub(super) fn product(
        &self,
        product: &Product,
        on: cudarc::driver::sys::CUstream,
    ) -> Result<(), Error> {
        let mut plans = self.plans.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(plan) = self.planned(product, &mut plans)? else {
            let reason = format!("there is none for {product:?}");
            return Err(Error::Cuda { what: "a product", reason });
        };
        let (one, other) = (1.0_f32, if product.accumulates { 1.0_f32 } else { 0.0 });
        let at = |address: u64| address as *mut c_void;
        // SAFETY: the plan is of this shape, and the factors are as large as their spans, which `Product`'s makers hold
        // them to. Our rows are its columns: it computes the transposed product of the factors exchanged.
        unsafe {
            if product.bias.len > 0 {
                set(
                    plan.operation,
                    Attribute::CUBLASLT_MATMUL_DESC_BIAS_POINTER,
                    &product.bias.address,
                )
                .map_err(|error| failure(&error))?;
            }
            result::matmul(
                self.handle,
                plan.operation,
                (&raw const one).cast(),
                (&raw const other).cast(),
                at(product.b.numbers.address),
                plan.layouts[0],
                at(product.a.numbers.address),
                plan.layouts[1],
                at(product.out.address),
                plan.layouts[2],
                at(product.out.address),
                plan.layouts[2],
                &raw const plan.kernel,
                at(self.workspace),
                WORKSPACE,
                on.cast(),
            )
            .map_err(|error| failure(&error))
        }
    }

    /// Descriptions and a kernel for a shape; `None` if there is no kernel.
    fn plan(
        &self,
        product: &Product,
        key: Key,
        chosen: &mut HashMap<Key, sys::cublasLtMatmulAlgo_t>,
    ) -> Result<Option<Plan>, CublasError> {
        let mut plan = self.describe(product)?;
        // The kernel of the rounded shape, whatever was computed before: the same product then always gives the same bits.
        let rounded = rounded(product);
        let bucket = Key::of(&rounded);
        if let std::collections::hash_map::Entry::Vacant(place) = chosen.entry(bucket) {
            match self.choose(&self.describe(&rounded)?, key.alignment) {
                Ok(kernel) => drop(place.insert(kernel)),
                Err(CublasError(Status::CUBLAS_STATUS_NOT_SUPPORTED)) => {}
                Err(error) => return Err(error),
            }
        }
        if let Some(kernel) = chosen.get(&bucket) {
            let mut report = std::mem::MaybeUninit::uninit();
            // SAFETY: descriptions and kernel are valid, and there is a place for the answer.
            let answer = unsafe {
                sys::cublasLtMatmulAlgoCheck(
                    self.handle,
                    plan.operation,
                    plan.layouts[0],
                    plan.layouts[1],
                    plan.layouts[2],
                    plan.layouts[2],
                    kernel,
                    report.as_mut_ptr(),
                )
            };
            // SAFETY: written when it says so.
            if answer == Status::CUBLAS_STATUS_SUCCESS
                && unsafe { report.assume_init() }.workspaceSize <= WORKSPACE
            {
                plan.kernel = *kernel;
                return Ok(Some(plan));
            }
        }
        match self.choose(&plan, key.alignment) {
            Ok(kernel) => {
                plan.kernel = kernel;
                Ok(Some(plan))
            }
            Err(CublasError(Status::CUBLAS_STATUS_NOT_SUPPORTED)) => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn describe(&self, product: &Product) -> Result<Plan, CublasError> {
        use sys::cublasComputeType_t::{CUBLAS_COMPUTE_32F, CUBLAS_COMPUTE_32F_FAST_TF32};
        use sys::cudaDataType_t::{CUDA_R_16BF, CUDA_R_32F};
        let is_plain = product.a.numbers.size == size_of::<f32>();
        let (kind, compute) = match self.precision {
            Precision::F32 => (CUDA_R_32F, CUBLAS_COMPUTE_32F),
            Precision::Bf16 if is_plain => (CUDA_R_32F, CUBLAS_COMPUTE_32F_FAST_TF32),
            Precision::Bf16 => (CUDA_R_16BF, CUBLAS_COMPUTE_32F),
        };
        let operation = result::create_matmul_desc(compute, CUDA_R_32F)?;
        let factor = |factor: &Factor, rows: usize, columns: usize| {
            let (rows, columns) =
                if factor.is_transposed { (columns, rows) } else { (rows, columns) };
            layout(kind, (columns, rows, factor.row), (product.n_batches, factor.batch))
        };
        let layouts = [
            factor(&product.b, product.k, product.n)?,
            factor(&product.a, product.m, product.k)?,
            layout(
                CUDA_R_32F,
                (product.n, product.m, product.out_row),
                (product.n_batches, product.out_batch),
            )?,
        ];
        // SAFETY: a kernel is plain bytes, and this one is replaced before it is used.
        let kernel = unsafe { std::mem::zeroed() };
        let plan = Plan { operation, layouts, kernel };
        // CUBLAS_OP_N and CUBLAS_OP_T, which only cuBLAS's own header names.
        let turned = |factor: &Factor| i32::from(factor.is_transposed);
        // SAFETY: the operation was just made, and each attribute has its type.
        unsafe {
            set(operation, Attribute::CUBLASLT_MATMUL_DESC_TRANSA, &turned(&product.b))?;
            set(operation, Attribute::CUBLASLT_MATMUL_DESC_TRANSB, &turned(&product.a))?;
            if product.bias.len > 0 {
                let epilogue = sys::cublasLtEpilogue_t::CUBLASLT_EPILOGUE_BIAS;
                set(operation, Attribute::CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue)?;
                let address = product.bias.address;
                set(operation, Attribute::CUBLASLT_MATMUL_DESC_BIAS_POINTER, &address)?;
            }
        }
        Ok(plan)
    }

    fn choose(
        &self,
        plan: &Plan,
        alignment: u32,
    ) -> Result<sys::cublasLtMatmulAlgo_t, CublasError> {
        let wishes = result::create_matmul_pref()?;
        let wish = |what, value: *const c_void, size| {
            // SAFETY: the preference was just made; the value is as large as said.
            unsafe { result::set_matmul_pref_attribute(wishes, what, value, size) }
        };
        let set = || {
            let most = WORKSPACE;
            let value = (&raw const most).cast();
            wish(Wish::CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, value, size_of::<usize>())?;
            for what in [
                Wish::CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES,
                Wish::CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
                Wish::CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES,
                Wish::CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES,
            ] {
                wish(what, (&raw const alignment).cast(), size_of::<u32>())?;
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
                wishes,
            )
        });
        // SAFETY: made above.
        unsafe { result::destroy_matmul_pref(wishes)? };
        Ok(found?.algo)
    }
}

/// # Safety
/// The attribute's value has this type.
unsafe fn set<T>(
    operation: sys::cublasLtMatmulDesc_t,
    attribute: Attribute,
    value: &T,
) -> Result<(), CublasError> {
    let value = std::ptr::from_ref(value).cast();
    // SAFETY: the caller's promise.
    unsafe { result::set_matmul_desc_attribute(operation, attribute, value, size_of::<T>()) }
}

/// A matrix as it sees one: by columns.
fn layout(
    kind: sys::cudaDataType_t,
    (rows, columns, row): (usize, usize, usize),
    (n_batches, batch): (usize, usize),
) -> Result<sys::cublasLtMatrixLayout_t, CublasError> {
    let signed = |n: usize| i64::try_from(n).unwrap_or(i64::MAX);
    let made = result::create_matrix_layout(kind, rows as u64, columns as u64, signed(row))?;
    if n_batches > 1 {
        let (count, stride) = (i32::try_from(n_batches).unwrap_or(i32::MAX), signed(batch));
        // SAFETY: the layout was just made, and the values have their types.
        unsafe {
            result::set_matrix_layout_attribute(
                made,
                LayoutAttribute::CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT,
                (&raw const count).cast(),
                size_of::<i32>(),
            )?;
            result::set_matrix_layout_attribute(
                made,
                LayoutAttribute::CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET,
                (&raw const stride).cast(),
                size_of::<i64>(),
            )?;
        }
    }
    Ok(made)
}

impl Key {
    fn of(product: &Product) -> Self {
        let Product { a, b, .. } = product;
        let addresses = a.numbers.address | b.numbers.address | product.out.address;
        let addresses = addresses | product.bias.address;
        let alignment =
            if addresses == 0 { ALIGNMENT } else { 1 << addresses.trailing_zeros().min(4) };
        Self {
            sizes: [product.m, product.n, product.k],
            rows: [a.row, b.row, product.out_row],
            batches: [product.n_batches, a.batch, b.batch, product.out_batch],
            is_transposed: [a.is_transposed, b.is_transposed],
            size: a.numbers.size,
            accumulates: product.accumulates,
            has_bias: product.bias.len > 0,
            alignment,
        }
    }
}

/// The product with its number of rows rounded up: rows are what varies from batch to batch. In a weight's gradient they are
/// what is summed over.
fn rounded(product: &Product) -> Product {
    let mut rounded = *product;
    if product.a.is_transposed {
        rounded.k = product.k.next_multiple_of(BUCKET);
    } else {
        rounded.m = product.m.next_multiple_of(BUCKET);
        rounded.out_batch = rounded.m * product.out_row;
    }
    rounded
}
