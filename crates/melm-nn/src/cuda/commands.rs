//! Recorded commands: kernel launches, matrix products, copies and clears of a pass, collected before the GPU runs
//! them.
//!
//! Recording lets the GPU run a whole pass as one CUDA graph; see `graphs.rs`.

use super::gpu::{Gpu, Launch};
use super::kernels::Argument;
use super::product::Product;
use crate::error::Error;
use std::ffi::c_void;
use std::marker::PhantomData;
use std::ops::Range;

/// A kernel argument as pointer and size, without its type.
#[derive(Clone, Copy)]
pub(super) struct ArgumentRef<'a> {
    at: *const c_void,
    size: usize,
    borrowed: PhantomData<&'a ()>,
}

impl<'a> ArgumentRef<'a> {
    pub(super) fn new<T: Argument>(value: &'a T) -> Self {
        Self { at: std::ptr::from_ref(value).cast(), size: size_of::<T>(), borrowed: PhantomData }
    }

    pub(super) fn pointer(&self) -> *mut c_void {
        self.at.cast_mut()
    }
}

/// Identifies the CUDA graph that runs a command list. Command lists with the same key usually differ only in the
/// arguments of their kernels, so that they can share one captured graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct GraphKey {
    /// The name of the pass.
    pub(super) pass: &'static str,
    /// The GPU address of the model's weights.
    pub(super) weights: u64,
    /// The sizes of the batch on which the shapes of the pass's matrix products depend.
    pub(super) sizes: [usize; 3],
}

/// One recorded command.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Command {
    /// A kernel launch, and the indices of its arguments in the list of all arguments.
    Launch(Launch, Range<usize>),
    /// A matrix product.
    Product(Product),
    /// A copy within GPU memory.
    Copy { from: u64, to: u64, n_bytes: usize },
    /// Fills memory with zeros.
    Clear { at: u64, n_bytes: usize },
}

/// A kernel launch whose grid or arguments differ from the launch at the same index in another command list.
pub(super) struct ChangedLaunch {
    /// The index of the launch in the command list.
    pub(super) index: usize,
    pub(super) launch: Launch,
    /// Pointers to the new arguments. The command list owns the arguments.
    pub(super) arguments: Vec<*mut c_void>,
}

/// Recorded commands, in order. The list owns copies of all kernel arguments.
#[derive(Default)]
pub(super) struct CommandList {
    commands: Vec<Command>,
    /// The bytes of all kernel arguments. Each argument starts in a new word.
    words: Vec<u64>,
    /// The index in `words` where each argument starts.
    starts: Vec<usize>,
}

impl CommandList {
    pub(super) fn commands(&self) -> &[Command] {
        &self.commands
    }

    pub(super) fn push(&mut self, command: Command) {
        self.commands.push(command);
    }

    /// Records a kernel launch and copies its arguments.
    pub(super) fn push_launch(&mut self, launch: Launch, arguments: &[ArgumentRef<'_>]) {
        let first = self.starts.len();
        for argument in arguments {
            let start = self.words.len();
            self.starts.push(start);
            self.words.resize(start + argument.size.div_ceil(size_of::<u64>()), 0);
            #[expect(unsafe_code, reason = "arguments of all types are stored as bytes")]
            // SAFETY: the argument has `size` bytes without padding, as `Argument` requires, and the words added above
            // have room.
            unsafe {
                let to = self.words[start..].as_mut_ptr().cast::<u8>();
                std::ptr::copy_nonoverlapping(argument.at.cast::<u8>(), to, argument.size);
            }
        }
        self.commands.push(Command::Launch(launch, first..self.starts.len()));
    }

    /// Returns the words that store the given arguments.
    fn words_of(&self, arguments: &Range<usize>) -> &[u64] {
        let at = |index: usize| self.starts.get(index).copied().unwrap_or(self.words.len());
        &self.words[at(arguments.start)..at(arguments.end)]
    }

    /// Returns a pointer to each of the given arguments.
    pub(super) fn pointers(&self, arguments: &Range<usize>) -> Vec<*mut c_void> {
        let at = |start: &usize| self.words[*start..].as_ptr().cast_mut().cast();
        self.starts[arguments.clone()].iter().map(at).collect()
    }

    /// Returns true if the two lists differ only in the grids and arguments of their kernels.
    pub(super) fn has_structure_of(&self, other: &Self) -> bool {
        let matches = |(own, others): (&Command, &Command)| match (own, others) {
            (Command::Launch(own, _), Command::Launch(others, _)) => {
                own.function == others.function && own.n_threads == others.n_threads
            }
            (own, others) => own == others,
        };
        self.commands.len() == other.commands.len()
            && self.starts == other.starts
            && self.commands.iter().zip(&other.commands).all(matches)
    }

    /// Returns the launches whose grid or arguments differ from those in `other`, a list with the same structure.
    pub(super) fn changed_launches<'a>(
        &'a self,
        other: &'a Self,
    ) -> impl Iterator<Item = ChangedLaunch> + 'a {
        let pairs = self.commands.iter().zip(&other.commands).enumerate();
        pairs.filter_map(|(index, pair)| match pair {
            (Command::Launch(own, arguments), Command::Launch(others, theirs))
                if own.grid != others.grid
                    || self.words_of(arguments) != other.words_of(theirs) =>
            {
                Some(ChangedLaunch { index, launch: *own, arguments: self.pointers(arguments) })
            }
            _ => None,
        })
    }

    /// Copies the grids and arguments of `other`, a list with the same structure.
    #[cfg(feature = "emulated")]
    pub(super) fn update_launches(&mut self, other: &Self) {
        let changed: Vec<_> = other.changed_launches(self).map(|change| change.index).collect();
        for index in changed {
            let Command::Launch(_, arguments) = self.commands[index].clone() else { continue };
            let start = self.starts[arguments.start];
            let words = other.words_of(&arguments);
            self.words[start..start + words.len()].copy_from_slice(words);
            self.commands[index] = other.commands[index].clone();
        }
    }

    /// Runs the commands one by one.
    pub(super) fn run(&self, gpu: &dyn Gpu) -> Result<(), Error> {
        self.commands.iter().try_for_each(|command| match command {
            Command::Launch(launch, arguments) => {
                gpu.launch(*launch, &mut self.pointers(arguments))
            }
            Command::Product(product) => gpu.product(product),
            Command::Copy { from, to, n_bytes } => gpu.copy(*from, *to, *n_bytes),
            Command::Clear { at, n_bytes } => gpu.clear(*at, *n_bytes),
        })
    }
}
