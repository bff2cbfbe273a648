// Pictures as PDF and PNG, by librsvg's program rsvg-convert.
#pragma once

#include <cstdint>
#include <string>

namespace stageline::cli {

enum class PictureFormat : std::uint8_t { pdf, png };

/// The picture in another format: PDF keeps lines and text as such; PNG has 2 × 2 pixels for each
/// of the SVG. Runs rsvg-convert, which is looked up on PATH: the command is built without librsvg,
/// whose dependencies are many, and finds it where it is installed. Throws UsageError with the
/// package to install where it is not, and with its own words where it fails.
std::string converted(const std::string& svg, PictureFormat format);

}  // namespace stageline::cli
