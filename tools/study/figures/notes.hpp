// What a reader of the numbers must know: rules that are rebuilt, copies that cost nothing, steps
// that are means.
#pragma once

#include <string>
#include <vector>

#include "tools/study/case.hpp"
#include "tools/study/outcome.hpp"

namespace stageline {

/// That rules of the schedule, or of its knobs as they are set, are rebuilt. Empty: none is, or the
/// program was given.
std::string rebuilt_note(const Case& asked);

/// How the collectives of a case with degrees are carried out; empty for others.
std::vector<UsedAlgorithm> used_algorithms(const Case& asked, const Outcome& outcome);

/// "collectives: tp all_reduce of 16.78 MB by nvls (priced by a measured table of such devices), dp
/// all_gather of 1.2 MB to 3.4 MB by ring (priced by NCCL's model)"; where one entry prices all it
/// stands at the end. Empty where there are none.
std::string algorithms_note(const Case& asked, const Outcome& outcome);

/// That tied weights are held by the devices of both their layers; empty where they are held once.
std::string copies_note(const Case& asked, const Outcome& outcome);

/// That ZeRO 2 and 3 beside a pipeline exchange once a step; empty where that is asked for.
std::string zero_note(const Case& asked);

/// The shard groups of a case with some; else empty.
std::string shard_note(const Case& asked);

/// What came of settings that look for something, and which have no effect on this outcome: those
/// of stream_notes() for commands that do not show the outcome itself.
std::vector<std::string> setting_notes(const Case& asked, const Outcome& outcome);
/// The same of a case that was not simulated: it is, where a setting may have a note. Throws as
/// study().
std::vector<std::string> setting_notes(const Case& asked);

/// All notes on an outcome, one sentence each.
std::vector<std::string> stream_notes(const Case& asked, const Outcome& outcome);

/// What is left out of the costs of a schedule that cuts sequences; empty for others.
std::string chunks_note(const Case& asked);

}  // namespace stageline
