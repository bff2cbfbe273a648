// Are batches what their arguments say: every image once an epoch, normalized, varied at the right
// rate?
#include <algorithm>
#include <cmath>
#include <map>

#include "sim/base/index.hpp"
#include "tests/traces/support.hpp"
#include "tools/lab/datasets/dataset.hpp"

namespace stageline::batches_tests {
namespace {

using Indices = std::vector<std::size_t>;

// `count` images of one channel: pixel (y, x) of image i is 50i + 10y + x + 1.
lab::DataSource counted(int height, int width, int count) {
  lab::DataSource source;
  source.train = {1, height, width, 10, {}, {}};
  for (int i = 0; i < count; ++i) {
    source.train.labels.push_back(0);
    for (int y = 0; y < height; ++y) {
      for (int x = 0; x < width; ++x) {
        source.train.pixels.push_back(static_cast<std::uint8_t>(50 * i + 10 * y + x + 1));
      }
    }
  }
  source.mean = {0};
  source.deviation = {1.F / 255};  // values are the bytes
  return source;
}

std::vector<int> rounded(const std::vector<float>& values) {
  std::vector<int> whole;
  for (const float value : values) whole.push_back(static_cast<int>(std::lround(value)));
  return whole;
}

TEST_CASE("an epoch deals every image once, in an order of its own") {
  for (const std::size_t batch : {std::size_t{1}, std::size_t{5}, std::size_t{60}}) {
    std::vector<Indices> epochs;
    for (std::uint64_t epoch = 0; epoch < 3; ++epoch) {
      Indices order;
      for (std::uint64_t b = 0; b < 60 / batch; ++b) {
        const Indices some = lab::batch_indices(60, batch, 7, epoch * (60 / batch) + b);
        CHECK(some.size() == batch);
        order.insert(order.end(), some.begin(), some.end());
      }
      epochs.push_back(order);
      std::sort(order.begin(), order.end());
      for (std::size_t i = 0; i < 60; ++i) CHECK(order[i] == i);
    }
    CHECK(epochs[0] != epochs[1]);
    CHECK(epochs[1] != epochs[2]);
    // The size of a batch cuts the order and does not change it.
    CHECK(lab::batch_indices(60, 60, 7, 1) == epochs[1]);
  }
}

TEST_CASE("images that do not fill a batch are left out, other ones each epoch") {
  std::map<std::size_t, int> seen;
  for (std::uint64_t number = 0; number < 3 * 90; ++number) {
    Indices some = lab::batch_indices(10, 3, 1, number);
    std::sort(some.begin(), some.end());
    CHECK(std::unique(some.begin(), some.end()) == some.end());
    for (const std::size_t i : some) {
      CHECK(i < 10);
      ++seen[i];
    }
  }
  // 90 epochs, of which each leaves out one of ten.
  for (std::size_t i = 0; i < 10; ++i) {
    CHECK(seen[i] < 90);
    CHECK(seen[i] > 65);
  }
}

TEST_CASE("batches are a function of their arguments, and pinned") {
  CHECK(lab::batch_indices(6000, 4, 1, 1502) == lab::batch_indices(6000, 4, 1, 1502));
  CHECK(lab::batch_indices(6000, 4, 1, 1502) != lab::batch_indices(6000, 4, 2, 1502));
  CHECK(lab::batch_indices(6000, 4, 1, 0) == Indices{4300, 5992, 5601, 657});
  CHECK(lab::batch_indices(6000, 4, 1, 1502) == Indices{779, 1725, 986, 1010});
}

TEST_CASE("each order of three images is as likely as the others") {
  std::map<Indices, int> orders;
  for (std::uint64_t epoch = 0; epoch < 6000; ++epoch) ++orders[lab::batch_indices(3, 3, 5, epoch)];
  CHECK(orders.size() == 6);
  for (const auto& [order, count] : orders) CHECK(std::abs(count - 1000) < 130);  // 4.5 deviations
}

TEST_CASE("a batch of no image, or of more than there are, is refused") {
  CHECK(contains(usage_error_of([] { lab::batch_indices(10, 11, 1, 0); }), "(it is 11, of 10)"));
  CHECK(contains(usage_error_of([] { lab::batch_indices(10, 0, 1, 0); }), "(it is 0, of 10)"));
}

TEST_CASE("smaller images stand in the middle, with 0 around, and larger ones are refused") {
  const lab::DataSource source = counted(2, 2, 3);
  // clang-format off
  const std::vector<int> expected{0,   0,   0, 0,
                                  0, 101, 102, 0,
                                  0, 111, 112, 0,
                                  0,   0,   0, 0,

                                  0,   0,   0, 0,
                                  0,   1,   2, 0,
                                  0,  11,  12, 0,
                                  0,   0,   0, 0};
  // clang-format on
  const std::vector<float> images = lab::gather_images(source, source.train, {2, 0}, 4);
  CHECK(rounded(images) == expected);
  CHECK(rounded(lab::gather_images(source, source.train, {1}, 2)) ==
        std::vector<int>{51, 52, 61, 62});
  CHECK(rounded(lab::gather_images(source, source.train, {1}, 3)) ==
        std::vector<int>{51, 52, 0, 61, 62, 0, 0, 0, 0});
  CHECK(lab::gather_images(source, source.train, {}, 4).empty());
  CHECK(contains(usage_error_of([&] { lab::gather_images(source, source.train, {0}, 1); }),
                 "images of 2 × 2 pixels do not fit into the 1 × 1"));
}

TEST_CASE("normalized training images have mean 0 and deviation 1 by channel") {
  const lab::DataSource source = lab::open_data("textures,train=60,test=20");
  Indices all(60);
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = i;
  const std::vector<float> images = lab::gather_images(source, source.train, all, 32);
  REQUIRE(images.size() == 60U * 3 * 32 * 32);
  for (std::size_t c = 0; c < 3; ++c) {
    double sum = 0;
    double squares = 0;
    for (std::size_t i = 0; i < 60; ++i) {
      for (std::size_t p = 0; p < 1024; ++p) {
        const double value = images[(i * 3 + c) * 1024 + p];
        sum += value;
        squares += value * value;
        const double raw = source.train.pixels[(i * 3 + c) * 1024 + p] / 255.;
        CHECK_UNARY(std::abs(value * source.deviation[c] + source.mean[c] - raw) < 1e-5);
      }
    }
    CHECK(std::abs(sum / (60 * 1024)) < 1e-4);
    CHECK(std::abs(squares / (60 * 1024) - 1) < 1e-4);
  }
  // Test images are measured by the training images.
  const std::vector<float> test = lab::gather_images(source, source.test, {3}, 32);
  CHECK(test[0] == doctest::Approx((source.test.pixels[3 * 3072] / 255. - source.mean[0]) /
                                   source.deviation[0]));
}

TEST_CASE("flips turn half of the images, and shifts move by up to 4 pixels either way") {
  // A single lit pixel in the middle of 9 × 9 says where it went; its neighbour, which way it
  // looks.
  lab::DataSource source = counted(9, 9, 1);
  source.train.labels.assign(3600, 0);
  source.train.pixels.assign(3600 * 81, 0);
  Indices all(3600);
  for (std::size_t i = 0; i < all.size(); ++i) {
    all[i] = i;
    source.train.pixels[i * 81 + 40] = 200;
    source.train.pixels[i * 81 + 39] = 100;
  }
  const std::vector<int> moved =
      rounded(lab::gather_images(source, source.train, all, 9, {true, true}, 11));
  REQUIRE(moved.size() == 3600U * 81);
  std::map<int, int> places;
  int flipped = 0;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const auto begin = moved.begin() + static_cast<std::ptrdiff_t>(i * 81);
    const auto at = static_cast<int>(std::find(begin, begin + 81, 200) - begin);
    REQUIRE(at < 81);
    ++places[at];
    if (at % 9 < 8 && begin[at + 1] == 100) ++flipped;
  }
  CHECK(places.size() == 81);
  for (const auto& [place, count] : places) CHECK(std::abs(count - 3600 / 81) < 34);
  CHECK(std::abs(flipped - 3600 * 8 / 18) < 140);  // in 8 of 9 columns it can be seen
  // Flips alone.
  const std::vector<int> turned =
      rounded(lab::gather_images(source, source.train, all, 9, {false, true}, 11));
  int right = 0;
  for (std::size_t i = 0; i < all.size(); ++i) {
    CHECK_UNARY(turned[i * 81 + 40] == 200);
    right += turned[i * 81 + 41] == 100 ? 1 : 0;
  }
  CHECK(std::abs(right - 1800) < 140);
  // Shifts alone leave the order of pixels.
  const std::vector<int> shifted =
      rounded(lab::gather_images(source, source.train, all, 9, {true, false}, 11));
  CHECK(std::count(shifted.begin(), shifted.end(), 200) == 3600);
  for (std::size_t p = 0; p < shifted.size(); ++p) {
    if (shifted[p] == 200 && p % 9 > 0) CHECK_UNARY(shifted[p - 1] == 100);
  }
}

TEST_CASE("a shifted image keeps its frame: what leaves it is 0, also where the model sees more") {
  const lab::DataSource source = counted(5, 5, 1);
  for (std::uint64_t seed = 0; seed < 30; ++seed) {
    const std::vector<int> tight =
        rounded(lab::gather_images(source, source.train, {0}, 5, {true, true}, seed));
    const std::vector<int> wide =
        rounded(lab::gather_images(source, source.train, {0}, 7, {true, true}, seed));
    for (int y = 0; y < 7; ++y) {
      for (int x = 0; x < 7; ++x) {
        const bool inside = y >= 1 && y <= 5 && x >= 1 && x <= 5;
        CHECK(nth(wide, 7 * y + x) == (inside ? nth(tight, 5 * (y - 1) + x - 1) : 0));
      }
    }
  }
}

TEST_CASE("a variation follows from the seed and the image: a batch in pieces is the same batch") {
  const lab::DataSource source = lab::open_data("textures,train=8,test=1");
  const lab::Augmentation both{true, true};
  const auto shown = [&](const Indices& indices, std::uint64_t seed) {
    return lab::gather_images(source, source.train, indices, 32, both, seed);
  };
  std::vector<float> pieces = shown({5, 1}, 3);
  const std::vector<float> rest = shown({7, 2}, 3);
  pieces.insert(pieces.end(), rest.begin(), rest.end());
  CHECK(pieces == shown({5, 1, 7, 2}, 3));
  CHECK(pieces != shown({5, 1, 7, 2}, 4));
}

}  // namespace
}  // namespace stageline::batches_tests
