//! Scripts as graphs: the card has one for each bucket, is told what kernels take this time, and runs it in one call.
#![expect(unsafe_code, reason = "the driver is a C library")]

use super::driver::{check, failure};
use super::machine::Launch;
use super::script::{Bucket, Entry, Script};
use crate::error::Error;
use cudarc::driver::result::{graph, stream};
use cudarc::driver::sys::{self, CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED as RELAXED};
use std::collections::HashMap;
use std::ffi::c_void;

/// Graphs that are kept; a training of one length of batches has some ten buckets.
const MOST_GRAPHS: usize = 128;
/// Graphs that may fail before there are no more.
const MOST_FAILURES: usize = 3;
/// The first driver that says which node of a graph was recorded last.
pub(super) const FIRST_DRIVER: i32 = 12_030;

/// How scripts were run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GraphCounts {
    /// As a graph, in one call.
    pub n_played: usize,
    /// Graphs that were made: one for each bucket, and again when its products changed.
    pub n_made: usize,
    /// Entry by entry: the first script of each bucket, and those that failed as a graph.
    pub n_run: usize,
    /// Graphs that the card refused to make or to change; after a few, no more are asked for.
    pub n_failed: usize,
}

/// The graphs of a card.
pub(super) struct Graphs {
    /// Where scripts are recorded, so that nothing else gets into them.
    stream: sys::CUstream,
    /// The graph of a bucket; none after its first script.
    known: HashMap<Bucket, Option<Graph>>,
    pub(super) counts: GraphCounts,
}

/// A script as the card has it.
struct Graph {
    script: Script,
    /// The kernel of each entry; null where it is none.
    nodes: Vec<sys::CUgraphNode>,
    recorded: sys::CUgraph,
    exec: sys::CUgraphExec,
}

impl Drop for Graph {
    fn drop(&mut self) {
        // SAFETY: both were made in `record`; a launch that is under way is not disturbed.
        unsafe {
            let _ = graph::exec_destroy(self.exec);
            let _ = graph::destroy(self.recorded);
        }
    }
}

/// Asks a stream for an entry of a script.
pub(super) type Ask<'a> = &'a dyn Fn(sys::CUstream, &Script, &Entry) -> Result<(), Error>;
/// The handle of a kernel.
pub(super) type FunctionOf<'a> = &'a dyn Fn(Launch) -> sys::CUfunction;

impl Graphs {
    /// A context is current.
    pub(super) fn new() -> Result<Self, Error> {
        let stream = stream::create(stream::StreamKind::NonBlocking)
            .map_err(|error| failure("a stream", &error))?;
        let counts = GraphCounts::default();
        Ok(Self { stream, known: HashMap::new(), counts })
    }

    /// Gives everything back.
    ///
    /// # Safety
    /// Nothing is under way, and nothing comes after.
    pub(super) unsafe fn close(&mut self) {
        self.known.clear();
        // SAFETY: made in `new`.
        let _ = unsafe { stream::destroy(self.stream) };
    }

    /// Has the card run a script on a stream.
    ///
    /// # Safety
    /// The context is current, and `ask` asks for what the script says.
    pub(super) unsafe fn play(
        &mut self,
        on: sys::CUstream,
        (bucket, script): (Bucket, Script),
        (ask, function): (Ask<'_>, FunctionOf<'_>),
    ) -> Result<(), Error> {
        let run = |script: &Script| script.entries().iter().try_for_each(|e| ask(on, script, e));
        // Kernels are loaded when they are first used, which a recording does not allow.
        let is_new = !self.known.contains_key(&bucket);
        if is_new || self.counts.n_failed >= MOST_FAILURES {
            self.make_room(bucket);
            self.known.entry(bucket).or_insert(None);
            self.counts.n_run += 1;
            return run(&script);
        }
        let known = self.known.get_mut(&bucket).expect("looked for above");
        // SAFETY: the caller's promise.
        let ready = match known.take() {
            Some(graph) if script.is_like(&graph.script) => unsafe {
                graph.follow(script, function)
            },
            _ => unsafe { record(self.stream, script, ask) }.inspect(|_| self.counts.n_made += 1),
        };
        match ready {
            Ok(graph) => {
                let exec = known.insert(graph).exec;
                self.counts.n_played += 1;
                // SAFETY: the graph is valid, and the stream the caller's.
                check("a graph", unsafe { graph::launch(exec, on) })
            }
            Err(script) => {
                self.counts.n_failed += 1;
                self.counts.n_run += 1;
                run(&script)
            }
        }
    }

