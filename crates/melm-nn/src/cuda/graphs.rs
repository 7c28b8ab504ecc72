//! CUDA graphs: each runs a list of recorded commands with one call to the driver.
//!
//! The first command list with a given [`GraphKey`] runs command by command. The second list with this key is captured
//! as a graph. Later lists with this key usually differ only in the arguments of their kernels. For them the graph is
//! updated and launched again.
#![expect(unsafe_code, reason = "the driver is a C library")]

use super::commands::{ChangedLaunch, Command, CommandList, GraphKey};
use super::driver::{DriverGpu, check, cuda_error};
use super::gpu::Launch;
use super::settings::GraphCounts;
use crate::error::Error;
use cudarc::driver::result::{graph, stream};
use cudarc::driver::sys::{self, CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED as RELAXED};
use std::collections::HashMap;
use std::ffi::c_void;

/// The maximum number of stored graphs. A training run whose batches all have the same length uses about ten keys.
const MAX_GRAPHS: usize = 128;
/// After this many failures, no further graphs are captured.
const MAX_FAILURES: usize = 3;
/// The first driver version that can report the node captured last.
pub(super) const MIN_DRIVER_VERSION: i32 = 12_030;

/// The captured graphs of a GPU.
pub(super) struct Graphs {
    /// The stream on which graphs are captured. Nothing else uses it, because all work on it is captured.
    stream: sys::CUstream,
    /// The graph of each key; `None` if only the first command list with this key has run.
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
        // SAFETY: both handles were created in `capture`. Destroying them does not affect a running launch.
        unsafe {
            let _ = graph::exec_destroy(self.exec);
            let _ = graph::destroy(self.captured);
        }
    }
}

impl Graphs {
    /// Creates an empty set of graphs. A CUDA context must be current.
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
        // SAFETY: the stream was created in `new`.
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
        // The first list with a key is never captured: the driver loads a kernel at its first launch, and loading is
        // not allowed during a capture.
        let is_new = !self.known.contains_key(&key);
        if is_new || self.counts.n_failed >= MAX_FAILURES {
            self.make_room(key);
            self.known.entry(key).or_insert(None);
            self.counts.n_eager += 1;
            return run(&commands);
        }
        let known = self.known.get_mut(&key).expect("checked above");
        // SAFETY: the caller guarantees that the context is current. `update` runs only if the structure is the same.
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
                // SAFETY: the graph is valid, and the caller guarantees that the stream is.
                check("a graph", unsafe { graph::launch(exec, stream) })
            }
            Err(commands) => {
                self.counts.n_failed += 1;
                self.counts.n_eager += 1;
                run(&commands)
            }
        }
    }

    /// If there are too many graphs, removes those of other models. If there are still too many, removes all.
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
    /// Updates the kernels whose grid or arguments have changed. If the driver refuses, returns the commands as the
    /// error.
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
            // SAFETY: the node is a launch of this kernel in this graph, and the arguments have the right types. The
            // driver copies the arguments. A running launch keeps its old arguments.
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

/// Captures a command list as a graph. If the driver refuses, nothing has run, and the commands are returned as the
/// error.
///
/// # Safety
/// The context is current, and nothing else uses the stream.
unsafe fn capture(
    stream: sys::CUstream,
    commands: CommandList,
    gpu: &DriverGpu,
) -> Result<Graph, CommandList> {
    // SAFETY: the caller guarantees that the stream can be used. Every capture that begins is also ended.
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
    // SAFETY: the graph was captured above.
    let made = unsafe { graph::instantiate(captured, sys::CUgraphInstantiate_flags(0)) };
    if let Ok(exec) = made {
        return Ok(Graph { commands, nodes, captured, exec });
    }
    // SAFETY: the graph was captured above and is not used again.
    let _ = unsafe { graph::destroy(captured) };
    Err(commands)
}

/// Returns the node captured last, on which the next command will depend.
///
/// # Safety
/// A capture is running on the stream.
unsafe fn last_node(stream: sys::CUstream) -> Result<sys::CUgraphNode, Error> {
    use std::ptr::{null, null_mut};
    let mut status = sys::CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE;
    let (mut nodes, mut edges, mut n_nodes) = (null(), null(), 0);
    // SAFETY: the caller guarantees that a capture is running. All pointers point to variables of the right type.
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
    // SAFETY: `nodes` points to `n_nodes` nodes, which are valid until the next call on this stream.
    Ok(unsafe { *nodes })
}
