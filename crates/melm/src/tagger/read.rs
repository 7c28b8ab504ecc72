//! Reads sentences: tokenizes them, computes their emissions and passes these on, on all threads.
//!
//! On the CPU, every thread reads its own batches from the pieces to the tags, so that threads never wait for each other
//! between layers. On a GPU, two threads run the device in turns, so that one prepares a batch while the GPU computes that
//! of the other, and more threads decode. A result never depends on the thread.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Mutex, PoisonError};
use std::thread::ScopedJoinHandle;

use melm_nn::device::{Cpu, Device};
use melm_nn::tagger::{Decoder, Int8Weights, TaggedBatch, TaggerTape};

use super::batches::{cut_batches, sort_windows};
use super::encode::WindowInput;
use super::{TaggerModel, Truncation};
use crate::Error;
use crate::parallel::map_in_order;
use crate::shard;
use crate::stage::OnBatch;

/// The number of threads that run a GPU.
const N_EMITTERS: usize = 2;
/// The number of sentences that a thread takes at a time to decode them.
const SENTENCES_AT_ONCE: usize = 16;
/// The largest number of threads that decode what a GPU has computed.
const MAX_DECODERS: usize = 8;

/// Where and with which weights a tagger reads sentences.
#[derive(Clone, Copy)]
pub struct ReadOn<'a> {
    device: &'a Device,
    int8: Option<&'a Int8Weights>,
}

impl<'a> ReadOn<'a> {
    /// Reads on a device: with `int8` weights if they are given and the device is the CPU.
    pub fn new(device: &'a Device, int8: Option<&'a Int8Weights>) -> Self {
        Self { device, int8 }
    }
}

impl<'a> From<&'a Device> for ReadOn<'a> {
    fn from(device: &'a Device) -> Self {
        Self::new(device, None)
    }
}

/// A function that computes a result from the index of a sentence and its emissions.
pub(super) type ReadEmissions<'a, R> =
    &'a (dyn Fn(usize, &[f32], &mut Decoder) -> Result<R, Error> + Sync);

impl TaggerModel {
    /// Calls `read` once for each sentence on some thread, and `on_read` with its result on the calling thread, in any
    /// order. Calls `on_batch` on the calling thread after some sentences, and stops if it fails. Returns the number of
    /// sentences and tokens that were too long for the model.
    ///
    /// A sentence that is longer than the model is read in overlapping windows, and its emissions are joined.
    pub(super) fn read_each<T: AsRef<str> + Sync, R: Send>(
        &self,
        on: ReadOn<'_>,
        sentences: &[Vec<T>],
        read: ReadEmissions<'_, R>,
        on_read: &mut dyn FnMut(usize, R),
        on_batch: OnBatch<'_>,
    ) -> Result<Truncation, Error> {
        let n_threads = on.device.n_threads();
        // On a GPU, the batches of some sentences do not depend on what else is read in the same call.
        let n_together = match on.device {
            Device::Cpu(_) => sentences.len().max(1),
            Device::Cuda(_) => shard::BLOCK,
        };
        let (windows, truncation) = self.sorted_windows(n_threads, sentences, n_together)?;
        let job = ReadJob {
            tagger: self,
            on,
            batches: cut_batches(&windows, on.device, n_threads, n_together),
            windows: &windows,
            pending: Mutex::new(Pending::new(sentences, self.tags.len())),
            read,
        };
        match on.device {
            Device::Cpu(cpu) if n_threads > 1 && job.batches.len() >= n_threads => {
                job.run_on_threads(cpu, on_read, on_batch)?;
            }
            Device::Cpu(_) => job.run_on_caller(on_read, on_batch)?,
            Device::Cuda(_) => {
                job.run_and_decode(n_threads.min(MAX_DECODERS), on_read, on_batch)?;
            }
        }
        Ok(truncation)
    }

    /// Cuts sentences into windows, on `n_threads` threads. Of each `n_together` sentences, the longest windows come first.
    fn sorted_windows<T: AsRef<str> + Sync>(
        &self,
        n_threads: usize,
        sentences: &[Vec<T>],
        n_together: usize,
    ) -> Result<(Vec<WindowInput>, Truncation), Error> {
        let mut truncation = Truncation::default();
        let mut windows = Vec::new();
        for cut in map_in_order(n_threads, sentences, |at, tokens| {
            let mut truncation = Truncation::default();
            Ok::<_, Error>((self.windows(at, tokens, |_| true, &mut truncation)?, truncation))
        }) {
            let (own, of_sentence) = cut?;
            windows.extend(own);
            truncation += of_sentence;
        }
        sort_windows(&mut windows, n_together);
        Ok((windows, truncation))
    }
}

/// Some sentences by their indices, and their emissions.
type Emitted = Vec<(usize, Vec<f32>)>;

/// The sentences of one call.
struct ReadJob<'a, R> {
    tagger: &'a TaggerModel,
    on: ReadOn<'a>,
    windows: &'a [WindowInput],
    batches: Vec<Range<usize>>,
    pending: Mutex<Pending>,
    read: ReadEmissions<'a, R>,
}

