// BPipe (Kim et al., ICML 2023): in 1F1B device r of p holds p-r stashes, so that the first is full
// where the last has room. Device r < p/2 moves what it holds above K = ceil((p+2)/2) to device
// p-1-r, and takes it back one op before its backward. Then none holds more than K, of which one is
// on its way. Whether that pays depends on the model and its kernels (Huang et al. 2024, arXiv
// 2401.02088: for GPT-3 it does, for LLaMA not).
//
// Which stashes move is rebuilt, as few as keep to K: with n in flight, n-K of each n-2 that follow
// one another. A stash leaves while the op behind its F runs, and comes back while the op before
// its B does. With 4 devices and an even number of micro-batches one of a step has no such op
// beside which there is room: its B waits for it.
//
// p 4, n 4, K 3: every second stash. From the first op of its line to the last it is on device 3,
// or on its way.
//
//     ops of device 0     F0 F1 F2 F3 B0 F4 B1 F5 B2 F6 B3 F7 B4
//     stash of 1                >---------<
//     stash of 3                      >---------------<
#pragma once

#include "schedulers/scheduler.hpp"
#include "sim/placement.hpp"
#include "sim/program.hpp"

namespace stageline {

inline constexpr Knob stashes_knob{
    "stashes", "own|paired", "own",
    "paired: device r of p moves stashes above half of p and one to device p-1-r (BPipe; which ones "
    "is rebuilt)",
    "which stashes move is rebuilt"};

/// Whether stashes=paired is asked for.
bool pairs_stashes(const Knobs& knobs);

/// The most stashes that a device of p holds.
constexpr int paired_limit(int devices) { return (devices + 3) / 2; }

/// Stage r on device r, with p-1-r as the home of its stashes where it holds more than the limit.
Placement paired_placement(int devices);

/// Writes the OFFLOADs and PREFETCHes of a program of 1F1B that is placed so.
void move_stashes(Program& program);

}  // namespace stageline
