// Are drawn tasks the same everywhere, and what their options say?
#include <algorithm>
#include <array>
#include <cmath>
#include <set>
#include <string>

#include "tests/traces/support.hpp"
#include "tools/lab/datasets/dataset.hpp"
#include "tools/lab/datasets/random.hpp"

namespace stageline::drawn_tests {
namespace {

// FNV-1a over labels and pixels.
std::uint64_t checksum(const lab::Dataset& set) {
  std::uint64_t sum = 0xCBF29CE484222325U;
  for (const auto* const bytes : {&set.labels, &set.pixels}) {
    for (const std::uint8_t byte : *bytes) sum = (sum ^ byte) * 0x100000001B3U;
  }
  return sum;
}

std::vector<std::uint8_t> image(const lab::Dataset& set, std::size_t i) {
  const auto begin = set.pixels.begin() + static_cast<std::ptrdiff_t>(i * set.image_size());
  return {begin, begin + static_cast<std::ptrdiff_t>(set.image_size())};
}

// Over all pixels of both sets, which have as many.
double mean_distance(const lab::Dataset& a, const lab::Dataset& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.pixels.size(); ++i) sum += std::abs(a.pixels[i] - b.pixels[i]);
  return sum / static_cast<double>(a.pixels.size());
}

TEST_CASE("the stream of random numbers is SplitMix64") {
  // The first outputs for the state 1234567, as its authors' program prints them.
  std::uint64_t state = 1234567;
  const std::array<std::uint64_t, 3> published{6457827717110365317U, 3203168211198807973U,
                                               9817491932198370423U};
  for (const std::uint64_t word : published) {
    CHECK(lab::mixed_bits(state += 0x9E3779B97F4A7C15U) == word);
  }
}

TEST_CASE("random numbers have the ranges, means and deviations that they should") {
  lab::RandomStream random{42};
  std::array<int, 7> counts{};
  double sum = 0;
  double squares = 0;
  double units = 0;
  constexpr int draws = 100'000;
  for (int i = 0; i < draws; ++i) {
    ++counts[random.below(counts.size())];
    const double bell = random.bell();
    CHECK_UNARY(std::abs(bell) < 3.465);
    sum += bell;
    squares += bell * bell;
    const double unit = random.unit();
    CHECK_UNARY((unit >= 0 && unit < 1));
    units += unit;
  }
  for (const int count : counts) CHECK(std::abs(count - draws / 7) < 500);  // 4.5 deviations
  CHECK(std::abs(sum / draws) < .015);
  CHECK(std::abs(squares / draws - 1) < .02);
  CHECK(std::abs(units / draws - .5) < .005);
  CHECK(lab::RandomStream{1, 2}.next() != lab::RandomStream{2, 1}.next());
  CHECK(lab::RandomStream{1}.next() != lab::RandomStream{1, 0}.next());
}

// Whoever changes these numbers has changed the task, and every result found with it.
TEST_CASE("the first hundred images of each drawn task are pinned") {
  const lab::DataSource digits = lab::open_data("digits,train=100,test=100");
  CHECK(checksum(digits.train) == 4823303239114955557U);
  CHECK(checksum(digits.test) == 16737392503681703794U);
  const lab::DataSource textures = lab::open_data("textures,train=100,test=100");
  CHECK(checksum(textures.train) == 1800237498378206799U);
  CHECK(checksum(textures.test) == 2943067428739340000U);
}

TEST_CASE("an image follows from the seed and its number alone") {
  for (const std::string& task : {std::string("digits"), std::string("textures")}) {
    const lab::DataSource few = lab::open_data(task + ",train=20,test=10");
    const lab::DataSource many = lab::open_data(task + ",train=40,test=30");
    CHECK(std::equal(few.train.pixels.begin(), few.train.pixels.end(), many.train.pixels.begin()));
    CHECK(std::equal(few.test.labels.begin(), few.test.labels.end(), many.test.labels.begin()));
    CHECK(std::equal(few.test.pixels.begin(), few.test.pixels.end(), many.test.pixels.begin()));
    CHECK(lab::open_data(task + ",train=20,test=10").train == few.train);
    CHECK(lab::open_data(task + ",train=20,test=10,seed=1").train == few.train);
    const lab::DataSource other = lab::open_data(task + ",train=20,test=10,seed=2");
    std::set<std::string> images;
    for (std::size_t i = 0; i < 10; ++i) {
      CHECK(image(other.train, i) != image(few.train, i));
      for (const lab::Dataset* const set : {&few.train, &few.test, &other.train, &other.test}) {
        const std::vector<std::uint8_t> pixels = image(*set, i);
        images.insert(std::string(pixels.begin(), pixels.end()));
      }
    }
    CHECK(images.size() == 40);  // train and test share none, nor do two seeds
  }
}

TEST_CASE("a drawn set has the shape, and as many images of each class, as it says") {
  const lab::DataSource digits = lab::open_data("digits,train=50,test=20");
  CHECK(digits.name == "digits,train=50,test=20,noise=20,warp=100,seed=1");
  CHECK(lab::open_data(digits.name).train == digits.train);
  CHECK(digits.train.image_size() == 784);
  CHECK(digits.test.pixels.size() == 20 * 784);
  CHECK(digits.mean.size() == 1);
  const lab::DataSource textures = lab::open_data("textures,train=50,test=20");
  CHECK(lab::open_data(textures.name).test == textures.test);
  CHECK(textures.train.image_size() == 3072);
  CHECK(textures.deviation.size() == 3);
  for (const lab::Dataset* const set : {&digits.train, &textures.train}) {
    CHECK(set->classes == 10);
    for (int label = 0; label < 10; ++label) {
      CHECK(std::count(set->labels.begin(), set->labels.end(), label) == 5);
    }
  }
}

TEST_CASE("noise is as large as its option says, and touches nothing else") {
  // Where the ground is far from black and white nothing is cut off: a texture in grey.
  const auto task = [](const std::string& noise) {
    return lab::open_data("textures,train=30,test=10,noise=" + noise);
  };
  const lab::Dataset clean = task("0").train;
  const lab::Dataset noisy = task("20").train;
  double squares = 0;
  int inside = 0;
  for (std::size_t i = 0; i < clean.pixels.size(); ++i) {
    if (clean.pixels[i] < 80 || clean.pixels[i] > 175) continue;
    const double off = noisy.pixels[i] - clean.pixels[i];
    squares += off * off;
    ++inside;
  }
  REQUIRE(inside > 10'000);
  CHECK(std::sqrt(squares / inside) == doctest::Approx(20).epsilon(.03));
  const lab::Dataset digits = lab::open_data("digits,train=30,test=10,noise=0").train;
  CHECK(std::count(digits.pixels.begin(), digits.pixels.end(), 0) >
        static_cast<std::ptrdiff_t>(digits.pixels.size() / 2));
}

TEST_CASE("without warp, digits of one form differ by ink alone; with more, by more") {
  const auto task = [](int warp, int seed) {
    return lab::open_data("digits,train=200,test=10,noise=0,warp=" + std::to_string(warp) +
                          ",seed=" + std::to_string(seed))
        .train;
  };
  const double none = mean_distance(task(0, 1), task(0, 2));
  const double half = mean_distance(task(50, 1), task(50, 2));
  const double full = mean_distance(task(100, 1), task(100, 2));
  CHECK(none > 0);
  CHECK(half > 1.1 * none);
  CHECK(full > 1.1 * half);
}

TEST_CASE("without mix, a texture's other pattern is not there") {
  const auto task = [](const std::string& mix) {
    return lab::open_data("textures,train=20,test=10,noise=0,mix=" + mix).train;
  };
  CHECK(mean_distance(task("0"), task("50")) > 2);
  CHECK(mean_distance(task("0"), task("50")) > 1.5 * mean_distance(task("0"), task("25")));
}

TEST_CASE("names and options that there are not are refused, with the nearest") {
  const auto said = [](const std::string& text) {
    return usage_error_of([&] { lab::open_data(text); });
  };
  CHECK(said("digit") ==
        "there are no data called \"digit\" (did you mean \"digits\"?); there are digits, "
        "textures, mnist:FOLDER, cifar10:FOLDER");
  CHECK(contains(said("digits,nois=3"), "(did you mean \"noise\"?)"));
  CHECK(
      contains(said("digits,mix=3"), "digits has no option 'mix' (there are train, test, noise,"));
  CHECK(said("digits,noise=256") == "digits: noise must be a whole number from 0 to 255, not 256");
  CHECK(said("digits,train=0") == "digits: train must be a whole number from 1 to 1000000, not 0");
  CHECK(contains(said("digits,seed=-1"), "digits: seed must be a whole number from 0"));
  CHECK(contains(said("digits,seed=1,seed=2"), "option 'seed' appears twice"));
  CHECK(contains(said("digits,fast"), "'fast' in 'digits,fast' is not an option"));
  CHECK(said("mnist") == "mnist is read from files: write mnist:FOLDER");
  CHECK(said("mnist:") == "mnist is read from files: write mnist:FOLDER");
  CHECK(said("digits:x") == "digits is drawn, not read: write digits without \":x\"");
  CHECK(contains(said("mnist:/tmp,noise=3"), "mnist has no option 'noise'"));
}

TEST_CASE("every name that is listed can be opened as it is listed") {
  std::vector<std::string> names;
  for (const auto& [name, about] : lab::data_names()) {
    names.push_back(name);
    CHECK(contains(about, "options: train="));
  }
  CHECK(names == std::vector<std::string>{"digits", "textures", "mnist:FOLDER", "cifar10:FOLDER"});
}

}  // namespace
}  // namespace stageline::drawn_tests