impl<R: Send> ReadJob<'_, R> {
    /// Every thread reads its own batches, with the instruction set of `cpu`.
    fn run_on_threads(
        &self,
        cpu: &Cpu,
        on_read: &mut dyn FnMut(usize, R),
        on_batch: OnBatch<'_>,
    ) -> Result<(), Error> {
        let (next, is_stopped) = (AtomicUsize::new(0), AtomicBool::new(false));
        let decoder = self.tagger.model.decoder()?;
        let (sender, receiver) = channel();
        std::thread::scope(|scope| {
            let start = |_| {
                let (sender, mut decoder) = (sender.clone(), decoder.clone());
                let (next, is_stopped) = (&next, &is_stopped);
                scope.spawn(move || {
                    let left = std::iter::from_fn(|| {
                        let at = next.fetch_add(1, Ordering::Relaxed);
                        self.batches.get(at).filter(|_| !is_stopped.load(Ordering::Relaxed))
                    });
                    let outcome = self.read_batches(left, cpu, &mut decoder, &sender);
                    is_stopped.fetch_or(outcome.is_err(), Ordering::Relaxed);
                    outcome
                })
            };
            let threads: Vec<_> = (0..cpu.n_threads()).map(start).collect();
            drop(sender);
            let mut outcome = Ok(());
            for results in receiver {
                for (sentence, result) in results {
                    on_read(sentence, result);
                }
                if outcome.is_ok() {
                    outcome = on_batch();
                    is_stopped.fetch_or(outcome.is_err(), Ordering::Relaxed);
                }
            }
            let ended = threads.into_iter().map(join);
            ended.fold(outcome, Result::and)
        })
    }

    /// Reads some batches on one thread of the CPU. Sends the results of each batch to `sender`.
    fn read_batches<'b>(
        &self,
        batches: impl Iterator<Item = &'b Range<usize>>,
        cpu: &Cpu,
        decoder: &mut Decoder,
        sender: &Sender<Vec<(usize, R)>>,
    ) -> Result<(), Error> {
        let device = Device::from(Cpu::with_isa(1, cpu.isa()));
        let mut buffers = Buffers::new(self.tagger);
        for batch in batches {
            let mut results = Vec::with_capacity(batch.len());
            let on_done = &mut |sentence, emissions: Vec<f32>| {
                results.push((sentence, (self.read)(sentence, &emissions, decoder)?));
                Ok(())
            };
            self.emit(&device, &self.windows[batch.clone()], &mut buffers, on_done)?;
            // The receiver lives until all threads have ended.
            let _ = sender.send(results);
        }
        Ok(())
    }

    /// The caller reads all batches. All threads of the device share the work of a batch.
    fn run_on_caller(
        &self,
        on_read: &mut dyn FnMut(usize, R),
        on_batch: OnBatch<'_>,
    ) -> Result<(), Error> {
        let mut decoder = self.tagger.model.decoder()?;
        let mut buffers = Buffers::new(self.tagger);
        for batch in &self.batches {
            let windows = &self.windows[batch.clone()];
            self.emit(self.on.device, windows, &mut buffers, &mut |sentence, emissions| {
                on_read(sentence, (self.read)(sentence, &emissions, &mut decoder)?);
                Ok(())
            })?;
            on_batch()?;
        }
        Ok(())
    }

    /// Two threads compute the emissions of all batches on a GPU, and `n_decoders` threads decode them.
    fn run_and_decode(
        &self,
        n_decoders: usize,
        on_read: &mut dyn FnMut(usize, R),
        on_batch: OnBatch<'_>,
    ) -> Result<(), Error> {
        let decoder = self.tagger.model.decoder()?;
        let (next, is_stopped) = (AtomicUsize::new(0), AtomicBool::new(false));
        let (emitted, to_decode) = channel::<Emitted>();
        let (sender, receiver) = channel();
        let to_decode = Mutex::new(to_decode);
        std::thread::scope(|scope| {
            let decode = |_| {
                let (sender, mut decoder, queue) = (sender.clone(), decoder.clone(), &to_decode);
                let is_stopped = &is_stopped;
                scope.spawn(move || {
                    let outcome = self.read_queue(queue, &mut decoder, &sender);
                    is_stopped.fetch_or(outcome.is_err(), Ordering::Relaxed);
                    outcome
                })
            };
            let mut threads: Vec<_> = (0..n_decoders.max(1)).map(decode).collect();
            drop(sender);
            threads.extend((0..N_EMITTERS.min(self.batches.len())).map(|_| {
                let (emitted, next, is_stopped) = (emitted.clone(), &next, &is_stopped);
                scope.spawn(move || {
                    let left = std::iter::from_fn(|| {
                        let at = next.fetch_add(1, Ordering::Relaxed);
                        self.batches.get(at).filter(|_| !is_stopped.load(Ordering::Relaxed))
                    });
                    let outcome = self.emit_batches(left, &emitted);
                    is_stopped.fetch_or(outcome.is_err(), Ordering::Relaxed);
                    outcome
                })
            }));
            drop(emitted);
            let mut outcome = Ok(());
            for results in receiver {
                for (sentence, result) in results {
                    on_read(sentence, result);
                }
                if outcome.is_ok() {
                    outcome = on_batch();
                    is_stopped.fetch_or(outcome.is_err(), Ordering::Relaxed);
                }
            }
            threads.into_iter().map(join).fold(outcome, Result::and)
        })
    }

    /// Computes the emissions of some batches on the device. Sends them to `emitted`, some sentences at a time.
    fn emit_batches<'b>(
        &self,
        batches: impl Iterator<Item = &'b Range<usize>>,
        emitted: &Sender<Emitted>,
    ) -> Result<(), Error> {
        let mut buffers = Buffers::new(self.tagger);
        for batch in batches {
            let mut done = Vec::with_capacity(batch.len());
            let windows = &self.windows[batch.clone()];
            self.emit(self.on.device, windows, &mut buffers, &mut |sentence, emissions| {
                done.push((sentence, emissions));
                Ok(())
            })?;
            let mut done = done.into_iter().peekable();
            while done.peek().is_some() {
                // The queue lives until all threads have ended.
                let _ = emitted.send(done.by_ref().take(SENTENCES_AT_ONCE).collect());
            }
        }
        Ok(())
    }

    /// Reads emissions from a queue that several threads share, until its end. Sends the results to `sender`.
    fn read_queue(
        &self,
        queue: &Mutex<Receiver<Emitted>>,
        decoder: &mut Decoder,
        sender: &Sender<Vec<(usize, R)>>,
    ) -> Result<(), Error> {
        while let Some(sentences) = take(queue) {
            let read = |(sentence, emissions): (usize, Vec<f32>)| {
                Ok((sentence, (self.read)(sentence, &emissions, decoder)?))
            };
            // The receiver lives until all threads have ended.
            let _ = sender.send(sentences.into_iter().map(read).collect::<Result<_, Error>>()?);
        }
        Ok(())
    }

    /// Computes the emissions of some windows. Calls `on_done` with the emissions of each sentence that is now complete.
    fn emit(
        &self,
        device: &Device,
        windows: &[WindowInput],
        buffers: &mut Buffers,
        on_done: &mut dyn FnMut(usize, Vec<f32>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let Buffers { tape, batch, emissions } = buffers;
        batch.clear();
        for window in windows {
            batch.push(0, &window.pieces, &window.first_pieces, &[]);
        }
        let model = &self.tagger.model;
        match (device, self.on.int8) {
            (Device::Cpu(cpu), Some(int8)) => {
                model.emissions_int8(cpu, int8, batch, tape, emissions)?;
            }
            _ => model.emissions(device, batch, tape, emissions)?,
        }
        let mut rest = &emissions[..];
        for window in windows {
            let (own, others) = rest.split_at(window.own.len() * self.tagger.tags.len());
            rest = others;
            let whole =
                self.pending.lock().unwrap_or_else(PoisonError::into_inner).add(window, own);
            if let Some(emissions) = whole {
                on_done(window.sentence, emissions)?;
            }
        }
        Ok(())
    }
}

