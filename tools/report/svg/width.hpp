// How wide a picture may be, and from which width on it is laid out for a desk.
#pragma once

namespace stageline::report {

// px. Chosen by looking at pictures: below the first, labels meet one another; the second bounds
// the size of a document; below the third, a picture is one of a phone.
inline constexpr int least_picture = 400;
inline constexpr int most_picture = 10'000;
inline constexpr int least_desk = 640;

/// Throws UsageError for a width out of range.
void check_width(int width);

}  // namespace stageline::report
