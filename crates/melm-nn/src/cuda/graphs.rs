//! CUDA graphs: runs a list of recorded commands with one call to the driver.
//!
//! The first list of a key runs command by command. The second is captured as a graph. Later lists usually differ from it
//! in the arguments of their kernels only; then the graph is updated and launched again.
#![expect(unsafe_code, reason = "the driver is a C library")]

use super::commands::{ChangedLaunch, Command, CommandList, GraphKey};
use super::driver::{DriverGpu, check, cuda_error};
use super::gpu::Launch;
use crate::error::Error;
use cudarc::driver::result::{graph, stream};
use cudarc::driver::sys::{self, CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED as RELAXED};
use std::collections::HashMap;
use std::ffi::c_void;

/// The number of graphs that are kept. A training whose batches have one length uses about ten keys.
const MAX_GRAPHS: usize = 128;
/// After this many failures no more graphs are captured.
const MAX_FAILURES: usize = 3;
/// The first driver that reports the node captured last.
pub(super) const MIN_DRIVER_VERSION: i32 = 12_030;

/// How recorded commands were run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GraphCounts {
    /// Command lists that were launched as a graph.
    pub n_replayed: usize,
    /// Graphs that were captured: one for each key, and one more whenever the products of a key change.
    pub n_captured: usize,
    /// Command lists that ran command by command: the first of each key, and those whose graph failed.
    pub n_eager: usize,
    /// Graphs that the driver refused to capture or to update. After a few, no more are tried.
    pub n_failed: usize,
}

/// The captured graphs of a GPU.
pub(super) struct Graphs {
    /// The stream that graphs are captured on. Nothing else uses it, so that nothing else is captured.
    stream: sys::CUstream,
    /// The graph of each key; `None` after its first list.
    known: HashMap<GraphKey, Option<Graph>>,
    pub(super) counts: GraphCounts,
}

/// A captured command list.
struct Graph {
    commands: CommandList,
    /// The node of each kernel launch; null for other commands.
    nodes: Vec<sys::CUgraphNode>,
    captured: sys::CUgraph,
    exec: sys::CUgraphExec,
}

impl Drop for Graph {
    fn drop(&mut self) {
        // SAFETY: both were made in `capture`; destroying them does not disturb a launch that is under way.
        unsafe {
            let _ = graph::exec_destroy(self.exec);
            let _ = graph::destroy(self.captured);
        }
    }
}

impl Graphs {
    /// A context must be current.
    pub(super) fn new() -> Result<Self, Error> {
        let stream = stream::create(stream::StreamKind::NonBlocking)
            .map_err(|error| cuda_error("a stream", &error))?;
        let counts = GraphCounts::default();
        Ok(Self { stream, known: HashMap::new(), counts })
    }

    /// Destroys all graphs and the stream.
    ///
    /// # Safety
    /// No graph is running, and no other method is called afterwards.
    pub(super) unsafe fn close(&mut self) {
        self.known.clear();
        // SAFETY: made in `new`.
        let _ = unsafe { stream::destroy(self.stream) };
    }

    /// Runs recorded commands on `stream`, as a graph where possible.
    ///
    /// # Safety
    /// The context is current, and `stream` belongs to it.
    pub(super) unsafe fn submit(
        &mut self,
        stream: sys::CUstream,
        key: GraphKey,
        commands: CommandList,
        gpu: &DriverGpu,
    ) -> Result<(), Error> {
        let run = |commands: &CommandList| {
            let mut list = commands.commands().iter();
            list.try_for_each(|command| gpu.enqueue(stream, commands, command))
        };
        // The driver loads a kernel when it is first launched, which is not allowed during a capture.
        let is_new = !self.known.contains_key(&key);
        if is_new || self.counts.n_failed >= MAX_FAILURES {
            self.make_room(key);
            self.known.entry(key).or_insert(None);
            self.counts.n_eager += 1;
            return run(&commands);
        }
        let known = self.known.get_mut(&key).expect("checked above");
        // SAFETY: the caller's promise.
        let ready = match known.take() {
            Some(graph) if commands.has_structure_of(&graph.commands) => unsafe {
                graph.update(commands, gpu)
            },
            _ => unsafe { capture(self.stream, commands, gpu) }
                .inspect(|_| self.counts.n_captured += 1),
        };
        match ready {
            Ok(graph) => {
                let exec = known.insert(graph).exec;
                self.counts.n_replayed += 1;
                // SAFETY: the graph is valid, and the stream is the caller's.
                check("a graph", unsafe { graph::launch(exec, stream) })
            }
            Err(commands) => {
                self.counts.n_failed += 1;
                self.counts.n_eager += 1;
                run(&commands)
            }
        }
    }

