// Properties of a region that both kinds of map need.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "tools/report/charts/axis.hpp"

namespace stageline::report {

/// The least and the greatest value of a region.
ValueScale value_scale(const Region& region);

/// The position of a mark in cells: the middle of the first is 0.5. Interpolated between two values
/// of the axis; up to half a cell outside is allowed.
double cell_position(const std::vector<double>& axis, double value);

/// The cells of an axis to label: as many as there is room for, evenly spaced, and where the
/// numbers are shortest. `most` labels, at least 1.
std::vector<std::size_t> labelled_cells(const std::vector<double>& axis, std::size_t most);

enum class BandSide : std::uint8_t { below, inside, above };
BandSide side_of(const RegionBand& band, double value);
bool in_band(const Region& region, std::size_t row, std::size_t column);

/// Whether there are cells without a value.
bool has_gaps(const Region& region);

/// The region's footnotes, and the remarks that its map needs.
std::vector<std::string> notes_of(const Region& region);

/// "speed-up, ×"
std::string value_title(const Region& region);

}  // namespace stageline::report
