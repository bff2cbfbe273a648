// The long columns of a diagram, as blobs. diagram.hpp lists them.
#pragma once

#include <string>
#include <vector>

#include "tools/report/page/diagram.hpp"

namespace stageline::report {

/// `prefix`: of the names, "0.".
void add_spans(std::vector<PageBlob>& blobs, const std::string& prefix, const Drawing& drawing);
void add_versions(std::vector<PageBlob>& blobs, const std::string& prefix, const Drawing& drawing);
void add_needs(std::vector<PageBlob>& blobs, const std::string& prefix, const Drawing& drawing);
void add_idle(std::vector<PageBlob>& blobs, const std::string& prefix, const Drawing& drawing);
void add_path(std::vector<PageBlob>& blobs, const std::string& prefix, const Drawing& drawing,
              const std::vector<PathPiece>& path);
/// Whether every point is there: of long curves the highest in each of many equal intervals.
bool add_curves(std::vector<PageBlob>& blobs, const std::string& prefix, const Drawing& drawing);

}  // namespace stageline::report