    /// If there are too many graphs, drops those of other models, and all if that is not enough.
    fn make_room(&mut self, key: GraphKey) {
        if self.known.len() >= MAX_GRAPHS {
            self.known.retain(|known, _| known.weights == key.weights);
        }
        if self.known.len() >= MAX_GRAPHS {
            self.known.clear();
        }
    }
}

impl Graph {
    /// Updates the kernels whose grid or arguments have changed. Returns the commands as the error if the driver refuses.
    ///
    /// # Safety
    /// The context is current, and `commands` has the structure of the captured list.
    unsafe fn update(
        mut self,
        commands: CommandList,
        gpu: &DriverGpu,
    ) -> Result<Self, CommandList> {
        let mut changes = commands.changed_launches(&self.commands);
        let is_updated = changes.all(|ChangedLaunch { index, launch, mut arguments }| {
            let params = kernel_params(gpu.function(launch), launch, &mut arguments);
            // SAFETY: the node is a kernel of this graph with arguments of these types. The driver copies the arguments; a
            // launch under way keeps those that it started with.
            let answer = unsafe {
                sys::cuGraphExecKernelNodeSetParams_v2(
                    self.exec,
                    self.nodes[index],
                    &raw const params,
                )
            };
            answer.result().is_ok()
        });
        drop(changes);
        if !is_updated {
            return Err(commands);
        }
        self.commands = commands;
        Ok(self)
    }
}

fn kernel_params(
    function: sys::CUfunction,
    launch: Launch,
    arguments: &mut [*mut c_void],
) -> sys::CUDA_KERNEL_NODE_PARAMS {
    sys::CUDA_KERNEL_NODE_PARAMS {
        func: function,
        gridDimX: launch.grid[0],
        gridDimY: launch.grid[1],
        gridDimZ: launch.grid[2],
        blockDimX: launch.n_threads,
        blockDimY: 1,
        blockDimZ: 1,
        sharedMemBytes: 0,
        kernelParams: arguments.as_mut_ptr(),
        extra: std::ptr::null_mut(),
        kern: std::ptr::null_mut(),
        ctx: std::ptr::null_mut(),
    }
}

/// Captures a command list as a graph. Returns the commands as the error if the driver refuses; nothing has run then.
///
/// # Safety
/// The context is current, and nobody else uses the stream.
unsafe fn capture(
    stream: sys::CUstream,
    commands: CommandList,
    gpu: &DriverGpu,
) -> Result<Graph, CommandList> {
    // SAFETY: the caller's promise; a capture that begins is ended.
    let captured = unsafe {
        check("a capture", stream::begin_capture(stream, RELAXED)).and_then(|()| {
            let nodes: Result<Vec<_>, Error> = commands
                .commands()
                .iter()
                .map(|command| {
                    gpu.enqueue(stream, &commands, command)?;
                    match command {
                        Command::Launch(..) => last_node(stream),
                        _ => Ok(std::ptr::null_mut()),
                    }
                })
                .collect();
            let graph =
                stream::end_capture(stream).map_err(|error| cuda_error("a capture", &error))?;
            match nodes {
                Ok(nodes) => Ok((nodes, graph)),
                Err(error) => {
                    let _ = graph::destroy(graph);
                    Err(error)
                }
            }
        })
    };
    let Ok((nodes, captured)) = captured else { return Err(commands) };
    // SAFETY: the graph was just captured.
    let made = unsafe { graph::instantiate(captured, sys::CUgraphInstantiate_flags(0)) };
    if let Ok(exec) = made {
        return Ok(Graph { commands, nodes, captured, exec });
    }
    // SAFETY: as above.
    let _ = unsafe { graph::destroy(captured) };
    Err(commands)
}

/// Returns the node that was captured last: the one that the next command will wait for.
///
/// # Safety
/// The stream is capturing.
unsafe fn last_node(stream: sys::CUstream) -> Result<sys::CUgraphNode, Error> {
    use std::ptr::{null, null_mut};
    let mut status = sys::CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE;
    let (mut nodes, mut edges, mut n_nodes) = (null(), null(), 0);
    // SAFETY: the caller's promise; every output has its variable.
    let answer = unsafe {
        sys::cuStreamGetCaptureInfo_v3(
            stream,
            &raw mut status,
            null_mut(),
            null_mut(),
            &raw mut nodes,
            &raw mut edges,
            &raw mut n_nodes,
        )
    };
    check("a capture", answer.result())?;
    if n_nodes != 1 {
        let reason = format!("{n_nodes} nodes at its end, 1 expected");
        return Err(Error::Cuda { what: "a capture", reason });
    }
    // SAFETY: `nodes` points to `n_nodes` nodes, valid until the next call.
    Ok(unsafe { *nodes })
}
