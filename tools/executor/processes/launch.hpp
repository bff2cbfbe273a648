// Starts one program as several processes on this machine, as torchrun does. Needs no LibTorch.
#pragma once

namespace stageline::executor {

/// Starts this program `count` times on this machine, with the same arguments and torchrun's
/// variables, and waits for all of them.
///
/// Standard input and output are rank 0's. The standard error of the other ranks is held back, and
/// shown with "rank 2: " before each line if that rank is the first to fail and rank 0 has not
/// ended with an error of its own (which then contains "rank 2: …"). When a rank fails, the others
/// have five seconds to end by themselves; then, and at once when this process gets SIGINT, SIGTERM
/// or SIGHUP, they get SIGTERM and two seconds later SIGKILL. When this process is killed, so are
/// they. Call it before other threads start, from a thread that outlives the processes.
///
/// Returns the exit code: 0, that of the first to fail (128 and the signal for one that a signal
/// ended), or 128 and the signal that this process got. `argv` is main's. Throws UsageError where
/// the system gives no process, pipe or port.
int launch(int count, char** argv);

}  // namespace stageline::executor