    /// Forgets the graphs of other models when there are too many, and all if that is not enough.
    fn make_room(&mut self, bucket: Bucket) {
        if self.known.len() >= MOST_GRAPHS {
            self.known.retain(|known, _| known.weights == bucket.weights);
        }
        if self.known.len() >= MOST_GRAPHS {
            self.known.clear();
        }
    }
}

impl Graph {
    /// Becomes a script that is like its own; gives it back when the card refuses.
    ///
    /// # Safety
    /// The functions are those of the script's kernels.
    unsafe fn follow(mut self, script: Script, function: FunctionOf<'_>) -> Result<Self, Script> {
        let mut changes = script.changes(&self.script);
        let is_followed = changes.all(|(index, launch, mut values)| {
            let node = kernel_node(function(launch), launch, &mut values);
            // SAFETY: the node is a kernel of this graph, and the values are what it takes; they are copied. A launch under
            // way keeps those that it began with.
            let answer = unsafe {
                sys::cuGraphExecKernelNodeSetParams_v2(
                    self.exec,
                    self.nodes[index],
                    &raw const node,
                )
            };
            answer.result().is_ok()
        });
        drop(changes);
        if !is_followed {
            return Err(script);
        }
        self.script = script;
        Ok(self)
    }
}

fn kernel_node(
    func: sys::CUfunction,
    Launch { grid, n_threads, .. }: Launch,
    values: &mut [*mut c_void],
) -> sys::CUDA_KERNEL_NODE_PARAMS {
    sys::CUDA_KERNEL_NODE_PARAMS {
        func,
        gridDimX: grid[0],
        gridDimY: grid[1],
        gridDimZ: grid[2],
        blockDimX: n_threads,
        blockDimY: 1,
        blockDimZ: 1,
        sharedMemBytes: 0,
        kernelParams: values.as_mut_ptr(),
        extra: std::ptr::null_mut(),
        kern: std::ptr::null_mut(),
        ctx: std::ptr::null_mut(),
    }
}

/// Makes a graph of a script; gives the script back when that fails, which changes nothing.
///
/// # Safety
/// The context is current, nobody else uses the stream, and `ask` asks for what the script says.
unsafe fn record(on: sys::CUstream, script: Script, ask: Ask<'_>) -> Result<Graph, Script> {
    // SAFETY: the caller's promise; what is begun is ended.
    let recorded = unsafe {
        check("a recording", stream::begin_capture(on, RELAXED)).and_then(|()| {
            let nodes: Result<Vec<_>, Error> = script
                .entries()
                .iter()
                .map(|entry| {
                    ask(on, &script, entry)?;
                    match entry {
                        Entry::Launch(..) => last_node(on),
                        _ => Ok(std::ptr::null_mut()),
                    }
                })
                .collect();
            let graph = stream::end_capture(on).map_err(|error| failure("a recording", &error))?;
            match nodes {
                Ok(nodes) => Ok((nodes, graph)),
                Err(error) => {
                    let _ = graph::destroy(graph);
                    Err(error)
                }
            }
        })
    };
    let Ok((nodes, recorded)) = recorded else { return Err(script) };
    // SAFETY: the graph was just recorded.
    let made = unsafe { graph::instantiate(recorded, sys::CUgraphInstantiate_flags(0)) };
    if let Ok(exec) = made {
        return Ok(Graph { script, nodes, recorded, exec });
    }
    // SAFETY: as above.
    let _ = unsafe { graph::destroy(recorded) };
    Err(script)
}

/// The node that was recorded last: the one that the next will wait for.
///
/// # Safety
/// The stream is recording.
unsafe fn last_node(on: sys::CUstream) -> Result<sys::CUgraphNode, Error> {
    use std::ptr::{null, null_mut};
    let mut status = sys::CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE;
    let (mut nodes, mut edges, mut n_nodes) = (null(), null(), 0);
    // SAFETY: the caller's promise, and there are places for the answers.
    let answer = unsafe {
        sys::cuStreamGetCaptureInfo_v3(
            on,
            &raw mut status,
            null_mut(),
            null_mut(),
            &raw mut nodes,
            &raw mut edges,
            &raw mut n_nodes,
        )
    };
    check("a recording", answer.result())?;
    if n_nodes != 1 {
        let reason = format!("{n_nodes} nodes at its end");
        return Err(Error::Cuda { what: "a recording", reason });
    }
    // SAFETY: it is a list of so many, valid until the next call.
    Ok(unsafe { *nodes })
}
