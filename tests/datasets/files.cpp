// Are MNIST's and CIFAR-10's files read as they are, and refused where they are not whole?
#include <cmath>

#include "tests/datasets/support.hpp"
#include "tests/traces/profiles.hpp"
#include "tests/traces/support.hpp"
#include "tools/lab/datasets/dataset.hpp"

namespace stageline::files_tests {
namespace {

using datasets::big_endian;
using datasets::cifar_record;
using datasets::Folder;
using datasets::idx_images;
using datasets::idx_labels;

const std::string train_images = "train-images-idx3-ubyte";
const std::string train_labels = "train-labels-idx1-ubyte";
const std::string test_images = "t10k-images-idx3-ubyte";
const std::string test_labels = "t10k-labels-idx1-ubyte";

// Three images of 2 rows and 3 columns to train on, two to test.
void write_mnist(const Folder& folder) {
  folder.write(train_images, idx_images(3, 2, 3));
  folder.write(train_labels, idx_labels({5, 0, 9}));
  folder.write(test_images, idx_images(2, 2, 3, 100));
  folder.write(test_labels, idx_labels({1, 2}));
}

TraceError mnist_error(const Folder& folder) {
  return trace_error_of([&] { lab::open_data("mnist:" + folder.path()); });
}

// Two records in each batch of training images, one test image.
void write_cifar(const Folder& folder, const std::string& prefix = "") {
  for (int i = 1; i <= 5; ++i) {
    const auto digit = static_cast<char>(i);
    folder.write(prefix + "data_batch_" + std::to_string(i) + ".bin",
                 cifar_record(digit, 1, 2, digit) + cifar_record(0, 51, 0, 0));
  }
  folder.write(prefix + "test_batch.bin", cifar_record(9, 7, 8, 9));
}

TraceError cifar_error(const Folder& folder) {
  return trace_error_of([&] { lab::open_data("cifar10:" + folder.path()); });
}

TEST_CASE("MNIST's four files are read, and measured by channel") {
  const Folder folder("mnist");
  write_mnist(folder);
  const lab::DataSource source = lab::open_data("mnist:" + folder.path());
  CHECK(source.name == "mnist:" + folder.path() + ",train=3,test=2");
  CHECK(contains(source.about, "3 training images, 2 test images"));
  const lab::Dataset train{
      1, 2, 3, 10, {0, 1, 2, 3, 4, 5, 7, 8, 9, 10, 11, 12, 14, 15, 16, 17, 18, 19}, {5, 0, 9}};
  CHECK(source.train == train);
  CHECK(source.test.pixels ==
        std::vector<std::uint8_t>{100, 101, 102, 103, 104, 105, 107, 108, 109, 110, 111, 112});
  CHECK(source.test.labels == std::vector<std::uint8_t>{1, 2});
  // Three runs of six numbers around 2.5, 9.5 and 16.5: 35/12 within a run, 98/3 between runs.
  REQUIRE(source.mean.size() == 1);
  CHECK(source.mean[0] == doctest::Approx(9.5 / 255));
  CHECK(source.deviation[0] == doctest::Approx(std::sqrt(35. / 12 + 98. / 3) / 255));
}

TEST_CASE("the first images of a file can be asked for, and no more than there are") {
  const Folder folder("first");
  write_mnist(folder);
  const lab::DataSource source = lab::open_data("mnist:" + folder.path() + ",train=2");
  CHECK(source.name == "mnist:" + folder.path() + ",train=2,test=2");
  CHECK(source.train.labels == std::vector<std::uint8_t>{5, 0});
  CHECK(source.train.pixels.size() == 12);
  CHECK(source.mean[0] == doctest::Approx(6. / 255));  // of these two alone
  CHECK(usage_error_of([&] { lab::open_data("mnist:" + folder.path() + ",test=3"); }) ==
        "mnist: test=3 exceeds the 2 images available");
}

TEST_CASE("MNIST's files have dots or dashes in their names, and may be gzip data") {
  const Folder plain("plain");
  write_mnist(plain);
  const lab::DataSource source = lab::open_data("mnist:" + plain.path());
  const Folder odd("odd");
  odd.write("train-images.idx3-ubyte", idx_images(3, 2, 3));
  odd.write("train-labels-idx1-ubyte.gz", profiles::gzipped(idx_labels({5, 0, 9})));
  odd.write("t10k-images.idx3-ubyte.gz", profiles::gzipped(idx_images(2, 2, 3, 100)));
  odd.write("t10k-labels.idx1-ubyte", idx_labels({1, 2}));
  const lab::DataSource same = lab::open_data("mnist:" + odd.path());
  CHECK(same.train == source.train);
  CHECK(same.test == source.test);
  odd.write("t10k-images.idx3-ubyte.gz", profiles::gzipped(idx_images(2, 2, 3)).substr(0, 20));
  const TraceError error = mnist_error(odd);
  CHECK(error.file == odd.file("t10k-images.idx3-ubyte.gz"));
  CHECK(contains(error.what(), "the gzip data end in the middle"));
}

TEST_CASE("a missing file is named, with the other names it may have") {
  const Folder folder("missing");
  write_mnist(folder);
  for (const std::string& name : {train_images, train_labels, test_images, test_labels}) {
    write_mnist(folder);
    folder.remove(name);
    const TraceError error = mnist_error(folder);
    CHECK(error.file == folder.file(name));
    CHECK(contains(error.what(), "there is no such file, nor "));
    CHECK(contains(error.what(), ", nor " + name + ".gz"));
  }
  CHECK(contains(trace_error_of([&] { lab::open_data("mnist:" + folder.file("none")); }).what(),
                 "there is no such folder"));
  CHECK(
      contains(trace_error_of([&] { lab::open_data("mnist:" + folder.file(train_images)); }).what(),
               "it is not a folder"));
}

TEST_CASE("an IDX file that is no IDX file, or another one, is refused") {
  const Folder folder("magic");
  write_mnist(folder);
  folder.write(train_images, idx_labels({5, 0, 9, 1, 2, 3, 4, 5}));
  TraceError error = mnist_error(folder);
  CHECK(error.where == "byte 0");
  CHECK(contains(error.what(), "begin with the number 0x00000803, and this file with 0x00000801"));
  CHECK(contains(error.what(), "it holds labels"));
  write_mnist(folder);
  folder.write(test_labels, "P6 28 28 255");
  error = mnist_error(folder);
  CHECK(error.file == folder.file(test_labels));
  CHECK(contains(error.what(), "begin with the number 0x00000801, and this file with 0x5036"));
}

TEST_CASE(
    "an IDX file that is cut off anywhere is refused, with what is there and what is missing") {
  const Folder folder("cut");
  write_mnist(folder);
  const std::string images = idx_images(3, 2, 3);
  for (std::size_t size = 0; size < images.size(); ++size) {
    folder.write(train_images, images.substr(0, size));
    const TraceError error = mnist_error(folder);
    CHECK(error.file == folder.file(train_images));
    CHECK(contains(error.what(), size == 0   ? "the file is empty"
                                 : size < 16 ? "ends within its first 16 bytes"
                                             : "the file ends after " + std::to_string(size) +
                                                   " of 34 bytes (3 images of 3 × 2 pixels"));
  }
  write_mnist(folder);
  folder.write(train_labels, idx_labels({5, 0, 9}).substr(0, 10));
  CHECK(mnist_error(folder).where == "byte 10");
  CHECK(contains(mnist_error(folder).what(), "after 10 of 11 bytes (3 labels"));
}

TEST_CASE("bytes behind the end, counts that differ, impossible sizes and labels are refused") {
  const Folder folder("numbers");
  const auto error_with = [&](const std::string& name, const std::string& bytes) {
    write_mnist(folder);
    folder.write(name, bytes);
    const TraceError error = mnist_error(folder);
    CHECK(error.file == folder.file(name));
    return error;
  };
  TraceError error = error_with(train_images, idx_images(3, 2, 3) + "xy");
  CHECK(error.where == "byte 34");
  CHECK(contains(error.what(), "2 bytes follow the 34 that the file should have"));
  error = error_with(test_labels, idx_labels({1, 2, 3}));
  CHECK(error.where == "byte 4");
  CHECK(contains(error.what(), "there are 3 labels, and 2 images in " + folder.file(test_images)));
  error = error_with(train_labels, idx_labels({5, 10, 9}));
  CHECK(error.where == "byte 9");
  CHECK(contains(error.what(), "the label of image 1 is 10; labels are from 0 to 9"));
  error = error_with(train_images, idx_images(0, 2, 3));
  CHECK(contains(error.what(), "the file holds no images"));
  error = error_with(train_labels, idx_labels(""));
  CHECK(contains(error.what(), "the file holds no labels"));
  error = error_with(train_images, idx_images(3, 0, 3));
  CHECK(error.where == "byte 8");
  CHECK(contains(error.what(), "from 1 to 1024 rows, not 0"));
  // As many images and pixels as the numbers can say: no sum overflows.
  error = error_with(train_images, big_endian(0x803) + big_endian(0xFFFFFFFF) + big_endian(1024) +
                                       big_endian(1024));
  CHECK(contains(error.what(), "after 16 of 4503599626321936 bytes"));
  error = error_with(train_images,
                     big_endian(0x803) + big_endian(1) + big_endian(28) + big_endian(0xFFFFFFFF));
  CHECK(error.where == "byte 12");
  write_mnist(folder);
  folder.write(test_images, idx_images(2, 3, 3));
  CHECK(contains(mnist_error(folder).what(),
                 "training images have 3 × 2 pixels, and test images 3 × 3"));
}

TEST_CASE("CIFAR-10's six files are read, in the folder or in the one that its archive makes") {
  const Folder folder("cifar");
  write_cifar(folder);
  const lab::DataSource source = lab::open_data("cifar10:" + folder.path());
  CHECK(source.train.labels == std::vector<std::uint8_t>{1, 0, 2, 0, 3, 0, 4, 0, 5, 0});
  CHECK(source.test.labels == std::vector<std::uint8_t>{9});
  CHECK(source.train.image_size() == 3072);
  CHECK(source.train.pixels.size() == 30720);
  CHECK(source.train.pixels[8 * 3072 + 1023] == 1);  // the ninth image: red, green, blue
  CHECK(source.train.pixels[8 * 3072 + 1024] == 2);
  CHECK(source.train.pixels[8 * 3072 + 2048] == 5);
  REQUIRE(source.mean.size() == 3);
  CHECK(source.mean[0] == doctest::Approx(26. / 255));
  CHECK(source.deviation[0] == doctest::Approx(25. / 255));
  CHECK(source.mean[1] == doctest::Approx(1. / 255));
  CHECK(source.mean[2] == doctest::Approx(1.5 / 255));
  const Folder outer("outer");
  write_cifar(outer, "cifar-10-batches-bin/");
  const lab::DataSource same = lab::open_data("cifar10:" + outer.path());
  CHECK(same.train == source.train);
  CHECK(same.test == source.test);
}

TEST_CASE("a CIFAR-10 file that is missing, cut off, longer or mislabelled is refused") {
  const Folder folder("cifar-wrong");
  const auto error_with = [&](const std::string& name, const std::string& bytes) {
    write_cifar(folder);
    folder.write(name, bytes);
    const TraceError error = cifar_error(folder);
    CHECK(error.file == folder.file(name));
    return error;
  };
  const std::string record = cifar_record(3, 0, 0, 0);
  TraceError error = error_with("data_batch_3.bin", record + record.substr(0, 73));
  CHECK(error.where == "byte 3073");
  CHECK(contains(error.what(), "3146 bytes, which is 1 records of 3073 and 73 bytes more"));
  CHECK(contains(error.what(), "3000 bytes of this record are missing"));
  CHECK(error_with("test_batch.bin", record + "x").where == "byte 3073");
  CHECK(contains(error_with("data_batch_1.bin", "").what(), "the file is empty"));
  error = error_with("data_batch_5.bin", record + cifar_record(10, 0, 0, 0));
  CHECK(error.where == "byte 3073");
  CHECK(contains(error.what(), "the label of image 1 is 10"));
  write_cifar(folder);
  folder.remove("data_batch_4.bin");
  CHECK(cifar_error(folder).file == folder.file("data_batch_4.bin"));
  CHECK(contains(cifar_error(folder).what(), "there is no such file"));
}

}  // namespace
}  // namespace stageline::files_tests
