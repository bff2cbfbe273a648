// How fast a core multiplies and adds, at the clock it has just now: what a BLAS is held against.
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include <algorithm>
#include <chrono>

#include "tools/executor/processes/process.hpp"

namespace stageline::executor {
namespace {

constexpr int rounds = 50'000;  // of 8 independent chains: two units, four cycles from in to out

using Four = float __attribute__((vector_size(16)));

// Each chain goes to 1, so that no value is ever denormal or infinite. Returns their sum, so that
// none is left out by the compiler.
float on_any_cpu(float start) {
  const Four factor = {0.5F, 0.5F, 0.5F, 0.5F};
  Four a = factor * start, b = a, c = a, d = a, e = a, f = a, g = a, h = a;
  b[0] += 1, c[0] += 2, d[0] += 3, e[0] += 4, f[0] += 5, g[0] += 6, h[0] += 7;
  for (int i = 0; i < rounds; ++i) {
    a = a * factor + factor, b = b * factor + factor;
    c = c * factor + factor, d = d * factor + factor;
    e = e * factor + factor, f = f * factor + factor;
    g = g * factor + factor, h = h * factor + factor;
  }
  const Four sum = a + b + c + d + e + f + g + h;
  return sum[0] + sum[1] + sum[2] + sum[3];
}

#if defined(__x86_64__)
__attribute__((target("avx2,fma"))) float with_avx2(float start) {
  const __m256 factor = _mm256_set1_ps(0.5F);
  __m256 a = _mm256_set1_ps(start), b = _mm256_set1_ps(start + 1), c = _mm256_set1_ps(start + 2),
         d = _mm256_set1_ps(start + 3), e = _mm256_set1_ps(start + 4),
         f = _mm256_set1_ps(start + 5), g = _mm256_set1_ps(start + 6),
         h = _mm256_set1_ps(start + 7);
  for (int i = 0; i < rounds; ++i) {
    a = _mm256_fmadd_ps(a, factor, factor), b = _mm256_fmadd_ps(b, factor, factor);
    c = _mm256_fmadd_ps(c, factor, factor), d = _mm256_fmadd_ps(d, factor, factor);
    e = _mm256_fmadd_ps(e, factor, factor), f = _mm256_fmadd_ps(f, factor, factor);
    g = _mm256_fmadd_ps(g, factor, factor), h = _mm256_fmadd_ps(h, factor, factor);
  }
  const __m256 sum = a + b + c + d + e + f + g + h;
  float total = 0;
  for (int i = 0; i < 8; ++i) total += sum[i];
  return total;
}
#endif

}  // namespace

double fma_gflops(const Cpu& cpu) {
  float (*run)(float) = on_any_cpu;
  double width = 4;
#if defined(__x86_64__)
  if (cpu.avx2_fma) {
    run = with_avx2;
    width = 8;
  }
#else
  static_cast<void>(cpu);
#endif
  const double operations = 2.0 * 8 * width * rounds;
  double best = 0;
  volatile float value = 1;  // read and written each time, so that no run is another's result
  for (int i = 0; i < 20; ++i) {
    const auto start = std::chrono::steady_clock::now();
    value = run(value);
    const std::chrono::duration<double, std::nano> taken = std::chrono::steady_clock::now() - start;
    best = std::max(best, operations / taken.count());
  }
  return best;
}

}  // namespace stageline::executor
