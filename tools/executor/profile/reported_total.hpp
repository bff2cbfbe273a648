// A type that changed between versions of c10.
#pragma once

#include <c10/core/Allocator.h>

namespace stageline::executor {

// The type of two parameters of what allocators call. It was int64_t, then size_t: ask the header.
template <typename Function>
struct TotalOf;
template <typename Total>
struct TotalOf<void(void*, int64_t, Total, Total, c10::Device)> {
  using Type = Total;
};
using ReportedTotal = TotalOf<decltype(c10::reportMemoryUsageToProfiler)>::Type;

}  // namespace stageline::executor