/// Returns the result of a thread when it has ended.
pub(super) fn join<R>(thread: ScopedJoinHandle<'_, R>) -> R {
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// Takes the next item of a queue that several threads share. Returns `None` at its end.
pub(super) fn take<T>(queue: &Mutex<Receiver<T>>) -> Option<T> {
    queue.lock().unwrap_or_else(PoisonError::into_inner).recv().ok()
}

/// Working memory of one thread.
struct Buffers {
    tape: TaggerTape,
    batch: TaggedBatch,
    emissions: Vec<f32>,
}

impl Buffers {
    fn new(tagger: &TaggerModel) -> Self {
        Self {
            tape: TaggerTape::for_prediction(tagger.model.config()),
            batch: TaggedBatch::default(),
            emissions: Vec::new(),
        }
    }
}

/// Collects the emissions of sentences whose windows have not all been read yet.
struct Pending {
    n_tags: usize,
    /// For each sentence, the number of tokens without emissions, and the emissions so far.
    sentences: Vec<(usize, Vec<f32>)>,
}

impl Pending {
    fn new<T>(sentences: &[Vec<T>], n_tags: usize) -> Self {
        let sentences = sentences.iter().map(|tokens| (tokens.len(), Vec::new())).collect();
        Self { n_tags, sentences }
    }

    /// Adds the emissions of the tokens that a window owns. Returns the emissions of the whole sentence if it is now
    /// complete.
    fn add(&mut self, window: &WindowInput, own: &[f32]) -> Option<Vec<f32>> {
        let (n_left, emissions) = &mut self.sentences[window.sentence];
        let n_tokens = if emissions.is_empty() { *n_left } else { emissions.len() / self.n_tags };
        emissions.resize(n_tokens * self.n_tags, 0.0);
        emissions[window.own.start * self.n_tags..window.own.end * self.n_tags]
            .copy_from_slice(own);
        *n_left -= window.own.len();
        (*n_left == 0).then(|| std::mem::take(emissions))
    }
}
